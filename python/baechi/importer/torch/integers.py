# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of narrow integers, which wrap as PyTorch's, their extremes, bits with a number, and
powers of integers to integers."""

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


def power(x, exponent):
    """By products, which wrap; to a negative exponent what is left of a fraction."""
    kind = torch.result_type(x, exponent)
    if kind.is_floating_point or kind.is_complex or kind == torch.bool:
        return NotImplemented
    bits, exponent = torch.iinfo(kind).bits, exponent.to(kind)
    number = not isinstance(x, torch.Tensor)
    if number and x == 1:
        return torch.ones_like(exponent)
    one, zero = torch.ones((), dtype=kind), torch.zeros((), dtype=kind)
    base = torch.full((), x, dtype=kind) if number else x.to(kind)
    square, found = base, one
    # Powers of odd numbers repeat after 2^(bits - 2), those of even ones are zero from `bits` on.
    for place in range(bits.bit_length() - 1 if number and x % 2 == 0 else bits - 2):
        bit = aten.__rshift__.Scalar(exponent, place) & 1
        found = torch.where(bit != 0, found * square, found)
        square = square * square
    found = torch.where((exponent >= bits) & ((base & 1) == 0), zero, found)
    if not kind.is_signed:
        return found
    sign = torch.where((exponent & 1) == 0, one, base)
    fraction = torch.where((base == 1) | (base == -1), sign, zero)
    return torch.where(exponent < 0, fraction, found)


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
    aten.pow.Scalar: power,
    aten.pow.Tensor_Tensor: power,
}
