# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-parallel training over several workers: values that are shared with bounded staleness,
and the exchange of gradients in simulated time."""
