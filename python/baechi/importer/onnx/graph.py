# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifies an ONNX graph before it is lowered: fixed sizes, folded shapes,
weights as inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from baechi.importer.common.errors import ImportFailure

# Larger constants are not folded: they are data, no shapes.
MOST_FOLDED = 4096
# Weights are lifted from this many elements on.
_FEWEST_LIFTED = 2
_NEW_EACH_TIME = ("Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike")
_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_FLOATING = (*_HALVES, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
# Inputs that must be known when the graph is lowered, by operator.
_STATIC = {
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Pad": (1, 2, 3),
    "Dropout": (1, 2),
    "Range": (0, 1, 2),
}


def fix_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    """Gives the inputs' named dimensions (`batch`) their sizes. Raises
    ImportFailure for those that are missing, and for names that no input has."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    for value in [*model.graph.input, *model.graph.output]:
        if (kind := value.type.WhichOneof("value")) not in ("tensor_type", None):
            raise ImportFailure(
                f"'{value.name}' is no tensor ({kind.removesuffix('_type')}), and only tensors "
                "go in and out: give its elements names of their own"
            )
    wanted = {}
    known = []
    for value in model.graph.input:
        if value.name in initializers:
            continue
        for position, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.HasField("dim_value") and dimension.dim_value > 0:
                continue
            if dimension.HasField("dim_value") and dimension.dim_value == 0:
                raise ImportFailure(
                    f"the input '{value.name}' has size 0 in dimension {position}, and a tensor "
                    "without elements is not supported: leave it out of the model"
                )
            name = dimension.dim_param or f"{value.name}.{position}"
            known.append(name)
            if name in sizes:
                dimension.dim_value = _size(name, sizes[name])
            else:
                wanted[name] = value.name
    if wanted:
        names = ", ".join(f"'{name}' of '{of}'" for name, of in wanted.items())
        raise ImportFailure(
            f"these dimensions have no size: {names}; give them as "
            f"sizes={{'{next(iter(wanted))}': 8}}, on the command line --set "
            f"{next(iter(wanted))}=8"
        )
    if unknown := [name for name in sizes if name not in known]:
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(known)) or "none"
        raise ImportFailure(
            f"no input has a dimension '{unknown[0]}' without a size; those that have none: {names}"
        )
    # What was inferred for names is inferred again for numbers.
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _size(name: str, size: int) -> int:
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
        without = ", and a tensor without elements is not supported" if size == 0 else ""
        raise ImportFailure(f"size {size!r} of '{name}' is no number of 1 or more{without}")
    return int(size)


def every_node(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """Those of branches and loops, too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from every_node(attribute.g)


def defaults(model: onnx.ModelProto) -> list[str]:
    """The initializers that are inputs, too, and whose values calls may give. Only numbers
    that no size comes of: what is compiled must not depend on them. Before version 4 every
    initializer had to be an input, so that says nothing."""
    if model.ir_version < 4:
        return []
    declared = {value.name for value in model.graph.input}
    static = _static(model.graph)
    return [
        tensor.name
        for tensor in model.graph.initializer
        if tensor.name in declared - static and tensor.data_type in _FLOATING
    ]


def _static(graph: onnx.GraphProto) -> set[str]:
    return {
        node.input[i]
        for node in every_node(graph)
        for i in _STATIC.get(node.op_type, ())
        if i < len(node.input)
    }


def fold(model: onnx.ModelProto, unsettled: Collection[str] = ()) -> onnx.ModelProto:
    """Computes what is known before the graph runs: shapes and what comes of them, but
    nothing of the initializers that are `unsettled`."""
    while True:
        model = shape_inference.infer_shapes(model, data_prop=True)
        graph = model.graph
        known = small_values(graph, unsettled)
        shapes = known_shapes(graph)
        folded: dict[str, np.ndarray] = {}
        kept = []
        for node in graph.node:
            values = known_results(model, node, known | folded, shapes)
            if values is None:
                kept.append(node)
            else:
                folded |= dict(zip(node.output, values))
        if not folded:
            return model
        del graph.node[:]
        graph.node.extend(kept)
        used = {name for node in every_node(graph) for name in node.input}
        used |= {o.name for o in graph.output}
        graph.initializer.extend(
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in folded.items()
            if name in used
        )
        del graph.value_info[:]
        for value in graph.output:
            if value.name in folded:
                array = np.asarray(folded[value.name])
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                value.CopyFrom(helper.make_tensor_value_info(value.name, kind, array.shape))


def small_values(graph: onnx.GraphProto, unsettled: Collection[str]) -> dict[str, np.ndarray]:
    """The initializers that are no data."""
    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if int(np.prod(tensor.dims)) <= MOST_FOLDED and tensor.name not in unsettled
    }


def known_shapes(graph: onnx.GraphProto) -> dict[str, list[int]]:
    """The shapes that are known wholly."""
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.value_info, *graph.input]:
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim):
            shapes[value.name] = [d.dim_value for d in kind.shape.dim]
    return shapes


def known_results(model, node, known, shapes) -> list[np.ndarray] | None:
    """What a node gives, where its inputs are known; None where they are not."""
    if node.op_type == "Shape" and node.input[0] in shapes:
        part = {a.name: a.i for a in node.attribute}
        shape = shapes[node.input[0]][part.get("start", 0) : part.get("end")]
        return [np.array(shape, np.int64)]
    if node.op_type == "Size" and node.input[0] in shapes:
        return [np.array(math.prod(shapes[node.input[0]]), np.int64)]
    if node.op_type in _NEW_EACH_TIME or any(a.HasField("g") for a in node.attribute):
        return None
    inputs = [name for name in dict.fromkeys(node.input) if name]
    if node.op_type != "Constant" and not (inputs and all(name in known for name in inputs)):
        return None
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(known[name].dtype), known[name].shape
        )
        for name in inputs
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    alone = helper.make_graph([node], "node", declared, outputs)
    try:
        single = helper.make_model(alone, opset_imports=list(model.opset_import))
        values = ReferenceEvaluator(single).run(None, {name: known[name] for name in inputs})
    except Exception:  # the reference lacks some operators: they are not folded
        return None
    most = MOST_FOLDED if node.op_type != "Constant" else float("inf")
    # A sequence is no array.
    arrays = all(isinstance(value, np.ndarray | np.generic) for value in values)
    return values if arrays and all(np.size(value) <= most for value in values) else None


def lift_weights(model: onnx.ModelProto, unsettled: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Makes inputs of the weights, and returns their values. Numbers, and what
    operators must know beforehand, stay in the graph, in a form that is printed; those
    that are `unsettled` are inputs all the same."""
    graph = model.graph
    static = _static(graph)
    weights, kept = {}, []
    for tensor in graph.initializer:
        value = numpy_helper.to_array(tensor)
        floating = tensor.data_type in _FLOATING
        large = value.ndim > 0 and value.size >= (_FEWEST_LIFTED if floating else 64)
        if large and tensor.name not in static or tensor.name in unsettled:
            weights[tensor.name] = value
        else:
            # torch-mlir reads numbers of no other form, but halves as bytes alone.
            half = tensor.data_type in _HALVES
            flat = value.tobytes() if half else value.ravel().tolist()
            kept.append(
                helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, flat, raw=half)
            )
    del graph.initializer[:]
    graph.initializer.extend(kept)
    declared = {value.name: value for value in graph.input}
    for name, value in weights.items():
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        exact = helper.make_tensor_value_info(name, kind, value.shape)
        if name in declared:
            declared[name].CopyFrom(exact)
        else:
            graph.input.append(exact)
    constants = {tensor.name for tensor in kept}
    inputs = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(inputs)
    return weights
