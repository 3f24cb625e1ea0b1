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

from baechi.importer import locations, rules, stablehlo
from baechi.importer.errors import ImportFailure, Unsupported, UnsupportedOperations
from baechi.importer.inline import inline_calls
from baechi.importer.module import annotate, name_operations, walk
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
        (function,) = module.body.operations
        if len(function.arguments) != len(signature.arguments):
            raise ImportFailure("the step captures arrays; pass them as arguments")
        annotate(ir, module, name, signature.arguments, signature.results)
        count = name_operations(ir, module, locations.name_of)
        return ImportedStep(module.operation.get_asm(enable_debug_info=True), count, signature)


def _load_dialects() -> None:
    """A pass loads the dialects that it makes: linalg, tensor, scf, …"""
    PassManager.parse(_TO_LINALG).run(ir.Module.create().operation)


def _check(module: ir.Module) -> None:
    left = []

    def visit(operation):
        dialect = operation.name.split(".")[0]
        if dialect in _UNCONVERTED_DIALECTS or operation.name in _UNCONVERTED:
            where = operation.location
            scope = locations.name_of(where)
            left.append(Unsupported(operation.name, scope, locations.source_of(where)))

    walk(ir, module, visit)
    if left:
        raise UnsupportedOperations(left)
