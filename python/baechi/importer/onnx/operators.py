# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX nodes that torch-mlir lacks or lowers to something else, as other ONNX nodes, by
the operators' own definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

# More largest elements are left to be reported.
_MOST_PASSES = 64


def expand(model: onnx.ModelProto) -> None:
    """Replaces such nodes, in place; the model's types must be inferred."""
    graph = model.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    shapes = {value.name: _shape(value) for value in values}
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        known = node.op_type in _EXPANSIONS and node.domain in ("", "ai.onnx")
        if known and types.get(node.input[0]):
            dtype = helper.tensor_dtype_to_np_dtype(types[node.input[0]])
            _EXPANSIONS[node.op_type](node, _Builder(graph, node, dtype, shapes, constants))
        else:
            graph.node.append(node)


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    kind = value.type.tensor_type
    known = all(d.HasField("dim_value") for d in kind.shape.dim)
    return [d.dim_value for d in kind.shape.dim] if known else []


class _Builder:
    """Adds nodes in place of one; they have its name and a number."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        node: onnx.NodeProto,
        dtype: np.dtype,
        shapes: Mapping[str, list[int]],
        constants: Mapping[str, np.ndarray],
    ):
        self._graph, self._name, self._count = graph, node.name or node.output[0], 0
        self._node, self._dtype, self._shapes, self._constants = node, dtype, shapes, constants

    def keep(self) -> None:
        """Leaves the node as it is."""
        self._graph.node.append(self._node)

    def shape(self, name: str) -> list[int]:
        """Empty where it is unknown."""
        return self._shapes.get(name, [])

    def known(self, name: str) -> np.ndarray | None:
        """A constant's value."""
        return self._constants.get(name)

    @property
    def floating(self) -> bool:
        return np.issubdtype(self._dtype, np.floating)

    def least(self):
        return -np.inf if self.floating else np.iinfo(self._dtype).min

    def greatest(self):
        return np.inf if self.floating else np.iinfo(self._dtype).max

    def add(self, operator: str, *inputs: str, output: str = "", **attributes) -> str:
        self._count += 1
        own = f"{self._name}/{operator}_{self._count}"
        made = helper.make_node(operator, inputs, [output or own], own, **attributes)
        self._graph.node.append(made)
        return made.output[0]

    def number(self, value, dtype=None) -> str:
        """A constant, of the node's type."""
        self._count += 1
        name = f"{self._name}/constant_{self._count}"
        array = np.asarray(value, self._dtype if dtype is None else dtype)
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name


def _reciprocal(node: onnx.NodeProto, build: _Builder) -> None:
    build.add("Div", build.number(1), node.input[0], output=node.output[0])


def _softsign(node: onnx.NodeProto, build: _Builder) -> None:
    (x,) = node.input
    size = build.add("Add", build.add("Abs", x), build.number(1))
    build.add("Div", x, size, output=node.output[0])


def _cumsum(node: onnx.NodeProto, build: _Builder) -> None:
    """With the sums of 1, 2, 4, ... elements before (Hillis and Steele, 1986)."""
    given = _attributes(node)
    axis, size = build.known(node.input[1]), build.shape(node.input[0])
    if axis is None or not size:
        return build.keep()
    dim = int(axis) % len(size)
    reverse = given.get("reverse", 0)
    axes = build.number([dim], np.int64)

    def shifted(x: str, step: int) -> str:
        bounds = (step, size[dim]) if reverse else (0, size[dim] - step)
        kept = build.add("Slice", x, *(build.number([b], np.int64) for b in bounds), axes)
        pads = build.number([0, step] if reverse else [step, 0], np.int64)
        return build.add("Pad", kept, pads, build.number(0), axes)

    x, step = node.input[0], 1
    if given.get("exclusive", 0):
        x = shifted(x, 1)
    while step < size[dim]:
        x = build.add("Add", x, shifted(x, step))
        step *= 2
    build.add("Identity", x, output=node.output[0])


def _topk(node: onnx.NodeProto, build: _Builder) -> None:
    """Repeated maximum; the first among equals. NaNs come first, as they do in a maximum
    and in a minimum."""
    given = _attributes(node)
    x = node.input[0]
    count, shape = build.known(node.input[1]), build.shape(x)
    if count is None or not shape or int(count.flat[0]) > _MOST_PASSES or not count.flat[0]:
        return build.keep()
    dim = given.get("axis", -1) % len(shape)
    largest = given.get("largest", 1)
    places = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    places = build.number(places, np.int64)
    axes = build.number([dim], np.int64)
    end = build.number(build.least() if largest else build.greatest())
    free, values, indices = "", [], []
    for _ in range(int(count.flat[0])):
        left = build.add("Where", free, x, end) if free else x
        best = build.add("ReduceMax" if largest else "ReduceMin", left, axes, keepdims=1)
        hit = build.add("Equal", left, best)
        if build.floating:
            hit = build.add("Or", hit, build.add("IsNaN", left))
        hit = build.add("And", hit, free) if free else hit
        index = build.add("ArgMax", build.add("Cast", hit, to=onnx.TensorProto.INT32),
                          axis=dim, keepdims=1)  # fmt: skip
        other = build.add("Not", build.add("Equal", places, index))
        free = build.add("And", free, other) if free else other
        values.append(best)
        indices.append(index)
    for output, parts in zip(node.output, (values, indices)):
        if output:
            build.add("Concat", *parts, output=output, axis=dim)


def _reverse_sequence(node: onnx.NodeProto, build: _Builder) -> None:
    """Each line's first elements, as many as its length says, from the last one on."""
    given = _attributes(node)
    x, lengths = node.input
    shape = build.shape(x)
    if not shape:
        return build.keep()
    time, batch = given.get("time_axis", 0), given.get("batch_axis", 1)
    along = [-1 if d == time else 1 for d in range(len(shape))]
    places = build.number(np.arange(shape[time]).reshape(along), np.int64)
    form = [shape[batch] if d == batch else 1 for d in range(len(shape))]
    lengths = build.add("Reshape", lengths, build.number(form, np.int64))
    last = build.add("Sub", lengths, build.number(1, np.int64))
    turned = build.add("Sub", last, places)
    index = build.add("Where", build.add("Less", places, lengths), turned, places)
    index = build.add("Expand", index, build.number(shape, np.int64))
    build.add("GatherElements", x, index, output=node.output[0], axis=time)


def _mean_variance_normalization(node: onnx.NodeProto, build: _Builder) -> None:
    """With the variance of what is centred, which loses no digits."""
    axes = build.number(_attributes(node).get("axes", [0, 2, 3]), np.int64)
    x = node.input[0]
    centred = build.add("Sub", x, build.add("ReduceMean", x, axes, keepdims=1))
    squares = build.add("Mul", centred, centred)
    deviation = build.add("Sqrt", build.add("ReduceMean", squares, axes, keepdims=1))
    divisor = build.add("Add", deviation, build.number(1e-9))
    build.add("Div", centred, divisor, output=node.output[0])


def _depth_to_space(node: onnx.NodeProto, build: _Builder) -> None:
    """torch-mlir cuts the channels in one way for both modes."""
    given = _attributes(node)
    block, mode = given["blocksize"], given.get("mode", b"DCR")
    shape = build.shape(node.input[0])
    if len(shape) != 4:
        return build.keep()
    batch, channels, height, width = shape
    depth = channels // block**2
    if mode == b"CRD":
        cut, order = [batch, depth, block, block, height, width], [0, 1, 4, 2, 5, 3]
    else:
        cut, order = [batch, block, block, depth, height, width], [0, 3, 4, 1, 5, 2]
    parts = build.add("Reshape", node.input[0], build.number(cut, np.int64))
    moved = build.add("Transpose", parts, perm=order)
    joined = build.number([batch, depth, height * block, width * block], np.int64)
    build.add("Reshape", moved, joined, output=node.output[0])


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


_EXPANSIONS: dict[str, Callable[[onnx.NodeProto, _Builder], None]] = {
    "DepthToSpace": _depth_to_space,
    "Reciprocal": _reciprocal,
    "Softsign": _softsign,
    "CumSum": _cumsum,
    "TopK": _topk,
    "ReverseSequence": _reverse_sequence,
    "MeanVarianceNormalization": _mean_variance_normalization,
}
