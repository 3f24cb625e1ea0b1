# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons that torch-mlir takes for others.

It compares with numbers as doubles or long integers that PyTorch rounds to the tensor's type, or
wraps (`bytes > -1` compares with 255), has bools for numbers of the other's type, of which true
is -1 (`mask > -1`), or adds them as bits, rounds one of two kinds of halves to the other, where
PyTorch compares single-precision numbers, takes it that elements equal themselves (`x == x`,
`isnan`), which NaN does not, and that what a constant is compared with is its bits.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten
_EQUALITIES = {aten.eq.Tensor, aten.ne.Tensor}
_OF_TENSORS: dict[Any, Any] = {
    aten.eq.Scalar: aten.eq.Tensor,
    aten.ge.Scalar: aten.ge.Tensor,
    aten.gt.Scalar: aten.gt.Tensor,
    aten.le.Scalar: aten.le.Tensor,
    aten.lt.Scalar: aten.lt.Tensor,
    aten.ne.Scalar: aten.ne.Tensor,
}
_OF_TWO = {*_OF_TENSORS.values(), aten.maximum.default, aten.minimum.default}


def mend_comparisons(graph: torch.fx.Graph) -> None:
    """Says what is meant, in a graph whose operations are to be lowered."""
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is aten.add.Tensor:
            _add_truths(graph, node)
            continue
        if node.target in _OF_TENSORS:
            _widen_bools(graph, node)
            _round_number(node)
            if _is_constant(node.args[0]):
                _compare_tensors(graph, node)
            continue
        if node.target in _OF_TWO:
            _promote_halves(graph, node)
            _widen_bools(graph, node)
        if node.target in _EQUALITIES and _is_same(*node.args):
            _compare_with_infinity(graph, node)


def _round_number(node: torch.fx.Node) -> None:
    tensor, number = node.args
    kind = torch.result_type(tensor.meta["val"], number)
    if isinstance(number, bool):
        return
    if kind.is_floating_point:
        node.update_arg(1, torch.full((), number, dtype=kind).item())
    elif kind != torch.bool:
        node.update_arg(1, torch.tensor(number, dtype=torch.int64).to(kind).item())


def _promote_halves(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    values = [each.meta["val"] for each in node.args if isinstance(each, torch.fx.Node)]
    if {value.dtype for value in values} != {torch.float16, torch.bfloat16}:
        return
    for position in range(len(values)):
        _convert(graph, node, position, torch.result_type(*values))


def _widen_bools(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    given = [x.meta["val"] if isinstance(x, torch.fx.Node) else x for x in node.args[:2]]
    kind = torch.result_type(*given)
    for position, value in enumerate(given):
        if isinstance(value, torch.Tensor) and torch.bool == value.dtype != kind:
            _convert(graph, node, position, kind)


def _convert(graph: torch.fx.Graph, node: torch.fx.Node, position: int, kind: torch.dtype) -> None:
    value = node.args[position]
    with graph.inserting_before(node):
        wide = graph.call_function(aten._to_copy.default, (value,), {"dtype": kind})
    wide.meta = {**node.meta, "val": value.meta["val"].to(kind), "tensor_meta": None}
    node.update_arg(position, wide)


def _add_truths(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Of a number that is true or false; two tensors are right."""
    tensor, number = node.args[:2]
    if node.meta["val"].dtype != torch.bool or isinstance(number, torch.fx.Node):
        return
    found = tensor
    if number and node.kwargs.get("alpha", 1):  # all are true
        with graph.inserting_before(node):
            rest = graph.call_function(aten.logical_not.default, (tensor,))
            found = graph.call_function(aten.logical_or.default, (tensor, rest))
        rest.meta, found.meta = dict(node.meta), dict(node.meta)
    node.replace_all_uses_with(found)
    graph.erase_node(node)


def _compare_tensors(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    tensor, number = node.args
    value = tensor.meta["val"]
    kind = torch.result_type(value, number)
    with graph.inserting_before(node):
        other = graph.call_function(aten.full.default, ([], number), {"dtype": kind})
    other.meta = {**node.meta, "val": value.new_empty((), dtype=kind), "tensor_meta": None}
    node.target = _OF_TENSORS[node.target]
    node.update_arg(1, other)


def _compare_with_infinity(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    (tensor, _), value = node.args, node.args[0].meta["val"]
    if not value.is_floating_point():
        return
    with graph.inserting_before(node):
        size = graph.call_function(aten.abs.default, (tensor,))
        size.meta = {**node.meta, "val": value, "tensor_meta": None}
        found = graph.call_function(aten.le.Scalar, (size, float("inf")))
        found.meta = dict(node.meta)
        if node.target is aten.ne.Tensor:
            found = graph.call_function(aten.logical_not.default, (found,))
            found.meta = dict(node.meta)
    node.replace_all_uses_with(found)
    graph.erase_node(node)


def _is_constant(value: Any) -> bool:
    """Whether it is computed of nothing that is given."""
    if not isinstance(value, torch.fx.Node):
        return True
    return value.op == "call_function" and all(map(_is_constant, value.all_input_nodes))


def _is_same(first: Any, second: Any) -> bool:
    """Whether two arguments are one value, or are computed alike of one."""
    nodes = [value for value in (first, second) if isinstance(value, torch.fx.Node)]
    if len(nodes) < 2 or first is second:
        return first is second or (not nodes and first == second)
    if any(node.op != "call_function" for node in nodes) or first.target is not second.target:
        return False
    given = zip(first.args, second.args, strict=False)
    return (
        len(first.args) == len(second.args)
        and first.kwargs == second.kwargs
        and all(_is_same(*pair) for pair in given)
    )
