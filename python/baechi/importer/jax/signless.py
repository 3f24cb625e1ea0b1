# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes all integers signless after the conversion to linalg.

The conversion itself does so for what it converts (the operations say whether
they are signed) and leaves casts to the unsigned types elsewhere: arguments,
results, what loops carry. Nothing there depends on the sign.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from baechi.importer.common.module import block_arguments, visit_all

_CAST = "builtin.unrealized_conversion_cast"


def make_signless(module: ir.Module) -> None:
    """Gives every value a signless type and drops the casts between the two."""
    casts = []

    def visit(operation):
        kind = operation.name
        values = operation.results
        if not kind.startswith("linalg."):  # their blocks have elements
            values = (*values, *block_arguments(operation))
        for value in values:
            type_ = value.type
            if (without := _signless(type_)) is not type_:
                value.set_type(without)
        if kind == "func.func":
            _retype(operation)
        if kind == _CAST:
            casts.append(operation)

    visit_all(ir, module.operation, visit, ir.WalkOrder.PRE_ORDER)
    for cast in casts:
        if cast.operands[0].type == cast.results[0].type:
            cast.results[0].replace_all_uses_with(cast.operands[0])
            cast.erase()


def _retype(function: ir.Operation) -> None:
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs, results = ([_signless(t) for t in types] for types in (old.inputs, old.results))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _signless(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    element = type_.element_type
    if not isinstance(element, ir.IntegerType) or element.is_signless:
        return type_
    return ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(element.width))
