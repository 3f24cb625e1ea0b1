# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Powers: of integers by products that wrap, of other numbers in floating point."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from baechi.importer.onnx.builder import Builder

# torch-mlir takes numbers without a sign for signed ones, and converts these alone.
_WIDER = {np.dtype(np.uint8): np.dtype(np.int32), np.dtype(np.uint32): np.dtype(np.int64)}


def power(node: onnx.NodeProto, build: Builder) -> None:
    """What it gives has the base's type."""
    base, exponent = node.input
    kind = build.type(exponent)
    for each in (build.dtype, kind):
        if np.issubdtype(each, np.unsignedinteger) and each not in _WIDER:
            build.refuse(f"{each} is not supported: Cast to int64")
    whole = np.issubdtype(build.dtype, np.integer)
    if whole and np.issubdtype(kind, np.integer):
        return _by_products(node, build)
    if not whole:
        exponent = _signed(exponent, build)
        build.again([base, exponent], node.output)
        return
    # An integer's power to a floating-point number is truncated.
    base, exponent = (build.add("Cast", name, to=TensorProto.DOUBLE) for name in node.input)
    found = build.add("Pow", base, exponent)
    build.add("Cast", found, to=_number_of(build.dtype), output=node.output[0])


def _by_products(node: onnx.NodeProto, build: Builder) -> None:
    """A square for each digit of the exponent, the first one first, times the base where it
    is one. The last bits of products are those of narrower ones."""
    base, exponent = node.input
    wide = np.int64 if build.dtype == np.int64 else np.int32
    if build.dtype != wide:
        base = build.add("Cast", base, to=_number_of(wide))
    known, kind = build.known(exponent), build.type(exponent)
    if known is not None and known.size and known.min() < 0:
        build.refuse(
            "an integer to a negative power is no integer, and an error in ONNX: Cast what is "
            "raised to float"
        )
    largest = np.iinfo(kind).max if known is None else max(known.max(initial=0), 0)
    digits = range(int(largest).bit_length())
    exponent, kind = _signed(exponent, build), _WIDER.get(kind, kind)
    left, found = exponent, build.number(1, wide)
    for digit in reversed(digits):
        has_it = build.add("Not", build.add("Less", left, build.number(1 << digit, kind)))
        rest = build.add("Sub", left, build.number(1 << digit, kind))
        left = build.add("Where", has_it, rest, left)
        found = build.add("Mul", found, found)
        found = build.add("Where", has_it, build.add("Mul", found, base), found)
    if known is None and build.type(node.input[1]) == kind:
        # An error in ONNX, as the division is.
        negative = build.add("Less", exponent, build.number(0, kind))
        divisor = build.add("Where", negative, build.number(0, wide), build.number(1, wide))
        found = build.add("Div", found, divisor)
    if not digits:  # ones, of both shapes
        found = build.add("Add", build.add("Mul", base, build.number(0, wide)), found)
        nothing = build.add("Cast", exponent, to=_number_of(wide))
        found = build.add("Add", found, nothing)
    build.add("Cast", found, to=_number_of(build.dtype), output=node.output[0])


def _signed(x: str, build: Builder) -> str:
    wider = _WIDER.get(build.type(x))
    return build.add("Cast", x, to=_number_of(wider)) if wider else x


def _number_of(kind: np.typing.DTypeLike) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
