# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# To be read by scripts that build, in the checkout's root: what ccache must know for
# objects to be shared between clones, and between the builds of one, and to be found again
# at all where headers are precompiled (baechi_take_headers). Without it, ccache compiles
# each file and says nothing.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros
