# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An ONNX model as torch-mlir lowers it to what it is: without what is known beforehand, and
with nodes in other words where it has others, in branches, too."""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import helper

from baechi.importer.common.errors import Unsupported, UnsupportedOperations
from baechi.importer.onnx.control import flatten, rename
from baechi.importer.onnx.graph import every_node, fold
from baechi.importer.onnx.operators import expand


def simplify(model: onnx.ModelProto, file: str, unsettled: Collection[str]) -> onnx.ModelProto:
    """Uses no value of the initializers that are `unsettled`. Raises UnsupportedOperations
    for nodes that would be computed otherwise than ONNX says."""
    refused: list[Unsupported] = []
    model = _simplified(model, file, unsettled, refused)
    if refused:
        raise UnsupportedOperations(refused, guide="docs/onnx.md")
    return model


def _simplified(
    model: onnx.ModelProto, file: str, unsettled: Collection[str], refused: list[Unsupported]
) -> onnx.ModelProto:
    model = fold(model, unsettled)
    while flatten(model, unsettled):
        model = fold(model, unsettled)
    for node in model.graph.node:
        if node.op_type == "If" and node.domain in ("", "ai.onnx"):
            for attribute in node.attribute:
                _branch(model, node, attribute, file, unsettled, refused)
    refused += expand(model, file, unsettled)
    return model


def _branch(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    attribute: onnx.AttributeProto,
    file: str,
    unsettled: Collection[str],
    refused: list[Unsupported],
) -> None:
    """As a model of its own, whose inputs are what it takes from around it. Its constants
    become the model's, which may make weights of them."""
    graph, branch = model.graph, attribute.g
    taken = {name for inner in every_node(branch) for name in inner.input}
    taken |= {value.name for value in branch.output}
    outer = [t for t in graph.initializer if t.name in taken]
    around = {t.name for t in outer}
    values = {v.name: v for v in [*graph.input, *graph.value_info, *graph.output]}
    inputs = [v for name, v in values.items() if name in taken - around]
    alone = helper.make_graph(
        list(branch.node), branch.name, inputs, branch.output, [*outer, *branch.initializer]
    )
    single = helper.make_model(
        alone, opset_imports=list(model.opset_import), ir_version=model.ir_version
    )
    single = _simplified(single, file, unsettled, refused)
    place = f"{node.name or next(filter(None, node.output))}/{attribute.name}"
    names = {}
    for tensor in single.graph.initializer:
        if tensor.name not in around:
            names[tensor.name] = f"{place}/{tensor.name}"
            graph.initializer.append(tensor)
            graph.initializer[-1].name = names[tensor.name]
    made = {name for inner in single.graph.node for name in inner.output}
    del branch.node[:], branch.initializer[:]
    for inner in single.graph.node:
        rename(inner, names)
        branch.node.append(inner)
    for value in branch.output:
        if value.name not in made:
            # A branch's result is one of its own nodes.
            result = f"{place}/{value.name}/result"
            source = names.get(value.name, value.name)
            branch.node.append(helper.make_node("Identity", [source], [result], result))
            value.name = result
