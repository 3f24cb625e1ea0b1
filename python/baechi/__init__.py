# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Baechi's Python side: `baechi.jit`, importing training steps, the model collection."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baechi.jitted import jit as jit

__all__ = ["jit"]


def __getattr__(name: str) -> Any:
    # The command's help and the initial values work without JAX.
    if name == "jit":
        from baechi.jitted import jit

        return jit
    raise AttributeError(f"module 'baechi' has no attribute '{name}'")
