# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m baechi.importer`: a training step to an MLIR file."""

import sys

from baechi.commands.import_model import main

sys.exit(main())
