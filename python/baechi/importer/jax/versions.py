# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which versions of JAX steps are imported with.

The importer reads jaxprs and uses JAX's lowering rules, which have no promises from version to
version: others than those that `scripts/check-jax` has run the tests with are refused.
"""

from __future__ import annotations

import re

# From this one on, and up to before that one.
FIRST, BEYOND = (0, 9), (0, 12)
MODULES = "0.9.0"
"""The version whose modules are committed (test/fixtures): others lower some operations
otherwise."""


def check(version: str) -> None:
    """Raises ImportError for a version of JAX that is not known to be right."""
    found = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if not FIRST <= found < BEYOND:
        first, beyond = (".".join(map(str, each)) for each in (FIRST, BEYOND))
        raise ImportError(
            f"this is JAX {version}, and Baechi is tested with JAX {first} and newer, before "
            f"{beyond}: pip install 'jax>={first},<{beyond}'",
            name="jax",
        )
