# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on float16 and bfloat16 that PyTorch computes in single precision.

It rounds what an operator gives, not what it computes with within: the steps of a sigmoid,
and the numbers that tensors are multiplied by. torch-mlir does round those.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from baechi.importer.torch import special

aten = torch.ops.aten
_HALVES = (torch.float16, torch.bfloat16)
_OPERATORS = [
    *special.TABLE,
    aten.cumprod.default,
    aten.cumsum.default,
    aten.div.Scalar,
    aten.div.Tensor,
    aten.elu.default,
    aten.expm1.default,
    aten.gelu.default,
    aten.gelu_backward.default,
    aten.hardsigmoid.default,
    aten.hardswish.default,
    aten.leaky_relu.default,
    aten.linalg_vector_norm.default,
    aten.log1p.default,
    aten.log_sigmoid_forward.default,
    aten.logcumsumexp.default,
    aten.mish.default,
    aten.mul.Tensor,
    aten.pow.Tensor_Scalar,
    aten.pow.Tensor_Tensor,
    aten.prod.default,
    aten.prod.dim_int,
    aten.scatter_add.default,
    aten.sigmoid.default,
    aten.sigmoid_backward.default,
    aten.silu.default,
    aten.silu_backward.default,
    aten.softplus.default,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.tanh_backward.default,
]
# These round a half's result once anyway, unless a number of higher precision takes part.
_OF_NUMBERS = {aten.div.Tensor, aten.mul.Tensor}


def with_singles(table: dict) -> dict:
    """The table of decompositions, with those operators computed in single precision."""
    return {**table, **{x: _in_singles(x, table.get(x)) for x in _OPERATORS}}


def _in_singles(operator: Any, form: Callable | None) -> Callable:
    @functools.wraps(form or operator)
    def computed(*given: Any, **options: Any) -> Any:
        kind = _half(given)
        if kind is not None and operator is aten.pow.Tensor_Scalar:
            given = given[0], _rounded(given[1], kind)  # as PyTorch
        exact = operator in _OF_NUMBERS and not _has_number(given, options)
        exact = exact or options.get("dtype") is not None
        if kind is None or exact or _is_power_of_bfloats(operator, kind, given):
            return form(*given, **options) if form else NotImplemented
        found = operator(*(_single(x) for x in given), **options)
        if isinstance(found, torch.Tensor):
            return found.to(kind)
        return tuple(x.to(kind) for x in found)

    return computed


def _half(given: tuple) -> torch.dtype | None:
    """The type of an operator's result, where PyTorch would compute it in singles."""
    tensors = [x for x in given if isinstance(x, torch.Tensor)]
    lines = {x.dtype for x in tensors if x.dim()} or {x.dtype for x in tensors}
    (kind,) = lines if len(lines) == 1 else (None,)
    singles = (*_HALVES, torch.float32)
    return kind if kind in _HALVES and all(x.dtype in singles for x in tensors) else None


def _has_number(given: tuple, options: dict) -> bool:
    """Which is not rounded to the tensor's type."""
    return bool(options) or any(not isinstance(x, torch.Tensor) or x.dim() == 0 for x in given)


def _is_power_of_bfloats(operator: Any, kind: torch.dtype, given: tuple) -> bool:
    """Which PyTorch rounds after each product."""
    whole = operator is aten.pow.Tensor_Scalar and given[1] in (2, 3, -1, -2)
    return whole and kind == torch.bfloat16


def _rounded(number: complex, kind: torch.dtype) -> complex:
    """As it is where PyTorch has none that is rounded."""
    if isinstance(number, complex):
        return number
    with _disable_current_modes():
        found = torch.tensor(number, dtype=kind).item()
    return found if math.isfinite(found) else number


def _single(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) else value
