# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a JAX step to one MLIR module of linalg on tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as stablehlo_dialect
from jaxlib.mlir.passmanager import PassManager

from baechi import init
from baechi.importer import locations, rules, stablehlo
from baechi.importer.errors import ImportFailure, Unsupported, UnsupportedOperations
from baechi.importer.inline import inline_calls
from baechi.importer.signature import Signature, describe
from baechi.importer.signless import make_signless

# Equal subexpressions are merged here and never after the conversion: linalg's
# initial tensors (tensor.empty, linalg.fill), once shared, have to be copied.
_TO_STABLEHLO = (
    "builtin.module(func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo),"
    "canonicalize,cse)"
)
_TO_LINALG = "builtin.module(stablehlo-legalize-to-linalg)"
_CLEAN_UP = "builtin.module(canonicalize)"
# What may be left over: the conversion is partial and reports nothing itself.
_UNCONVERTED_DIALECTS = {"stablehlo", "chlo", "shape", "mhlo", "sdy"}
_UNCONVERTED = {"builtin.unrealized_conversion_cast"}

stablehlo_dialect.register_stablehlo_passes()


@dataclasses.dataclass(frozen=True)
class ImportedStep:
    text: str  # the module
    operations: int  # linalg operations in it
    signature: Signature


def import_step(
    step: Callable, args: Sequence[Any], donate_argnums: Sequence[int] = (), name: str = "step"
) -> ImportedStep:
    """Imports `step(*args)` as a module `name` with one function, `@step`.

    The leaves of `args` are initial values (baechi.init) or arrays. Donated
    arguments are replaced by their next values after every step.
    Raises ImportFailure.
    """
    signature, traced = describe(step, args, donate_argnums)
    lowered = traced.lower(
        lowering_platforms=("cpu",), _private_parameters=rules.lowering_parameters()
    )
    module = lowered.compiler_ir("stablehlo")
    with module.context, ir.Location.unknown():
        _load_dialects()
        inline_calls(module)
        PassManager.parse(_TO_STABLEHLO).run(module.operation)
        stablehlo.rewrite(module)
        module.operation.verify()
        PassManager.parse(_TO_LINALG).run(module.operation)
        make_signless(module)
        _check(module)
        PassManager.parse(_CLEAN_UP).run(module.operation)
        _annotate(module, name, signature)
        count = _name_operations(module)
        return ImportedStep(module.operation.get_asm(enable_debug_info=True), count, signature)


def _load_dialects() -> None:
    """A pass loads the dialects that it makes: linalg, tensor, scf, …"""
    PassManager.parse(_TO_LINALG).run(ir.Module.create().operation)


def _walk(module: ir.Module, visit: Callable[[ir.Operation], None]) -> None:
    def advance(operation):
        visit(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(advance, ir.WalkOrder.PRE_ORDER)


def _check(module: ir.Module) -> None:
    left = []

    def visit(operation):
        dialect = operation.name.split(".")[0]
        if dialect in _UNCONVERTED_DIALECTS or operation.name in _UNCONVERTED:
            where = operation.location
            scope = locations.name_of(where)
            left.append(Unsupported(operation.name, scope, locations.source_of(where)))

    _walk(module, visit)
    if left:
        raise UnsupportedOperations(left)


def _annotate(module: ir.Module, name: str, signature: Signature) -> None:
    """Replaces JAX's attributes by those of the baechi dialect."""
    _clear(module.operation)
    module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
    (function,) = (operation.operation for operation in module.body.operations)
    if len(function.regions[0].blocks[0].arguments) != len(signature.arguments):
        raise ImportFailure("the step captures arrays; pass them as arguments")
    function.attributes["sym_name"] = ir.StringAttr.get("step")
    del function.attributes["sym_visibility"]
    i64 = ir.IntegerType.get_signless(64)

    def argument(value):
        attributes = {
            "baechi.name": ir.StringAttr.get(value.name),
            "baechi.init": init_attribute(value.init),
        }
        if value.updated_by is not None:
            attributes["baechi.updated_by"] = ir.IntegerAttr.get(i64, value.updated_by)
        return ir.DictAttr.get(attributes)

    def result(value):
        return ir.DictAttr.get({"baechi.name": ir.StringAttr.get(value)})

    arguments, results = signature.arguments, signature.results
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([argument(a) for a in arguments])
    function.attributes["res_attrs"] = ir.ArrayAttr.get([result(r) for r in results])


def init_attribute(value: init.Init) -> ir.DictAttr:
    """The `baechi.init` of an argument."""
    f32, i64 = ir.F32Type.get(), ir.IntegerType.get_signless(64)
    match value:
        case init.Constant():
            fields = {"value": ir.FloatAttr.get(f32, value.constant)}
        case init.Uniform():
            fields = {
                "low": ir.FloatAttr.get(f32, value.low),
                "high": ir.FloatAttr.get(f32, value.high),
                "seed": ir.IntegerAttr.get(i64, value.seed),
            }
        case init.RandInt():
            fields = {
                field: ir.IntegerAttr.get(i64, getattr(value, field))
                for field in ("low", "high", "seed")
            }
    kind = type(value).__name__.lower()
    return ir.DictAttr.get({"kind": ir.StringAttr.get(kind), **fields})


def _clear(operation: ir.Operation) -> None:
    for name in list(operation.attributes):
        del operation.attributes[name]


def _name_operations(module: ir.Module) -> int:
    """Gives every operation the location that is its name, and blocks' arguments
    none; counts linalg operations."""
    count = 0

    def visit(operation):
        nonlocal count
        body = operation.name in ("linalg.yield", "linalg.index")
        count += operation.name.startswith("linalg.") and not body
        name = locations.name_of(operation.location)
        unknown = ir.Location.unknown()
        operation.location = ir.Location.name(name) if name else unknown
        for region in operation.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(unknown)

    _walk(module, visit)
    return count
