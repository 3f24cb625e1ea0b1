# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inlines every call, so that a module is one function.

jaxlib's MLIR is built without the inliner's extension for `func`: its `inline`
pass changes nothing.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from baechi.importer.common.module import visit_all


def inline_calls(module: ir.Module) -> None:
    """Replaces calls by the functions' bodies; drops the private functions."""
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    done: set[str] = set()
    for name in functions:
        _inline_into(name, functions, done)
    for function in functions.values():
        if ir.StringAttr(function.attributes["sym_visibility"]).value == "private":
            function.erase()


def _inline_into(name: str, functions: dict[str, ir.Operation], done: set[str]) -> None:
    """Inlines the calls in a function, and first those in its callees, so that
    what is copied holds no calls. (JAX's functions are never recursive.)"""
    if name in done:
        return
    done.add(name)
    for call in _calls(functions[name]):
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        _inline_into(callee, functions, done)
        _inline_call(call, functions[callee])


def _calls(function: ir.Operation) -> list[ir.Operation]:
    calls = []

    def visit(operation):
        if operation.name == "func.call":
            calls.append(operation)

    visit_all(ir, function, visit, ir.WalkOrder.PRE_ORDER)
    return calls


def _inline_call(call: ir.Operation, function: ir.Operation) -> None:
    copy = function.clone(ip=ir.InsertionPoint(function)).operation
    _locate(copy, call.location)
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands):
        argument.replace_all_uses_with(operand)
    *body, end = [operation.operation for operation in block.operations]
    for operation in body:
        operation.move_before(call)
    for old, new in zip(call.results, list(end.operands)):
        old.replace_all_uses_with(new)
    call.erase()
    copy.erase()


def _locate(function: ir.Operation, caller: ir.Location) -> None:
    def visit(operation):
        operation.location = ir.Location.callsite(operation.location, [caller])

    visit_all(ir, function, visit, ir.WalkOrder.PRE_ORDER)
