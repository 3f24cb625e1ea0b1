# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m baechi.experiments`: placement times and steps beside the paper's."""

import sys

from baechi.experiments.command import main

sys.exit(main())
