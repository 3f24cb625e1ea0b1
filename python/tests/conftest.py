# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds for all tests."""

import os

# Tests look at plans and at calls that return at once right after a first call, whatever the
# profile of this machine knows; test_replan.py asks for plans that are made later.
os.environ.setdefault("BAECHI_REPLAN", "never")
