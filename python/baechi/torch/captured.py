# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graphs that torch.compile finds: what they take, and how they are traced."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch

from baechi.importer.torch.refusals import DATA_DEPENDENT, depends_on_values
from baechi.torch import gpu
from baechi.torch.graph_program import origin_in_user_code


class WithNumbers(torch.fx.Interpreter):
    """Runs a graph that takes some numbers as they are. What depends on values is told with
    the user's line."""

    def run_node(self, n: torch.fx.Node) -> Any:
        try:
            return super().run_node(n)
        except DATA_DEPENDENT as error:
            raise depends_on_values(error, origin_in_user_code(n, backward=False).source) from error

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if target == "item" and not isinstance(args[0], torch.Tensor):
            return args[0]
        return super().call_method(target, args, kwargs)


class OnGpu(WithNumbers):
    """Of tensors on a GPU, for which stand-ins on the CPU come."""

    def run_node(self, n: torch.fx.Node) -> Any:
        found = super().run_node(n)
        # Moved to another device it is a copy, which may be changed, while a stand-in stays itself.
        return found.clone() if _moves(n) else found

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        return super().call_function(target, gpu.on_cpu(args), gpu.on_cpu(kwargs))

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if target == "cuda":
            return args[0]  # it is there already
        return super().call_method(target, gpu.on_cpu(args), gpu.on_cpu(kwargs))


def _moves(node: torch.fx.Node) -> bool:
    """Whether it takes a tensor of one device and gives one of another."""
    taken = next(iter(node.all_input_nodes), None)
    values = [each.meta.get("example_value") for each in (node, taken) if each is not None]
    devices = {value.device for value in values if isinstance(value, torch.Tensor)}
    return len(devices) > 1


def with_lifted_tensors(
    module: torch.fx.GraphModule,
) -> tuple[torch.fx.GraphModule, list[str]]:
    """A copy with further inputs for the tensors that a graph holds, as those of an optimizer,
    which it changes; and where they are found. PyTorch lets go of them with the optimizer."""
    if not any(_is_tensor(module, node) for node in module.graph.nodes):
        return module, []
    graph = copy.deepcopy(module.graph)
    inputs: dict[str, torch.fx.Node] = {}
    behind = next(node for node in graph.nodes if node.op != "placeholder")
    for node in graph.find_nodes(op="get_attr"):
        if not _is_tensor(module, node):
            continue  # a function that the graph calls
        path = str(node.target)
        if path not in inputs:
            with graph.inserting_before(behind):
                inputs[path] = graph.placeholder(node.name)
        node.replace_all_uses_with(inputs[path])
        if node is behind:
            behind = node.next
        graph.erase_node(node)
    return torch.fx.GraphModule(module, graph), list(inputs)


def _is_tensor(module: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    return node.op == "get_attr" and isinstance(attribute(module, str(node.target)), torch.Tensor)


def attribute(module: torch.fx.GraphModule, path: str) -> Any:
    return operator.attrgetter(path)(module)


def is_number(node: torch.fx.Node) -> bool:
    return bool(node.users) and all(
        user.op == "call_method" and user.target == "item" for user in node.users
    )
