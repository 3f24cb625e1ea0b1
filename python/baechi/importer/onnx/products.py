# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products and what only moves elements: forms of ONNX that torch-mlir lowers to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx

from baechi.importer.onnx.builder import Builder, attributes, given


def _matmul(node: onnx.NodeProto, build: Builder) -> None:
    """Vectors become matrices, and batches are repeated."""
    a, b = node.input
    left, right = build.shape(a), build.shape(b)
    most = max(len(left), len(right))
    vector = most > 2 and min(len(left), len(right)) == 1
    if not left or not right or not (vector or most > 2 and left[:-2] != right[:-2]):
        return build.keep()
    rows = left if len(left) > 1 else [1, *left]
    columns = right if len(right) > 1 else [*right, 1]
    batch = list(np.broadcast_shapes(tuple(rows[:-2]), tuple(columns[:-2])))
    result = batch + ([left[-2]] if len(left) > 1 else [])
    result += [right[-1]] if len(right) > 1 else []

    def spread(x: str, shape: list[int], form: list[int]) -> str:
        x = x if shape == form else build.reshape(x, form)
        whole = batch + form[-2:]
        return x if whole == form else build.add("Expand", x, build.number(whole, np.int64))

    product = build.add("MatMul", spread(a, left, rows), spread(b, right, columns))
    build.reshape(product, result, output=node.output[0])


def _einsum(node: onnx.NodeProto, build: Builder) -> None:
    """Without an arrow the result has what occurs once, in the alphabet's order."""
    equation = attributes(node)["equation"].decode().replace(" ", "")
    if "->" in equation:
        return build.keep()
    counts = Counter(letter for letter in equation if letter.isalpha())
    result = "..." if "..." in equation else ""
    result += "".join(sorted(letter for letter, count in counts.items() if count == 1))
    build.again(node.input, node.output, equation=f"{equation}->{result}")


def _quantized_matmul(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir's batches are wrong."""
    if len(build.shape(node.input[0])) != 2 or len(build.shape(node.input[3])) != 2:
        build.refuse("only matrices are multiplied: DequantizeLinear, MatMul, QuantizeLinear")
    build.keep()


def _quantized_conv(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir takes a bias of several scales for one of the first."""
    several = int(np.prod(build.shape(node.input[4]) or [1])) > 1
    if several and given(node, 8):
        build.refuse("a bias beside a scale a channel: DequantizeLinear, Conv, QuantizeLinear")
    build.keep()


def _slice(node: onnx.NodeProto, build: Builder) -> None:
    """Backwards by Gather: linalg's slices have positive steps."""
    shape = build.shape(node.input[0])
    bounds = [build.known(name) if name else None for name in node.input[1:]]
    if not shape or len(bounds) < 2 or bounds[0] is None or bounds[1] is None:
        return build.keep()
    starts, ends = (each.tolist() for each in bounds[:2])
    if any(name and build.known(name) is None for name in node.input[3:]):
        build.refuse("its axes or steps are no constants: give them as initializers")
    axes = list(range(len(starts))) if len(bounds) < 3 or bounds[2] is None else bounds[2].tolist()
    steps = [1] * len(starts) if len(bounds) < 4 or bounds[3] is None else bounds[3].tolist()
    x = node.input[0]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = shape[axis]
        places = range(*slice(start, end, step).indices(size))
        if step < 0:
            if not places:
                build.refuse("its result is empty: give it a step of 1")
            x = build.add("Gather", x, build.number(list(places), np.int64), axis=axis % len(shape))
        elif len(places) < size:
            numbers = (places.start, places.stop, axis % len(shape), step)
            x = build.add("Slice", x, *(build.number([number], np.int64) for number in numbers))
    build.add("Identity", x, output=node.output[0])


def _scatter_elements(node: onnx.NodeProto, build: Builder) -> None:
    """The largest and the least by ScatterND, at the places of all dimensions."""
    options = attributes(node)
    x, indices, updates = node.input
    shape = build.shape(indices)
    if options.get("reduction", b"none") not in (b"max", b"min") or not shape:
        return build.keep()
    count, axis = int(np.prod(shape)), options.get("axis", 0) % len(shape)
    places = [
        build.add("Cast", build.reshape(indices, [count, 1]), to=onnx.TensorProto.INT64)
        if dim == axis
        else build.number(along.reshape(count, 1), np.int64)
        for dim, along in enumerate(np.indices(shape))
    ]
    found = build.add("Concat", *places, axis=1) if len(places) > 1 else places[0]
    _scatter_extreme(node, build, [x, found, build.reshape(updates, [count])])


def _scatter(node: onnx.NodeProto, build: Builder) -> None:
    if attributes(node).get("reduction", b"none") not in (b"max", b"min"):
        return build.keep()
    _scatter_extreme(node, build, list(node.input))


def _scatter_extreme(node: onnx.NodeProto, build: Builder, inputs: list[str]) -> None:
    """torch-mlir compares numbers without a sign as if they had one."""
    (output,), reduction = node.output, attributes(node)["reduction"]
    if not np.issubdtype(build.dtype, np.unsignedinteger):
        build.add("ScatterND", *inputs, output=output, reduction=reduction)
        return
    if build.dtype != np.uint8:
        build.refuse(f"{build.dtype} is not supported, only uint8 and signed types: Cast to int64")
    x, indices, updates = inputs
    x, updates = (build.add("Cast", each, to=onnx.TensorProto.INT32) for each in (x, updates))
    found = build.add("ScatterND", x, indices, updates, reduction=reduction)
    build.add("Cast", found, to=onnx.TensorProto.UINT8, output=output)


def _pad(node: onnx.NodeProto, build: Builder) -> None:
    """A negative width is a slice; what wraps around, or is mirrored, is gathered."""
    shape = build.shape(node.input[0])
    widths = build.known(given(node, 1))
    if widths is None or not shape:
        return build.keep()
    mode, rank = attributes(node).get("mode", b"constant"), len(shape)
    axes = build.known(given(node, 3)) if given(node, 3) else np.arange(rank)
    if axes is None:
        build.refuse("its axes are no constant: give them as an initializer")
    # torch-mlir repeats and mirrors in the last dimensions alone.
    padded = [axis % rank for axis, *each in zip(axes.tolist(), *np.split(widths, 2)) if any(each)]
    first = min(padded, default=rank) < rank - 2 or rank == 1
    gathers = mode == b"wrap" or mode in (b"reflect", b"edge") and first
    if not gathers and (widths >= 0).all():
        return build.keep()
    if mode != b"constant" and (widths < 0).any() and (widths > 0).any():
        build.refuse(f"mode '{mode.decode()}' with widths of both signs: Slice first, then Pad")
    x, rest = node.input[0], [0] * (2 * rank)
    for axis, before, after in zip(axes.tolist(), *np.split(widths, 2)):
        axis, size = axis % rank, shape[axis]
        start, end = max(0, -int(before)), size - max(0, -int(after))
        if start >= end:
            build.refuse("its result is empty, and a tensor without elements is not supported")
        if gathers and (before > 0 or after > 0):
            places = np.pad(np.arange(size), (before, after), mode=mode.decode())
            x = build.add("Gather", x, build.number(places, np.int64), axis=axis)
        else:
            x = x if (start, end) == (0, size) else build.slice(x, axis, start, end)
            rest[axis], rest[axis + rank] = max(0, int(before)), max(0, int(after))
    if any(rest):
        value = given(node, 2) or build.number(0)
        x = build.add("Pad", x, build.number(rest, np.int64), value)
    build.add("Identity", x, output=node.output[0])


EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {
    "Einsum": _einsum,
    "MatMul": _matmul,
    "Pad": _pad,
    "QLinearConv": _quantized_conv,
    "QLinearMatMul": _quantized_matmul,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter,
    "Slice": _slice,
}
