# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an ONNX model to one MLIR module of linalg on tensors, by torch-mlir."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import shape_inference
from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras import onnx_importer

from baechi import init
from baechi.importer.common.errors import ImportFailure, Unsupported, UnsupportedOperations
from baechi.importer.common.module import Argument, annotate, name_operations, walk
from baechi.importer.onnx.graph import defaults, fix_sizes, lift_weights
from baechi.importer.onnx.simplify import simplify
from baechi.importer.onnx.versions import inline, inline_functions, modernise
from baechi.importer.torch import passes

_PIPELINES = (
    "builtin.module(func.func(convert-torch-onnx-to-torch),torch-lower-to-backend-contract,"
    "func.func(cse,canonicalize),torch-backend-to-linalg-on-tensors-backend-pipeline)",
)

_UNKNOWN_SIZE = "the size of its result is not known before the model runs: use constants for it"


@dataclasses.dataclass(frozen=True)
class ImportedModel:
    text: str  # the module
    operations: int  # linalg operations in it
    arguments: list[Argument]  # the inputs, then the weights
    results: list[str]
    weights: dict[str, np.ndarray]
    result_types: list[np.dtype]
    defaults: list[str]  # the weights that a call may give other values
    settled: list[str]  # inputs with defaults that are part of the module


def import_model(
    model: str | os.PathLike | onnx.ModelProto,
    sizes: Mapping[str, int] | None = None,
    name: str = "model",
) -> ImportedModel:
    """Imports a model as a module `name` with one function, `@step`.

    sizes: of the inputs' named dimensions, such as `{"batch": 8}`.
    Raises ImportFailure; UnsupportedOperations has all nodes that cannot be lowered.
    """
    file = "model" if isinstance(model, onnx.ModelProto) else os.fspath(model)
    model = _loaded(model)
    fix_sizes(model, sizes or {})
    try:
        model = inline(modernise(inline_functions(model, file), file))
        unsettled = defaults(model)
        settled = _with_defaults(model) - set(unsettled)
        model = simplify(model, file, unsettled)
        weights = lift_weights(model, unsettled)
        model = shape_inference.infer_shapes(model, data_prop=True)
        _name_nodes(model.graph)
        text = _torch_module(model)
    except (onnx_importer.OnnxImportError, shape_inference.InferenceError, ValueError) as error:
        raise ImportFailure(f"{file}: {error}") from error
    (lowered,) = passes.lower([text], _PIPELINES)
    if lowered.problems:
        if unsupported := _unsupported(model, file):
            notes = _disagreements(model, file)
            raise UnsupportedOperations(unsupported, "docs/onnx.md", notes)
        raise ImportFailure(f"{file} cannot be lowered:\n  " + "\n  ".join(lowered.problems[:20]))
    arguments = [
        Argument(value.name, _initial(value, weights.get(value.name), seed=i + 1), None)
        for i, value in enumerate(model.graph.input)
    ]
    results = [value.name for value in model.graph.output]
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(lowered.text)
        if dynamic := _dynamic(model, module, file):
            raise UnsupportedOperations(dynamic, guide="docs/onnx.md")
        annotate(ir, module, name, arguments, results)
        count = name_operations(ir, module, functools.partial(passes.location_name, ir))
        text = module.operation.get_asm(enable_debug_info=True)
    types = [value.type.tensor_type.elem_type for value in model.graph.output]
    result_types = [onnx.helper.tensor_dtype_to_np_dtype(each) for each in types]
    return ImportedModel(
        text, count, arguments, results, weights, result_types, unsettled, sorted(settled)
    )


def _with_defaults(model: onnx.ModelProto) -> set[str]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    return {value.name for value in model.graph.input} & initializers


def _loaded(model: str | os.PathLike | onnx.ModelProto) -> onnx.ModelProto:
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    file = pathlib.Path(model)
    if not file.is_file():
        raise ImportFailure(f"{file}: no such file")
    try:
        loaded = onnx.load(file)
        onnx.checker.check_model(loaded)
    except Exception as error:  # protobuf and onnx raise many kinds
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ImportFailure(f"{file}: not a valid ONNX model: {reason}") from error
    return loaded


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Every node has a name: its own without a leading slash, or its result's."""
    for node in graph.node:
        given = node.name.lstrip("/")
        result = next(filter(None, node.output)).lstrip("/")
        node.name = given or f"{result}/{node.op_type}"


class _Named(onnx_importer.NodeImporter):
    """Gives operations the locations that are their nodes' names."""

    __slots__ = ()

    def import_node(self, node: onnx.NodeProto):
        with ir.Location.name(node.name, context=self._c):
            return super().import_node(node)


def _torch_module(model: onnx.ModelProto) -> str:
    context = ir.Context()
    torch_dialect.register_dialect(context)
    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=context).operation
    importer = onnx_importer.NodeImporter.define_function(info.main_graph, module)
    importer.__class__ = _Named  # define_function makes no other
    importer.import_all()
    return module.get_asm(enable_debug_info=True)


def _disagreements(model: onnx.ModelProto, file: str) -> list[str]:
    """What follows shapes that do not agree has none, and cannot be lowered for that."""
    try:
        shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        found = str(error).partition("(op_type:")[2].splitlines()
        # The first: what follows has no shape for that.
        return (
            [f"{file}: with these sizes shapes do not agree: (op_type:{found[0]}"] if found else []
        )
    return []


def _unsupported(model: onnx.ModelProto, file: str) -> list[Unsupported]:
    """The nodes that torch-mlir does not lower when they are alone."""
    graph = model.graph
    known = {value.name: value for value in [*graph.input, *graph.value_info, *graph.output]}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    texts, found = {}, []
    for node in graph.node:
        inputs = [known[n] for n in dict.fromkeys(node.input) if n in known and n not in constants]
        outputs = [known[n] for n in node.output if n in known]
        held = [constants[n] for n in dict.fromkeys(node.input) if n in constants]
        alone = onnx.helper.make_graph([node], "node", inputs, outputs, initializer=held)
        single = onnx.helper.make_model(alone, opset_imports=list(model.opset_import))
        single.ir_version = model.ir_version
        place = Unsupported(node.op_type, node.name, file)
        try:
            texts[node.name] = (place, _torch_module(single))
        except Exception:  # it cannot even be written down
            found.append(place)
    lowered = passes.lower([text for _, text in texts.values()], _PIPELINES)
    for (place, _), result in zip(texts.values(), lowered, strict=True):
        if result.problems:
            found.append(place)
    return found


def _dynamic(model: onnx.ModelProto, module: ir.Module, file: str) -> list[Unsupported]:
    """The nodes whose results have sizes that are not known."""
    kinds = {node.name: node.op_type for node in model.graph.node}
    found: dict[str, Unsupported] = {}

    def look(operation):
        for result in operation.results:
            if isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape:
                name = passes.location_name(ir, operation.location)
                kind = kinds.get(name, operation.name)
                found.setdefault(name, Unsupported(kind, name, file, _UNKNOWN_SIZE))

    walk(ir, module, look)
    return list(found.values())


def _initial(value: onnx.ValueInfoProto, weight: np.ndarray | None, seed: int) -> init.Init:
    """Weights like themselves; inputs small numbers."""
    if weight is not None:
        return init.from_example(weight, seed)
    kind = value.type.tensor_type
    shape = tuple(dimension.dim_value for dimension in kind.shape.dim)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if np.issubdtype(dtype, np.floating):
        return init.Uniform(shape, str(dtype), -1.0, 1.0, seed)
    return init.RandInt(shape, str(dtype), 0, 2, seed)
