# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unsigned bytes that become another type within an operator.

torch-mlir takes them for signed ones there (`image * 1.5`, `image.prod()`): they are
widened before. What stays in bytes has the same bits either way, and conversions
(`image.float()`) are right.
"""

from __future__ import annotations

import torch

aten = torch.ops.aten
_CONVERT = torch.ops.prims.convert_element_type.default
_RIGHT = {_CONVERT, aten._to_copy.default, aten.embedding.default, aten.index.Tensor}


def widen(graph: torch.fx.GraphModule) -> None:
    """Converts the bytes that an operator reads to the type that it gives."""
    for node in list(graph.graph.nodes):
        kind = _becomes(node) if node.op == "call_function" else None
        if kind is None or node.target in _RIGHT:
            continue
        for given in node.all_input_nodes:
            value = given.meta.get("val")
            if isinstance(value, torch.Tensor) and value.dtype == torch.uint8:
                with graph.graph.inserting_before(node):
                    wide = graph.graph.call_function(_CONVERT, (given, kind))
                wide.meta = {**node.meta, "val": value.to(kind)}
                node.replace_input_with(given, wide)
    graph.recompile()


def _becomes(node: torch.fx.Node) -> torch.dtype | None:
    """The type of what it gives. None: bytes again, or whether something holds of them;
    both are right."""
    values = node.meta.get("val")
    values = values if isinstance(values, tuple | list) else [values]
    kinds = {value.dtype for value in values if isinstance(value, torch.Tensor)}
    return None if len(kinds) != 1 or kinds & {torch.uint8, torch.bool} else kinds.pop()
