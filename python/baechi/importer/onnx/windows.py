# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools and samples of ONNX whose last windows, indices or borders torch-mlir has otherwise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import onnx

from baechi.importer.onnx.builder import Builder, attributes


@dataclasses.dataclass
class _Window:
    """A pool's, a number a dimension."""

    pads: list[int]  # before, then after
    extra: list[int]  # what a last window that does not fit reaches beyond them


def _window(node: onnx.NodeProto, sizes: list[int]) -> _Window:
    """Of `ceil_mode`: a window that would start behind the data and the padding before it
    is none."""
    options, rank = attributes(node), len(sizes)
    strides = options.get("strides", [1] * rank)
    dilations = options.get("dilations", [1] * rank)
    pads = list(options.get("pads", [0] * (2 * rank)))
    extra = [0] * rank
    for d, kernel in enumerate(options["kernel_shape"]):
        reach = dilations[d] * (kernel - 1) + 1
        padded = sizes[d] + pads[d] + pads[d + rank]
        last = math.ceil((padded - reach) / strides[d])
        if last * strides[d] >= sizes[d] + pads[d]:
            last -= 1
        extra[d] = max(0, last * strides[d] + reach - padded)
    return _Window(pads, extra)


def _ceiled(node: onnx.NodeProto, build: Builder) -> bool:
    automatic = attributes(node).get("auto_pad", b"NOTSET")
    return bool(attributes(node).get("ceil_mode", 0)) and automatic in (b"NOTSET", b"VALID")


def _max_pool(node: onnx.NodeProto, build: Builder) -> None:
    options, shape = attributes(node), build.shape(node.input[0])
    indexed = len(node.output) > 1 and bool(node.output[1])
    if not shape or not (indexed or _ceiled(node, build) or build.dtype == np.uint8):
        return build.keep()
    if build.dtype == np.uint8:
        # torch-mlir compares bytes as if they had a sign.
        if indexed or _ceiled(node, build):
            build.refuse("uint8 with indices or ceil_mode: Cast to float before it")
        wide = build.add("Cast", node.input[0], to=onnx.TensorProto.FLOAT)
        (result,) = build.again([wide], [""])
        build.add("Cast", result, to=onnx.TensorProto.UINT8, output=node.output[0])
        return
    x, changed = node.input[0], {}
    if _ceiled(node, build):
        build.forget(node.output[0])
        window, rank = _window(node, shape[2:]), len(shape) - 2
        if indexed and any(window.extra):
            build.refuse("indices with a last window that does not fit: Pad first, ceil_mode = 0")
        after = [p + e for p, e in zip(window.pads[rank:], window.extra)]
        widths = [0, 0, *window.pads[:rank], 0, 0, *after]
        changed = {"ceil_mode": 0, "auto_pad": None}
        if not indexed:
            if any(widths):
                x = build.add("Pad", x, build.number(widths, np.int64), build.number(build.least()))
            build.again([x], node.output, **changed, pads=[0] * (2 * rank))
            return
    pads = list(options.get("pads", []))
    if pads[: len(pads) // 2] != pads[len(pads) // 2 :] or options.get(
        "auto_pad", b"NOTSET"
    ).startswith(b"SAME"):
        build.refuse("indices with other padding after the data than before: pad both sides alike")
    if options.get("storage_order", 0):
        build.refuse("storage_order = 1 is not supported: leave it out")
    _, places = build.again([x], [node.output[0], ""], **changed)
    # torch-mlir's are those within a channel, ONNX's those of the whole tensor.
    batch, channels, *sizes = shape
    first = np.arange(batch * channels) * int(np.prod(sizes))
    first = build.number(first.reshape(batch, channels, *[1] * len(sizes)), np.int64)
    build.add("Add", places, first, output=node.output[1])


def _average_pool(node: onnx.NodeProto, build: Builder) -> None:
    """What a last window reaches beyond the padding counts in no average."""
    shape = build.shape(node.input[0])
    if not shape or not _ceiled(node, build):
        return build.keep()
    build.forget(node.output[0])
    window, rank = _window(node, shape[2:]), len(shape) - 2
    x, pads = node.input[0], window.pads
    if attributes(node).get("count_include_pad", 0) and any(pads):
        widths = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
        x = build.add("Pad", x, build.number(widths, np.int64), build.number(0))
        pads = [0] * (2 * rank)
    pads = pads[:rank] + [p + e for p, e in zip(pads[rank:], window.extra)]
    build.again([x], node.output, ceil_mode=0, pads=pads, auto_pad=None, count_include_pad=0)


def _grid_sample(node: onnx.NodeProto, build: Builder) -> None:
    """Of images: the nearest element, halves to the even one, or the four around."""
    options = attributes(node)
    mode = options.get("mode", b"linear").decode()
    padding = options.get("padding_mode", b"zeros").decode()
    x, grid = node.input
    shape, places = build.shape(x), build.shape(grid)
    if mode not in ("linear", "bilinear", "nearest") or padding == "reflection":
        build.refuse(f"mode '{mode}' with padding_mode '{padding}': take 'linear' and 'border'")
    if len(shape) != 4 or len(places) != 4:
        build.refuse("only images, of 4 dimensions, are sampled")
    batch, channels, height, width = shape
    count = places[1] * places[2]
    points = build.reshape(grid, [batch, 1, count, 2])

    def coordinate(position: int, size: int) -> str:
        part = build.slice(points, 3, position, position + 1)
        part = build.reshape(part, [batch, 1, count])
        shifted = build.add("Add", part, build.number(1))
        if options.get("align_corners", 0):
            where = build.add("Mul", shifted, build.number((size - 1) / 2))
        else:
            where = build.add("Mul", shifted, build.number(size))
            where = build.add("Sub", where, build.number(1))
            where = build.add("Mul", where, build.number(0.5))
        where = build.add("Round", where) if mode == "nearest" else where
        if padding == "border":
            return limited(where, size)
        # So far out all is zero, and numbers stay those that an index can be.
        where = build.add("Max", where, build.number(-2))
        return build.add("Min", where, build.number(size + 1))

    def limited(where: str, size: int) -> str:
        where = build.add("Max", where, build.number(0))
        return build.add("Min", where, build.number(size - 1))

    flat = build.reshape(x, [batch, channels, height * width])

    def element(row: str, column: str) -> str:
        """What is at whole coordinates; zero beyond the border."""
        index = build.add("Mul", limited(row, height), build.number(width))
        index = build.add("Add", index, limited(column, width))
        index = build.add("Cast", index, to=onnx.TensorProto.INT64)
        whole = build.number([batch, channels, count], np.int64)
        found = build.add("GatherElements", flat, build.add("Expand", index, whole), axis=2)
        for where, size in ((row, height), (column, width)):
            inside = build.add("Equal", where, limited(where, size))
            found = build.add("Where", inside, found, build.number(0))
        return found

    column, row = coordinate(0, width), coordinate(1, height)
    if mode == "nearest":
        result = element(row, column)
    else:
        top, left = build.add("Floor", row), build.add("Floor", column)
        one, parts = build.number(1), []
        lower, right = build.add("Sub", row, top), build.add("Sub", column, left)
        for down in (False, True):
            for along in (False, True):
                a = lower if down else build.add("Sub", one, lower)
                b = right if along else build.add("Sub", one, right)
                r = build.add("Add", top, one) if down else top
                c = build.add("Add", left, one) if along else left
                parts.append(build.add("Mul", element(r, c), build.add("Mul", a, b)))
        result = build.add("Add", *parts[:2])
        for part in parts[2:]:
            result = build.add("Add", result, part)
    build.reshape(result, [batch, channels, places[1], places[2]], output=node.output[0])


def _affine_grid(node: onnx.NodeProto, build: Builder) -> None:
    """The corners of an image or a volume, or the middles of its elements, are at -1 and 1."""
    theta, size = node.input[0], build.known(node.input[1])
    if size is None:
        build.refuse("its size is no constant: give it as an initializer")
    batch, _, *sizes = size.tolist()
    lines = []
    for count in sizes:
        places = np.arange(count)
        if not attributes(node).get("align_corners", 0):
            lines.append((2 * places + 1) / count - 1)
        elif count > 1:
            lines.append(2 * places / (count - 1) - 1)
        else:
            build.refuse("align_corners of a size of 1, which would divide by 0: leave it out")
    axes = np.meshgrid(*lines, indexing="ij")
    # The last dimension comes first, and a one for what is added.
    points = np.stack([*axes[::-1], np.ones(sizes)]).reshape(len(sizes) + 1, -1)
    points = np.broadcast_to(points, (batch, *points.shape))
    grid = build.add("MatMul", theta, build.number(points))
    grid = build.add("Transpose", grid, perm=[0, 2, 1])
    build.reshape(grid, [batch, *sizes, len(sizes)], output=node.output[0])


EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {
    "AffineGrid": _affine_grid,
    "AveragePool": _average_pool,
    "GridSample": _grid_sample,
    "MaxPool": _max_pool,
}
