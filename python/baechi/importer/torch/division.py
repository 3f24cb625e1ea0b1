# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quotients and what is left of them: exact, as C's fmod, with PyTorch's signs.

Integers that are divided by zero end the step with an error.
"""

from __future__ import annotations

import functools

import torch

aten = torch.ops.aten


def _of_one_type(form):
    """Of two tensors of the result's type, one of which may be given as a number."""

    @functools.wraps(form)
    def divided(x, by):
        kind = torch.result_type(x, by)
        x, by = (
            v.to(kind) if isinstance(v, torch.Tensor) else torch.full((), v, dtype=kind)
            for v in (x, by)
        )
        if kind not in (torch.uint8, torch.int8):
            return form(x, by)
        # Unsigned bytes are signed ones otherwise, and a number beside signed ones unknown.
        return form(x.to(torch.int32), by.to(torch.int32)).to(kind)

    return divided


@_of_one_type
def fmod(x, by):
    """Rounded towards zero: what is left has the sign of x."""
    if not x.is_floating_point():
        return x - torch.div(x, by, rounding_mode="trunc") * by
    # Of positive numbers both remainders are one, which libm computes.
    left = aten.remainder.Tensor(x.abs(), by.abs())
    return torch.copysign(left, x)


def remainder(x, by):
    """Of narrow integers, and of numbers by tensors; torch-mlir has the others."""
    narrow = torch.result_type(x, by) in (torch.uint8, torch.int8)
    if isinstance(x, torch.Tensor) and not narrow:
        return NotImplemented
    return _remainder(x, by)


@_of_one_type
def _remainder(x, by):
    return aten.remainder.Tensor(x, by)


@_of_one_type
def floor_divide(x, by):
    """As PyTorch's and Python's: of the difference from what is left, so that
    infinities have none."""
    if not x.is_floating_point():
        quotient = torch.div(x, by, rounding_mode="trunc")
        left = x - quotient * by
        return quotient - ((left != 0) & ((left < 0) != (by < 0))).to(x.dtype)
    left = fmod(x, by)
    quotient = (x - left) / by
    quotient = torch.where((left != 0) & ((by < 0) != (left < 0)), quotient - 1, quotient)
    whole = quotient.floor()
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, torch.copysign(torch.zeros_like(x), x / by), whole)
    return torch.where(by == 0, x / by, whole)


def div(x, by, *, rounding_mode=None):
    if rounding_mode == "floor":
        return floor_divide(x, by)
    kinds = {value.dtype for value in (x, by) if isinstance(value, torch.Tensor)}
    if kinds != {torch.uint8}:
        return NotImplemented
    wide = [v.to(torch.int32) if isinstance(v, torch.Tensor) else v for v in (x, by)]
    found = torch.div(*wide, rounding_mode=rounding_mode)
    return found if found.is_floating_point() else found.to(torch.uint8)


TABLE = {
    aten.div.Scalar: div,
    aten.div.Scalar_mode: div,
    aten.div.Tensor: div,
    aten.div.Tensor_mode: div,
    aten.floor_divide.Scalar: floor_divide,
    aten.floor_divide.default: floor_divide,
    aten.fmod.Scalar: fmod,
    aten.fmod.Tensor: fmod,
    aten.remainder.Scalar: remainder,
    aten.remainder.Scalar_Tensor: remainder,
    aten.remainder.Tensor: remainder,
}
