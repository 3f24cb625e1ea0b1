# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Older opsets and operators that are functions of others, in ONNX's own words."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper, inliner, shape_inference, version_converter

from baechi.importer.common.errors import ImportFailure
from baechi.importer.onnx.graph import every_node
from baechi.importer.onnx.resize import FIRST_ROUNDINGS

# From this opset on the operators are those that the importer knows.
_OPSET = 13
# Operators with a definition by others that torch-mlir lacks, or has otherwise.
_FUNCTIONS = (
    "Attention",
    "CenterCropPad",
    "NegativeLogLikelihoodLoss",
    "RMSNormalization",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
)
_DOMAIN = "baechi.functions"


def modernise(model: onnx.ModelProto, file: str) -> onnx.ModelProto:
    """Of an older opset: the same model of a newer one."""
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), _OPSET)
    if version >= _OPSET:
        return model
    graph = model.graph
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        graph.node.extend(_flattened(node) if node.op_type == "Hardmax" else [node])
    resized = {n.output[0]: n.op_type for n in nodes if n.op_type in FIRST_ROUNDINGS}
    try:
        newer = version_converter.convert_version(model, _OPSET)
    except Exception as error:  # the converter raises many kinds
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise ImportFailure(
            f"{file}: opset {version} cannot be converted to {_OPSET}: {reason}; "
            f"export the model for opset {_OPSET} or a newer one"
        ) from error
    for node in newer.graph.node:
        if version < 11 and node.output[0] in resized:
            rounding = FIRST_ROUNDINGS[resized[node.output[0]]]
            modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
            node.attribute.extend(helper.make_attribute(*mode) for mode in modes.items())
    return newer


def _flattened(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Over all dimensions from the axis on; ONNX's converter leaves it as it is."""
    x, y = node.input[0], node.output[0]
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    name = node.name or f"{y}/Hardmax"
    return [
        helper.make_node("Flatten", [x], [f"{name}/flat"], f"{name}/Flatten", axis=axis),
        helper.make_node("Hardmax", [f"{name}/flat"], [f"{name}/lines"], name, axis=1),
        helper.make_node("Shape", [x], [f"{name}/sizes"], f"{name}/Shape"),
        helper.make_node("Reshape", [f"{name}/lines", f"{name}/sizes"], [y], f"{name}/Reshape"),
    ]


def inline_functions(model: onnx.ModelProto, file: str) -> onnx.ModelProto:
    """The model's own functions by their nodes; the sizes must be fixed."""
    if not model.functions:
        return model
    _give_defaults(model)
    try:
        whole = inliner.inline_local_functions(model)
        if whole.functions:  # those of other opsets
            whole = inliner.inline_local_functions(_typed(whole), convert_version=True)
    except Exception as error:  # the inliner raises RuntimeError of its own C++ errors
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise ImportFailure(
            f"{file}: the model's functions cannot be inlined: {reason}; inline them by "
            "onnx.inliner, or export the model without them"
        ) from error
    del whole.graph.value_info[:]
    return whole


def _give_defaults(model: onnx.ModelProto) -> None:
    """Calls get the attributes that they leave out; ONNX's inliner forgets them."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    for nodes in (model.graph, *model.functions):
        for node in every_node(nodes):
            if called := functions.get((node.domain, node.op_type, node.overload)):
                present = {attribute.name for attribute in node.attribute}
                missing = [a for a in called.attribute_proto if a.name not in present]
                node.attribute.extend(missing)


def inline(model: onnx.ModelProto) -> onnx.ModelProto:
    """Such operators by their definitions; the sizes must be fixed."""
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
    while nodes := [node for node in every_node(model.graph) if _defined(node, opset)]:
        # As functions of the model: the inliner has no type for an input that is left out.
        typed = _typed(model)
        types = {value.name: value.type for value in [*typed.graph.input, *typed.graph.value_info]}
        for number, node in enumerate(nodes):
            function = _definition(node, opset, types)
            function.name, function.domain = f"{node.op_type}_{number}", _DOMAIN
            del function.opset_import[:]
            function.opset_import.extend(model.opset_import)
            node.op_type, node.domain = function.name, _DOMAIN
            model.functions.append(function)
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
        model = inliner.inline_local_functions(model)
        kept = [each for each in model.opset_import if each.domain != _DOMAIN]
        del model.opset_import[:], model.graph.value_info[:]
        model.opset_import.extend(kept)
    return model


def _defined(node: onnx.NodeProto, opset: int) -> bool:
    own = node.op_type in _FUNCTIONS and node.domain in ("", "ai.onnx")
    return own and onnx.defs.has(node.op_type, opset)


def _definition(
    node: onnx.NodeProto, opset: int, types: Mapping[str, onnx.TypeProto]
) -> onnx.FunctionProto:
    """It depends on the node's attributes and on which inputs there are."""
    nothing = onnx.TypeProto()
    inputs = [types.get(name, nothing).SerializeToString() for name in node.input]
    schema = onnx.defs.get_schema(node.op_type, opset)
    function = onnx.FunctionProto()
    function.ParseFromString(
        schema.get_context_dependent_function(node.SerializeToString(), inputs)
    )
    return function


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    model = shape_inference.infer_shapes(model, data_prop=True)
    # The inliner looks for types there alone.
    model.graph.value_info.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )
    return model
