# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unsigned bytes where an operator would take them for signed ones.

torch-mlir does so where they become another type within an operator (`image * 1.5`,
`image.prod()`), are compared with what is no byte (`image == 200`), or have a sign or a
larger number beside them (`abs`, padding): they are widened before, and what is bytes again
is narrowed after. Other operators on bytes have the same bits either way, and conversions
(`image.float()`) are right.
"""

from __future__ import annotations

import functools

import torch

aten = torch.ops.aten
_CONVERT = torch.ops.prims.convert_element_type.default
_RIGHT = {_CONVERT, aten._to_copy.default, aten.embedding.default, aten.index.Tensor}
_COMPARISONS = {
    overload
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in (getattr(aten, name).Scalar, getattr(aten, name).Tensor)
}
# Elementwise, so that all of their operands may be widened.
_ELEMENTWISE = {
    aten.abs.default,
    aten.add.Tensor,
    aten.bitwise_and.Scalar,
    aten.bitwise_or.Scalar,
    aten.bitwise_xor.Scalar,
    aten.mul.Tensor,
    aten.pow.Tensor_Scalar,
    aten.sub.Tensor,
}
_OF_ONE = {
    aten.abs.default,
    aten.clamp.Tensor,
    aten.constant_pad_nd.default,
    aten.max.default,
    aten.min.default,
    aten.pow.Tensor_Scalar,
}
_WITH_NUMBERS = {aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar}


def widen(graph: torch.fx.GraphModule) -> None:
    """Converts the bytes that an operator reads to what it computes in."""
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target in _RIGHT:
            continue
        given = [x for x in node.all_input_nodes if _type(x) is not None]
        if not any(_type(x) == torch.uint8 for x in given):
            continue
        kinds = _types(node)
        if len(kinds) != 1:
            continue
        (kind,) = kinds
        if kind == torch.bool:
            if node.target in _COMPARISONS:
                _convert(graph, node, given, _compared(node))
        elif kind != torch.uint8:
            _convert(graph, node, [x for x in given if _type(x) == torch.uint8], kind)
        elif node.target in _OF_ONE | _WITH_NUMBERS or (
            node.target in _ELEMENTWISE and not _only_bytes(node, given)
        ):
            _convert(graph, node, given, torch.int64)
            _narrow(graph, node)
    graph.recompile()


def _only_bytes(node: torch.fx.Node, given: list[torch.fx.Node]) -> bool:
    numbers = [x for x in node.args if isinstance(x, int | float)]
    return not numbers and all(_type(x) == torch.uint8 for x in given)


def _convert(
    graph: torch.fx.GraphModule,
    node: torch.fx.Node,
    given: list[torch.fx.Node],
    kind: torch.dtype,
) -> None:
    for value in given:
        if _type(value) != kind:
            with graph.graph.inserting_before(node):
                wide = graph.graph.call_function(aten._to_copy.default, (value,), {"dtype": kind})
            wide.meta = _meta(node, value.meta["val"].to(kind))
            node.replace_input_with(value, wide)


def _narrow(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Makes the result bytes again."""
    with graph.graph.inserting_after(node):
        narrow = graph.graph.call_function(aten._to_copy.default, (node,), {"dtype": torch.uint8})
    node.replace_all_uses_with(narrow, lambda user: user is not narrow)
    narrow.meta = dict(node.meta)
    node.meta = _meta(node, node.meta["val"].to(torch.int64))


def _meta(node: torch.fx.Node, value: torch.Tensor) -> dict:
    """The node's, of another value: "tensor_meta" would hold the type of the old one."""
    return {**node.meta, "val": value, "tensor_meta": None}


def _compared(node: torch.fx.Node) -> torch.dtype:
    """The type that bytes and something else are compared in."""
    kinds = [_type(x) for x in node.all_input_nodes]
    for number in node.args[1:]:
        if isinstance(number, bool | int | float):
            kinds.append(torch.float32 if isinstance(number, float) else torch.int64)
    if set(kinds) == {torch.uint8}:
        return torch.uint8
    return functools.reduce(torch.promote_types, (kind for kind in kinds if kind is not None))


def _type(node: torch.fx.Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _types(node: torch.fx.Node) -> set[torch.dtype]:
    """Of what it gives."""
    values = node.meta.get("val")
    values = values if isinstance(values, tuple | list) else [values]
    return {value.dtype for value in values if isinstance(value, torch.Tensor)}
