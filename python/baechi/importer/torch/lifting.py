# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes arguments of a graph of the tensors that it holds and the numbers that it draws."""

from __future__ import annotations

from collections.abc import Callable

import torch

aten = torch.ops.aten
# What `torch.tensor(2.0)` is followed by.
_FRESH = {aten.lift_fresh.default, aten.lift_fresh_copy.default}
# Random numbers that depend on shapes alone.
_RANDOM = {
    aten.bernoulli.p,
    aten.cauchy.default,
    aten.exponential.default,
    aten.geometric.default,
    aten.log_normal.default,
    aten.normal.float_float,
    aten.normal_functional.default,
    aten.rand.default,
    aten.rand_like.default,
    aten.randint.default,
    aten.randint.low,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
    aten.randn.default,
    aten.randn_like.default,
    aten.randperm.default,
    aten.uniform.default,
}


def constants(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Makes arguments of the tensors that the graph holds. A single number that is
    written in the model's code stays."""
    graph, found = module.graph, []
    lifted: dict[str, torch.fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        value = getattr(module, node.target)
        if not isinstance(value, torch.Tensor):
            continue
        if value.dim() == 0 and all(user.target in _FRESH for user in node.users):
            with graph.inserting_before(node):
                call = aten.full.default, ([], value.item()), {"dtype": value.dtype}
                number = graph.call_function(*call)
            number.meta = dict(node.meta)
            node.replace_all_uses_with(number)
            graph.erase_node(node)
            continue
        if node.target not in lifted:
            lifted[node.target] = _further_argument(graph, f"constant_{len(found)}", node)
            found.append(value.detach())
        node.replace_all_uses_with(lifted[node.target])
        graph.erase_node(node)
    return found


def draws(graph: torch.fx.Graph) -> list[Callable[[], torch.Tensor]]:
    """Makes arguments of random numbers: PyTorch's generators draw them on the
    host, so that they are what an eager step would draw."""
    found: list[Callable[[], torch.Tensor]] = []
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _RANDOM:
            continue
        found.append(_draw(node))
        argument = _further_argument(graph, f"random_{len(found) - 1}", node)
        node.replace_all_uses_with(argument)
        graph.erase_node(node)
    return found


def _draw(node: torch.fx.Node) -> Callable[[], torch.Tensor]:
    """The operator itself; of tensors it takes shapes and strides alone, by which PyTorch
    chooses how it draws."""
    target, arguments, options = node.target, node.args, dict(node.kwargs)

    def example(used: torch.fx.Node) -> torch.Tensor:
        value = used.meta["val"]
        if 0 in value.stride():
            return torch.empty(value.shape, dtype=value.dtype)
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)

    arguments = torch.fx.map_arg(arguments, example)
    return lambda: target(*arguments, **options)


def _further_argument(graph: torch.fx.Graph, name: str, like: torch.fx.Node) -> torch.fx.Node:
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    before = placeholders[-1].next if placeholders else next(iter(graph.nodes))
    with graph.inserting_before(before):
        argument = graph.placeholder(name)
    argument.meta = dict(like.meta)
    return argument
