# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that a StableHLO module computes of constants alone, such as the
indices that JAX makes of `x[::2]`: numbers for numpy, before anything is lowered."""

from __future__ import annotations

import functools
import math

import numpy as np
from jaxlib.mlir import ir

# Of larger tensors nothing is computed: they are data, no positions.
_MOST_ELEMENTS = 1 << 20


class _Unknown(Exception):
    """A value that depends on arguments, or one of an operation that is not computed."""


def known(value: ir.Value) -> np.ndarray | None:
    """The elements of an integer tensor; None where they depend on arguments."""

    @functools.cache
    def elements(value: ir.Value) -> np.ndarray:
        type_ = ir.RankedTensorType(value.type)
        kind = type_.element_type
        if isinstance(value.owner, ir.Block) or not isinstance(kind, ir.IntegerType):
            raise _Unknown
        if math.prod(type_.shape) > _MOST_ELEMENTS or kind.width not in (8, 16, 32, 64):
            raise _Unknown
        operation = value.owner.operation
        compute = _OPERATIONS.get(operation.name)
        if compute is None:
            raise _Unknown
        dtype = f"{'u' * kind.is_unsigned}int{kind.width}"
        operands = [elements(operand) for operand in operation.operands]
        return np.asarray(compute(operation, type_.shape, *operands)).astype(dtype)

    try:
        return elements(value)
    except _Unknown:
        return None


def _constant(operation, shape):
    return np.array(ir.DenseIntElementsAttr(operation.attributes["value"])).reshape(shape)


def _iota(operation, shape):
    axis = ir.IntegerAttr(operation.attributes["iota_dimension"]).value
    along = [-1 if d == axis else 1 for d in range(len(shape))]
    return np.broadcast_to(np.arange(shape[axis]).reshape(along), shape)


def _broadcast(operation, shape, inner):
    places = ir.DenseI64ArrayAttr(operation.attributes["broadcast_dimensions"])
    spread = [1] * len(shape)
    for size, place in zip(inner.shape, places):
        spread[place] = size
    return np.broadcast_to(inner.reshape(spread), shape)


def _concatenate(operation, shape, *parts):
    return np.concatenate(parts, ir.IntegerAttr(operation.attributes["dimension"]).value)


def _reverse(operation, shape, inner):
    return np.flip(inner, list(ir.DenseI64ArrayAttr(operation.attributes["dimensions"])))


_OPERATIONS = {
    "stablehlo.constant": _constant,
    "stablehlo.iota": _iota,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": _reverse,
    "stablehlo.reshape": lambda operation, shape, inner: inner.reshape(shape),
    "stablehlo.convert": lambda operation, shape, inner: inner,
    "stablehlo.add": lambda operation, shape, a, b: a + b,
    "stablehlo.subtract": lambda operation, shape, a, b: a - b,
    "stablehlo.multiply": lambda operation, shape, a, b: a * b,
}
