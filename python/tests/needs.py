# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Marks of tests that need what may not be there."""

import pytest

from baechi.compiling import tools


def built(tool: str) -> bool:
    try:
        return bool(tools.find(tool))
    except FileNotFoundError:
        return False


def tool(name: str) -> pytest.MarkDecorator:
    """Skips where a tool of Baechi is not built."""
    return pytest.mark.skipif(not built(name), reason=f"{name} is not built")
