# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which part of a graph with its gradients is the forward pass, which the backward one."""

from __future__ import annotations

from typing import Any

import torch
from functorch.compile import default_partition


def partition(
    joint: torch.fx.GraphModule, inputs: Any, **options: Any
) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """Forward and backward graphs. Checkpoints are not computed again: what is drawn at
    random stays the same so, and what is kept between the two is on the host."""
    for node in joint.graph.nodes:
        node.meta.pop("recompute", None)
    _view_again(joint.graph)
    forward, backward = default_partition(joint, inputs, **options)
    # Dead code that draws random numbers, which the forward pass has drawn.
    for node in reversed(list(backward.graph.nodes)):
        if node.op == "call_function" and _is_forward(node) and not node.users:
            backward.graph.erase_node(node)
    backward.recompile()
    return forward, backward


def _view_again(graph: torch.fx.Graph) -> None:
    """Views for the backward pass are made there, of what they are views of: that is an
    input or kept anyway, and the same numbers are not moved twice."""
    places = {node: i for i, node in enumerate(graph.nodes)}
    for node in reversed(list(graph.nodes)):
        if not (getattr(node.target, "is_view", False) and _is_forward(node)):
            continue
        users = [user for user in node.users if user.op != "output" and not _is_forward(user)]
        if users:
            with graph.inserting_before(min(users, key=lambda user: places[user])):
                again = graph.node_copy(node)
            again.meta = dict(node.meta) | {"partitioner_tag": "is_backward"}
            places[again] = places[again.next]
            for user in users:
                user.replace_input_with(node, again)


def _is_forward(node: torch.fx.Node) -> bool:
    return node.meta.get("partitioner_tag") == "is_forward"
