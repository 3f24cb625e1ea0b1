# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads modules of Shardy's dialects with jaxlib's own MLIR, and takes fragments and transfers
out of them again."""

from __future__ import annotations

import re
from typing import Any

from jax.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

_MESH = re.compile(r'!mpmd\.mesh_tensor<"([^"]*)", (.*)>')


def parse(text: str) -> ir.Module:
    """A module as jaxlib's dialects read and verify it; what is LLVM's and not in jaxlib
    (linalg) is unknown to it. Raises ir.MLIRError."""
    context = jax_mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    # Errors of its threads would wait for this one, which waits for them.
    context.enable_multithreading(False)
    with context:
        module = ir.Module.parse(text)
        assert module.operation.verify()
    return module


def operations(module: ir.Module, name: str) -> list[Any]:
    """All of a name, in order."""
    found = []

    def visit(op: Any) -> ir.WalkResult:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def mesh_of(value: Any) -> str:
    match = _MESH.fullmatch(str(value.type))
    assert match, value.type
    return match[1]


def origin_of(fragment: Any) -> str:
    """The operator that it is."""
    match = re.fullmatch(r'\[#mpmd\.user_origin<"(.*)">\]', str(fragment.attributes["origin"]))
    assert match, fragment
    return match[1]


def without_meshes(module: ir.Module) -> str:
    """The same step on one device, in the generic form: fragments are functions that are
    called, transfers are nothing."""
    with module.context, ir.Location.unknown(module.context):
        for transfer in operations(module, "mpmd.transfer"):
            transfer.results[0].replace_all_uses_with(transfer.operands[0])
            transfer.operation.erase()
        (step,) = (f for f in module.body if "topology" in f.attributes)
        del step.attributes["topology"]
        for argument in step.arguments:
            argument.set_type(_tensor(argument.type))
        for number, fragment in enumerate(operations(module, "mpmd.fragment")):
            _call(module, fragment, f"fragment{number}")
        function = step.type
        results = [_tensor(each) for each in function.results]
        inputs = [_tensor(each) for each in function.inputs]
        step.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        if "arg_attrs" in step.attributes:
            del step.attributes["arg_attrs"]
        assert module.operation.verify()
        return module.operation.get_asm(print_generic_op_form=True)


def _call(module: ir.Module, fragment: Any, name: str) -> None:
    results = [_tensor(each.type) for each in fragment.results]
    inputs = [each.type for each in fragment.operands]
    with ir.InsertionPoint(module.body):
        body = func.FuncOp(name, (inputs, results), visibility="private")
    block = fragment.regions[0].blocks[0]
    block.append_to(body.operation.regions[0])
    end = block.operations[len(block.operations) - 1]
    with ir.InsertionPoint(end):
        func.ReturnOp(list(end.operands))
    end.operation.erase()
    with ir.InsertionPoint(fragment):
        call = func.CallOp(results, name, list(fragment.operands))
    for old, new in zip(fragment.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    fragment.operation.erase()


def _tensor(kind: ir.Type) -> ir.Type:
    match = _MESH.fullmatch(str(kind))
    return ir.Type.parse(match[2], kind.context) if match else kind
