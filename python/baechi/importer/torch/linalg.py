# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a traced graph to a module of linalg on tensors, by torch-mlir."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import torch
from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_importer import ContextCache, FxImporter

from baechi.importer.common.errors import ImportFailure, Unsupported, UnsupportedOperations
from baechi.importer.common.module import Argument, annotate, name_operations
from baechi.importer.torch import passes
from baechi.importer.torch.names import name_of, origin_of


def lower(
    graph: torch.fx.GraphModule,
    name: str,
    arguments: Sequence[Argument],
    results: Sequence[str],
) -> tuple[str, int]:
    """The module's text, and how many linalg operations it has.

    Raises UnsupportedOperations with all operations that have no lowering.
    """
    text, problems = _torch_module(graph, [argument.name for argument in arguments])
    if not problems:
        (lowered,) = passes.lower([text])
        text, problems = lowered.text, lowered.problems
    if problems:
        if found := unsupported(graph):
            raise UnsupportedOperations(found, guide="docs/torch.md")
        raise ImportFailure("torch-mlir cannot lower the step:\n  " + "\n  ".join(problems[:20]))
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        annotate(ir, module, name, arguments, results)
        count = name_operations(ir, module, functools.partial(passes.location_name, ir))
        # What is said of the whole step is of no operation or argument.
        for function in module.body.operations:
            function.operation.location = ir.Location.unknown()
        return module.operation.get_asm(enable_debug_info=True), count


def _torch_module(graph: torch.fx.GraphModule, names: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The graph in torch-mlir's dialect, or why it cannot be written so. names: of its
    arguments."""
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    importer._cc = _Named(context, py_attr_tracker=importer._py_attr_tracker)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    importer._cc.arguments = dict(zip(placeholders, names))
    try:
        importer.import_stateless_graph(graph.graph)
    except (NotImplementedError, ir.MLIRError, RuntimeError, TypeError, KeyError) as error:
        return "", [str(error)]
    return importer.module.operation.get_asm(enable_debug_info=True), []


class _Named(ContextCache):
    """Gives operations and arguments the locations that are their names."""

    arguments: dict[torch.fx.Node, str]

    def get_node_location(self, node: torch.fx.Node) -> ir.Location:
        return ir.Location.name(self.arguments.get(node) or name_of(node), context=self._c)


def unsupported(graph: torch.fx.GraphModule) -> list[Unsupported]:
    """The operations that torch-mlir does not lower when they are alone; each
    kind with the same types is tried once."""
    nodes = [
        node
        for node in graph.graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    ]
    alone = {node: _alone(node) for node in nodes}
    kinds = {str(module.graph): module for module in alone.values()}
    wrong, texts = set(), {}
    for kind, module in kinds.items():
        text, problems = _torch_module(module)
        if problems:
            wrong.add(kind)
        else:
            texts[kind] = text
    lowered = passes.lower(list(texts.values()))
    wrong |= {kind for kind, result in zip(texts, lowered, strict=True) if result.problems}
    return [
        Unsupported(str(node.target), name_of(node), origin_of(node).source)
        for node in nodes
        if str(alone[node].graph) in wrong
    ]


def _alone(node: torch.fx.Node) -> torch.fx.GraphModule:
    """A graph of one operation; its tensors are arguments, named by their types."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for used in node.all_input_nodes:
        value = used.meta["val"]
        kind = f"{getattr(value, 'dtype', '')}_{'x'.join(map(str, getattr(value, 'shape', ())))}"
        copies[used] = graph.placeholder(f"a{len(copies)}_{kind}".replace(".", "_"))
        copies[used].meta = {"val": value}
    call = graph.node_copy(node, copies.__getitem__)
    call.name = "call"
    value = node.meta["val"]
    if isinstance(value, torch.Tensor):
        graph.output((call,))
        return torch.fx.GraphModule(torch.nn.Module(), graph)
    parts = []
    for i, item in enumerate(value):
        if isinstance(item, torch.Tensor):
            parts.append(graph.call_function(operator.getitem, (call, i)))
            parts[-1].meta["val"] = item
    graph.output(tuple(parts))
    return torch.fx.GraphModule(torch.nn.Module(), graph)
