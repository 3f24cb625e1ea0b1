# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Older opsets and operators that are functions of others, in ONNX's own words."""

from __future__ import annotations

import onnx
from onnx import helper, inliner, shape_inference, version_converter

from baechi.importer.common.errors import ImportFailure

# From this opset on the operators are those that the importer knows.
_OPSET = 13
# Operators with a definition by others that torch-mlir lacks, or has otherwise.
_FUNCTIONS = (
    "AffineGrid",
    "CenterCropPad",
    "NegativeLogLikelihoodLoss",
    "SoftmaxCrossEntropyLoss",
)


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
    resized = {node.output[0] for node in nodes if node.op_type in ("Resize", "Upsample")}
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
            modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
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


def inline(model: onnx.ModelProto) -> onnx.ModelProto:
    """Such operators by their definitions; the sizes must be fixed."""
    if not any(n.op_type in _FUNCTIONS and n.domain in ("", "ai.onnx") for n in model.graph.node):
        return model
    model = shape_inference.infer_shapes(model, data_prop=True)
    # The inliner looks for types there alone.
    model.graph.value_info.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )
    names = [("", name) for name in _FUNCTIONS]
    model = inliner.inline_selected_functions(model, names, inline_schema_functions=True)
    del model.graph.value_info[:]
    return model
