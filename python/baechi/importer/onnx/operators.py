# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX nodes that torch-mlir lacks or lowers to something else, as other ONNX nodes, by
the operators' own definitions."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import onnx
from onnx import numpy_helper

from baechi.importer.common.errors import Unsupported
from baechi.importer.onnx import numbers, products, recurrent, resize, transposed, windows
from baechi.importer.onnx.builder import Builder, Refused, attributes
from baechi.importer.onnx.control import MOST_TURNS

# Operators that a later opset changed may mean something else.
_NEWEST = 25
# More largest elements are left to be reported.
_MOST_PASSES = 64
_SEQUENCES = (
    "ConcatFromSequence",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceMap",
    "SplitToSequence",
)
_ON_VALUES = "how large its result is depends on values, and sizes are fixed: use Where instead"


def expand(model: onnx.ModelProto, file: str, unsettled: Collection[str] = ()) -> list[Unsupported]:
    """Replaces such nodes, in place; the model's types must be inferred. Of the initializers
    that are `unsettled` no value is used. Returns those that would be computed otherwise."""
    graph = model.graph
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
    constants = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if tensor.name not in unsettled
    }
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    shapes = {value.name: _shape(value) for value in values}
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    nodes = list(graph.node)
    del graph.node[:]
    refused = []
    for node in nodes:
        own = node.domain in ("", "ai.onnx")
        try:
            if own:
                _look_for_first(node, opset)
            if not own or node.op_type not in _EXPANSIONS and opset <= _NEWEST:
                graph.node.append(node)
                continue
            _look_for_later(node, opset)
            build = Builder(graph, node, opset, types, shapes, constants)
            _EXPANSIONS.get(node.op_type, _as_it_is)(node, build)
        except Refused as error:
            result = next(filter(None, node.output))
            name = node.name or f"{result}/{node.op_type}"
            refused.append(Unsupported(node.op_type, name.lstrip("/"), file, str(error)))
    return refused


def _look_for_first(node: onnx.NodeProto, opset: int) -> None:
    if onnx.defs.has(node.op_type, opset):
        return
    newer = range(opset + 1, onnx.defs.onnx_opset_version() + 1)
    first = next((each for each in newer if onnx.defs.has(node.op_type, each)), None)
    if first is not None:
        raise Refused(
            f"opset {opset} has no such operator: export the model for opset {first} or a newer one"
        )


def _look_for_later(node: onnx.NodeProto, opset: int) -> None:
    if opset > _NEWEST and onnx.defs.has(node.op_type, opset):
        since = onnx.defs.get_schema(node.op_type, opset).since_version
        if since > _NEWEST:
            raise Refused(
                f"the operator of opset {since} is not supported: export the model for "
                f"opset {_NEWEST} or an older one"
            )


def _as_it_is(node: onnx.NodeProto, build: Builder) -> None:
    build.keep()


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    kind = value.type.tensor_type
    known = all(d.HasField("dim_value") for d in kind.shape.dim)
    return [d.dim_value for d in kind.shape.dim] if known else []


def _of_values(node: onnx.NodeProto, build: Builder) -> None:
    build.refuse(_ON_VALUES)


def _tf_idf(node: onnx.NodeProto, build: Builder) -> None:
    build.refuse("its counts are loops over numbers: compute them before the model")


def _loop(node: onnx.NodeProto, build: Builder) -> None:
    build.refuse(
        f"how often its body runs must be known before, at most {MOST_TURNS} times, and what it "
        "collects not be empty: give its length as a constant"
    )


def _sequence(node: onnx.NodeProto, build: Builder) -> None:
    build.refuse(
        "which tensors are in the sequence must be known before: give places and lengths as "
        "constants, and no sequence as an input or a result"
    )


def _reciprocal(node: onnx.NodeProto, build: Builder) -> None:
    build.add("Div", build.number(1), node.input[0], output=node.output[0])


def _softsign(node: onnx.NodeProto, build: Builder) -> None:
    (x,) = node.input
    size = build.add("Add", build.add("Abs", x), build.number(1))
    build.add("Div", x, size, output=node.output[0])


def _cumsum(node: onnx.NodeProto, build: Builder) -> None:
    """With the sums of 1, 2, 4, ... elements before (Hillis and Steele, 1986)."""
    options = attributes(node)
    axis, size = build.known(node.input[1]), build.shape(node.input[0])
    if axis is None or not size:
        return build.keep()
    dim = int(axis) % len(size)
    reverse = options.get("reverse", 0)
    rank = len(size)

    def shifted(x: str, step: int, outside: float) -> str:
        bounds = (step, size[dim]) if reverse else (0, size[dim] - step)
        pads = [0] * (2 * rank)
        pads[dim + rank if reverse else dim] = step
        kept = build.slice(x, dim, *bounds)
        return build.add("Pad", kept, build.number(pads, np.int64), build.number(outside))

    x, step = node.input[0], 1
    nothing = -0.0 if build.floating else 0  # which changes no sign
    if options.get("exclusive", 0):
        x = shifted(x, 1, 0)
    while step < size[dim]:
        x = build.add("Add", x, shifted(x, step, nothing))
        step *= 2
    build.add("Identity", x, output=node.output[0])


def _topk(node: onnx.NodeProto, build: Builder) -> None:
    """Repeated maximum; the first among equals. NaNs come first, as they do in a maximum
    and in a minimum."""
    options = attributes(node)
    x = node.input[0]
    count, shape = build.known(node.input[1]), build.shape(x)
    if count is None or not shape or int(count.flat[0]) > _MOST_PASSES or not count.flat[0]:
        return build.keep()
    dim = options.get("axis", -1) % len(shape)
    largest = options.get("largest", 1)
    places = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    places = build.number(places, np.int64)
    end = build.number(build.least() if largest else build.greatest())
    free, values, indices = "", [], []
    for _ in range(int(count.flat[0])):
        left = build.add("Where", free, x, end) if free else x
        best = build.reduce("ReduceMax" if largest else "ReduceMin", left, [dim])
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


def _reverse_sequence(node: onnx.NodeProto, build: Builder) -> None:
    """Each line's first elements, as many as its length says, from the last one on."""
    options = attributes(node)
    x, lengths = node.input
    shape = build.shape(x)
    if not shape:
        return build.keep()
    time, batch = options.get("time_axis", 0), options.get("batch_axis", 1)
    along = [-1 if d == time else 1 for d in range(len(shape))]
    places = build.number(np.arange(shape[time]).reshape(along), np.int64)
    form = [shape[batch] if d == batch else 1 for d in range(len(shape))]
    lengths = build.add("Reshape", lengths, build.number(form, np.int64))
    last = build.add("Sub", lengths, build.number(1, np.int64))
    turned = build.add("Sub", last, places)
    index = build.add("Where", build.add("Less", places, lengths), turned, places)
    index = build.add("Expand", index, build.number(shape, np.int64))
    build.add("GatherElements", x, index, output=node.output[0], axis=time)


def _mean_variance_normalization(node: onnx.NodeProto, build: Builder) -> None:
    """With the variance of what is centred, which loses no digits."""
    axes = list(attributes(node).get("axes", [0, 2, 3]))
    x = node.input[0]
    centred = build.add("Sub", x, build.reduce("ReduceMean", x, axes))
    squares = build.add("Mul", centred, centred)
    deviation = build.add("Sqrt", build.reduce("ReduceMean", squares, axes))
    divisor = build.add("Add", deviation, build.number(1e-9))
    build.add("Div", centred, divisor, output=node.output[0])


def _depth_to_space(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir cuts the channels in one way for both modes."""
    options = attributes(node)
    block, mode = options["blocksize"], options.get("mode", b"DCR")
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


_EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {
    "Compress": _of_values,
    "NonMaxSuppression": _of_values,
    "NonZero": _of_values,
    "Unique": _of_values,
    "DepthToSpace": _depth_to_space,
    "Reciprocal": _reciprocal,
    "Softsign": _softsign,
    "CumSum": _cumsum,
    "Loop": _loop,
    "Scan": _loop,
    **dict.fromkeys(_SEQUENCES, _sequence),
    "TfIdfVectorizer": _tf_idf,
    "TopK": _topk,
    "ReverseSequence": _reverse_sequence,
    "MeanVarianceNormalization": _mean_variance_normalization,
    **numbers.EXPANSIONS,
    **products.EXPANSIONS,
    **recurrent.EXPANSIONS,
    **resize.EXPANSIONS,
    **transposed.EXPANSIONS,
    **windows.EXPANSIONS,
}
