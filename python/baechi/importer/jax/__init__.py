# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX steps to linalg: `step.import_step`."""

import jax

from baechi.importer.jax import versions

versions.check(jax.__version__)
