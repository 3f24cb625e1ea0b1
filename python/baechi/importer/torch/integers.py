# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of narrow integers, which wrap as PyTorch's, their extremes, and bits with a number."""

from __future__ import annotations

import torch

aten = torch.ops.aten
_NARROW = {torch.int8, torch.uint8, torch.int16}


def mm(x, y):
    return _wrapped(aten.mm.default, x, y)


def bmm(x, y):
    return _wrapped(aten.bmm.default, x, y)


def _wrapped(product, x, y):
    """In 32 bits, whose last ones are those of a narrower sum."""
    if x.dtype not in _NARROW:
        return NotImplemented
    return product(x.to(torch.int32), y.to(torch.int32)).to(x.dtype)


def _extreme(operator):
    """Of signed bytes, whose least and largest number torch-mlir does not write down."""

    def found(x):
        return operator(x.to(torch.int32)).to(x.dtype) if x.dtype == torch.int8 else NotImplemented

    return found


def _with_number(operator):
    def computed(x, number):
        kind = torch.result_type(x, number)
        return operator(x.to(kind), torch.full((), number, dtype=kind))

    return computed


TABLE = {
    aten.bitwise_or.Scalar: _with_number(aten.bitwise_or.Tensor),
    aten.bitwise_xor.Scalar: _with_number(aten.bitwise_xor.Tensor),
    aten.bmm.default: bmm,
    aten.max.default: _extreme(aten.max.default),
    aten.min.default: _extreme(aten.min.default),
    aten.mm.default: mm,
}
