# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the dimensions of a tensor lie in memory."""

from __future__ import annotations

from collections.abc import Sequence


def memory_order(size: Sequence[int], stride: Sequence[int]) -> list[int]:
    """The dimensions from the outermost to the innermost; those of one element, which lie
    anywhere, first."""
    return sorted(range(len(size)), key=lambda d: (size[d] > 1, -stride[d]))


def dense_order(size: Sequence[int], stride: Sequence[int]) -> list[int] | None:
    """The same; None where elements lie apart or upon each other."""
    order, inner = memory_order(size, stride), 1
    for d in reversed(order):
        if size[d] > 1 and stride[d] != inner:
            return None
        inner *= size[d]
    return order


def inverse(order: Sequence[int]) -> list[int]:
    """What puts dimensions back."""
    return [order.index(d) for d in range(len(order))]
