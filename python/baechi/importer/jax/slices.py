# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of tensors at positions that are numbers or values (`ir.Value` of type index).

JAX and torch-mlir each bring MLIR's Python bindings of their own: `ir` is the one
that the values belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def extract(
    ir: Any,
    source: Any,
    offsets: Sequence[Any],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
) -> Any:
    """A slice; `shape` is `sizes` without some that are 1."""
    element = ir.RankedTensorType(source.type).element_type
    result = ir.RankedTensorType.get(sizes if shape is None else shape, element)
    dynamic, attributes = _position(ir, offsets, sizes, strides, [1])
    return ir.Operation.create(
        "tensor.extract_slice", results=[result], operands=[source, *dynamic], attributes=attributes
    ).results[0]


def insert(
    ir: Any,
    part: Any,
    into: Any,
    offsets: Sequence[Any],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """`into` with the slice replaced by `part`."""
    dynamic, attributes = _position(ir, offsets, sizes, strides, [1, 1])
    return ir.Operation.create(
        "tensor.insert_slice",
        results=[into.type],
        operands=[part, into, *dynamic],
        attributes=attributes,
    ).results[0]


def _position(ir, offsets, sizes, strides, operands):
    """The offsets that are values, and the operation's attributes."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = [offset for offset in offsets if not isinstance(offset, int)]
    static = [offset if isinstance(offset, int) else unknown for offset in offsets]
    strides = [1] * len(sizes) if strides is None else strides
    return dynamic, {
        "static_offsets": ir.DenseI64ArrayAttr.get(static),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(sizes)),
        "static_strides": ir.DenseI64ArrayAttr.get(list(strides)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*operands, len(dynamic), 0, 0]),
    }
