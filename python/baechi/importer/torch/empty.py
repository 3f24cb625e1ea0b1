# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without elements: what is computed of nothing else is known beforehand."""

from __future__ import annotations

import torch

aten = torch.ops.aten


def fold_empty(graph: torch.fx.Graph) -> None:
    """Replaces operations that give no elements, and those all of whose tensors have none
    (a product over an empty batch: zeros, its mean: NaN), by constants."""
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        used = [each.meta["val"] for each in node.all_input_nodes]
        if value.numel() == 0:
            number = 0
        elif used and all(isinstance(x, torch.Tensor) and x.numel() == 0 for x in used):
            found = _of_nothing(node)
            number = found.reshape(-1)[0].item()
            same = found == number if number == number else found != found
            if not same.all():
                continue
        else:
            continue
        if value.dtype == torch.bool:
            number = bool(number)
        with graph.inserting_before(node):
            call = aten.full.default, (list(value.shape), number), {"dtype": value.dtype}
            constant = graph.call_function(*call)
        constant.meta = dict(node.meta)
        node.replace_all_uses_with(constant)
        graph.erase_node(node)


def _of_nothing(node: torch.fx.Node) -> torch.Tensor:
    def empty(used: torch.fx.Node) -> torch.Tensor:
        return torch.empty(used.meta["val"].shape, dtype=used.meta["val"].dtype)

    args, kwargs = torch.fx.map_arg((node.args, dict(node.kwargs)), empty)
    return node.target(*args, **kwargs)
