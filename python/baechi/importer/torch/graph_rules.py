# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a graph of ATen operations must be, and what is left out of it."""

from __future__ import annotations

import functools

import torch

from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch.names import name_of, origin_of
from baechi.importer.torch.refusals import FIXED_SHAPES

aten = torch.ops.aten
# Without mutations these give their argument.
_IDENTITIES = {
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
}
# What is checked while a program runs.
ASSERTIONS = {aten._assert_async.default, aten._assert_async.msg}
_PRODUCTS = {
    aten.addmm.default,
    aten.baddbmm.default,
    aten.bmm.default,
    aten.convolution.default,
    aten.mm.default,
    aten.mv.default,
}


def check_operands(graph: torch.fx.Graph) -> None:
    """Of types that PyTorch refuses when it computes, not when it is traced."""
    for node in graph.nodes:
        values = [each.meta.get("val") for each in node.all_input_nodes]
        dtypes = dict.fromkeys(x.dtype for x in values if isinstance(x, torch.Tensor))
        if node.target in _PRODUCTS and len(dtypes) > 1:
            found = " and ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
            raise ImportFailure(
                f"{origin_of(node).source}: {node.target} in '{name_of(node)}' has operands of "
                f"{found}: give the model's inputs and its parameters one dtype (x.float())"
            )
        if node.target is aten.embedding.default:
            dtype = node.args[1].meta["val"].dtype
            if dtype not in (torch.int64, torch.int32):
                raise ImportFailure(
                    f"{origin_of(node).source}: '{origin_of(node).scope}' looks up rows by "
                    f"numbers of {str(dtype).removeprefix('torch.')}: hand in int64 (ids.long())"
                )


def drop_tests(graph: torch.fx.Graph) -> None:
    """What forward-mode derivatives ask of shapes and memory, and trace the answer to."""
    for node in list(graph.nodes):
        if isinstance(node.target, torch._ops.OpOverload) and not node.users:
            returned = node.target._schema.returns
            if returned and all(isinstance(each.type, torch.BoolType) for each in returned):
                graph.erase_node(node)


def refuse_assertions(graph: torch.fx.Graph) -> None:
    """A graph that torch.compile found has handed them on before."""
    for node in graph.nodes:
        if node.target in ASSERTIONS:
            said = f" ({node.args[1]})" if len(node.args) > 1 else ""
            of_one_hot = "Class values" in said  # PyTorch's own words
            mend = "write F.one_hot(x, n) as x.unsqueeze(-1) == torch.arange(n), and "
            raise ImportFailure(
                f"{origin_of(node).source}: '{name_of(node)}' asserts what a step does not check"
                f"{said}: {mend * of_one_hot}check the values before the step"
            )


def check_shapes(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        value = node.meta.get("val")
        shape = value.shape if isinstance(value, torch.Tensor) else [value]
        if any(isinstance(size, torch.SymInt) for size in shape):
            raise ImportFailure(f"{origin_of(node).source}: {node.target}: {FIXED_SHAPES}")


def drop_identities(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in _IDENTITIES:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def spell_numbers(graph: torch.fx.Graph) -> None:
    """Numbers where an operator takes tensors, as tensors of the type that PyTorch computes them
    in: torch-mlir makes singles of fractions, but of second operands of these, and does not know
    an operator with such a whole number by itself."""
    as_they_are = aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor
    for node in list(graph.nodes):
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        values = [each.meta.get("val") for each in node.all_input_nodes]
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        for position, formal in enumerate(node.target._schema.arguments[: len(node.args)]):
            value = node.args[position]
            if type(value) not in (int, float) or not isinstance(formal.type, torch.TensorType):
                continue
            if position == 1 and node.target in as_they_are or not tensors:
                continue
            dtype = torch.result_type(functools.reduce(_promoted, tensors), value)
            if type(value) is int and dtype not in (torch.int64, torch.float32, torch.float64):
                continue
            with graph.inserting_before(node):
                number = graph.call_function(aten.full.default, ([], value), {"dtype": dtype})
            number.meta = dict(node.meta) | {"val": tensors[0].new_empty((), dtype=dtype)}
            node.update_arg(position, number)


def _promoted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    shape = max(x.shape, y.shape, key=len)
    return torch.empty(shape, dtype=torch.result_type(x, y), device="meta")
