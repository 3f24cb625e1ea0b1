# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's experiments as commands: `python -m baechi.experiments table3`.

`tables` says what is compared, `placers` by whom; both are open: a placer of
one's own, a learned one say, is a function and a line (`placers.register`).
"""
