# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a JAX step to one MLIR module of linalg on tensors."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
from jax._src.interpreters import mlir as internal  # a context with the dialects
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as stablehlo_dialect
from jaxlib.mlir.passmanager import PassManager

from baechi.common import collector
from baechi.common.bytecode import VERSION, Bytecode
from baechi.importer.common import locations
from baechi.importer.common.errors import ImportFailure, Unsupported, UnsupportedOperations
from baechi.importer.common.module import (
    annotate,
    attribute_names,
    give_first_values,
    init_attribute,
    mark_replicas,
    name_operations,
    walk,
)
from baechi.importer.jax import (
    complex_pairs,
    exported,
    fourier,
    host_calls,
    jaxprs,
    replicas,
    rules,
    stablehlo,
)
from baechi.importer.jax.host_calls import HostCall
from baechi.importer.jax.inline import inline_calls
from baechi.importer.jax.kept import Kept, KeptModule
from baechi.importer.jax.signature import Signature, describe
from baechi.importer.jax.signless import make_signless

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
    module: Bytecode
    operations: int  # linalg operations in it
    signature: Signature
    host_calls: Sequence[HostCall] = ()  # what its runner computes
    replicas: int = 1  # that it is written for, by jax.shard_map or jax.pmap

    @property
    def text(self) -> str:
        return self.module.text


def import_step(
    step: Callable,
    args: Sequence[Any],
    donate_argnums: Sequence[int] = (),
    name: str = "step",
    loops: bool = True,
    by_shape: bool = False,
    host: bool = False,
    store: Kept | None = None,
) -> ImportedStep:
    """Imports `step(*args)` as a module `name` with one function, `@step`.

    The leaves of `args` are initial values (baechi.init) or arrays. Donated
    arguments are replaced by their next values after every step. Without `loops`
    the gradients of look-ups are products with one-hot matrices, for compilers
    that have none. With `host` JAX computes what has no lowering (docs/host-calls.md).
    A module that `store` has is not made again; its first values may be others.
    Raises ImportFailure.
    """
    with collector.paused():
        return _import(step, args, donate_argnums, name, loops, by_shape, host, store)


def _bytecode(code: bytes, signature: Signature) -> Bytecode:
    """Within a context."""
    first_values = ir.ArrayAttr.get([init_attribute(ir, each.init) for each in signature.arguments])
    # What a dialect of JAX alone has in it, only JAX reads.
    is_plain = b"stablehlo" not in code and b"sdy" not in code
    return Bytecode(code, str(first_values), is_plain, _text)


def _text(code: bytes, first_values: str) -> str:
    with internal.make_ir_context(), ir.Location.unknown():
        _load_dialects()
        module = ir.Module.parse(code)
        give_first_values(ir, module, list(ir.ArrayAttr(ir.Attribute.parse(first_values))))
        return str(module.operation.get_asm(enable_debug_info=True, assume_verified=True))


def _import(
    step: Callable,
    args: Sequence[Any],
    donate_argnums: Sequence[int],
    name: str,
    loops: bool,
    by_shape: bool,
    host: bool,
    store: Kept | None,
) -> ImportedStep:
    try:
        signature, traced = describe(step, args, donate_argnums, by_shape)
    except (NameError, ValueError) as error:
        replicas.explain(error)
        raise
    _refuse_symbolic(signature, traced.jaxpr)
    unrolled = None
    if replicas.needed(traced.jaxpr.jaxpr):
        unrolled = replicas.Unrolled(traced.jaxpr)
        traced = jax.jit(unrolled, keep_unused=True).trace(*_shapes(traced.jaxpr))
    longest = fourier.FASTER_THAN_CALLS if host else fourier.LARGEST_LENGTH
    if (without_complex := complex_pairs.rewritten(traced.jaxpr, longest)) is not None:
        evaluated = jaxprs.function_of(without_complex)
        traced = jax.jit(evaluated, keep_unused=True).trace(*_shapes(traced.jaxpr))
    rewritten = None
    if host and host_calls.needed(traced.jaxpr.jaxpr):
        rewritten = host_calls.Rewritten(traced.jaxpr)
        traced = jax.jit(rewritten, keep_unused=True).trace(*_shapes(traced.jaxpr))
    calls = rewritten.calls if rewritten else []
    lowered = traced.lower(
        lowering_platforms=("cpu",), _private_parameters=rules.lowering_parameters(loops)
    )
    module = lowered.compiler_ir("stablehlo")
    if _has_unknown_sizes(module):
        # A function of jax.export with symbolic dimensions, which is called with known sizes.
        module = internal.refine_polymorphic_shapes(module)
    written_for = unrolled.replicas if unrolled else 1
    kept = None
    # What calls the host is known to this process alone.
    if store is not None and not calls:
        batched = unrolled.batched if unrolled else {}
        kept = KeptModule(store, module, name, signature, (written_for, batched))
        if found := kept.take():
            with module.context, ir.Location.unknown():
                made = _bytecode(found[0], signature)
            return ImportedStep(made, found[1], signature, (), written_for)
    with module.context, ir.Location.unknown():
        to_linalg(module)
        (function,) = module.body.operations
        if len(function.arguments) != len(signature.arguments):
            raise ImportFailure("the step captures arrays; pass them as arguments")
        annotate(ir, module, name, signature.arguments, signature.results, first_values=False)
        if unrolled:
            mark_replicas(ir, module, unrolled.replicas, unrolled.batched)
        host_calls.declare(module, calls)
        count = name_operations(ir, module, locations.name_of)
        code = io.BytesIO()
        module.operation.write_bytecode(code, desired_version=VERSION)
        if kept is not None:
            kept.keep(code.getvalue(), count)
        made = _bytecode(code.getvalue(), signature)
        return ImportedStep(made, count, signature, calls, written_for)


def to_linalg(module: ir.Module) -> None:
    """StableHLO and CHLO to linalg, tensor, arith and scf, in place, inside the module's own
    context. Raises UnsupportedOperations."""
    _load_dialects()
    exported.rewrite(module)
    inline_calls(module)
    _run(_TO_STABLEHLO, module)
    stablehlo.rewrite(module)
    module.operation.verify()
    unsupported = _unknown_types(module)
    _run(_TO_LINALG, module, unsupported)
    make_signless(module)
    unsupported += _unconverted(module)
    if unsupported:
        raise UnsupportedOperations(unsupported)
    _run(_CLEAN_UP, module)


def function_text(imported: ImportedStep, name: str) -> str:
    """The step as a private function, for a module that calls it."""
    with internal.make_ir_context(), ir.Location.unknown():
        _load_dialects()
        module = ir.Module.parse(imported.text)
        (function,) = (operation.operation for operation in module.body.operations)
        for attribute in ("arg_attrs", "res_attrs"):
            if attribute in attribute_names(function):
                del function.attributes[attribute]
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        return str(function.get_asm())


def _refuse_symbolic(signature: Signature, closed: Any) -> None:
    for argument, aval in zip(signature.arguments, closed.in_avals):
        for dim, size in enumerate(aval.shape):
            if jax.export.is_symbolic_dim(size):
                raise ImportFailure(
                    f"the argument '{argument.name}' has the symbolic size '{size}' in dimension "
                    f"{dim}: a step is compiled for known sizes, and again for others; give a "
                    "number"
                )


def _has_unknown_sizes(module: ir.Module) -> bool:
    found = False

    def visit(operation):
        nonlocal found
        types = [v.type for v in operation.results]
        found |= any(isinstance(t, ir.RankedTensorType) and not t.has_static_shape for t in types)

    with module.context:
        walk(ir, module, visit)
    return found


def _shapes(closed: Any) -> list[jax.ShapeDtypeStruct]:
    avals = [variable.aval for variable in closed.jaxpr.invars]
    return [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


def _run(pipeline: str, module: ir.Module, unsupported: Sequence[Unsupported] = ()) -> None:
    """Runs passes. What one stumbles over is an operation that it does not know."""
    try:
        PassManager.parse(pipeline).run(module.operation)
    except ir.MLIRError as error:
        stumbled = [
            Unsupported(
                f"an operation ({each.message})",
                locations.name_of(each.location),
                locations.source_of(each.location),
            )
            for each in error.error_diagnostics
        ]
        raise UnsupportedOperations([*unsupported, *stumbled]) from error


def _load_dialects() -> None:
    """A pass loads the dialects that it makes: linalg, tensor, scf, …"""
    PassManager.parse(_TO_LINALG).run(ir.Module.create().operation)


def _unknown_types(module: ir.Module) -> list[Unsupported]:
    """What makes tensors of element types without code, of others or of nothing.
    Constants are made for what uses them."""
    known = {ir.F16Type.get(), ir.BF16Type.get(), ir.F32Type.get(), ir.F64Type.get()}
    known |= {ir.IntegerType.get_signless(bits) for bits in (1, 8, 16, 32, 64)}
    known |= {ir.IntegerType.get_unsigned(bits) for bits in (8, 16, 32, 64)}
    found = []

    def foreign(values) -> list[ir.Type]:
        types = [v.type for v in values if isinstance(v.type, ir.RankedTensorType)]
        return [t.element_type for t in types if t.element_type not in known]

    def visit(operation):
        made = foreign(operation.results)
        constant = operation.name == "stablehlo.constant"
        if made and not constant and not foreign(operation.operands):
            found.append(_located(operation, f"{operation.name} of {made[0]}"))

    walk(ir, module, visit)
    return found


def _unconverted(module: ir.Module) -> list[Unsupported]:
    left = []

    def is_left(operation) -> bool:
        name = operation.name
        return name.split(".")[0] in _UNCONVERTED_DIALECTS or name in _UNCONVERTED

    def visit(operation):
        if not is_left(operation):
            return
        # What an operation that is left has in its regions is part of it; a mesh
        # that no operation needs computes nothing.
        ours = operation.name == "sdy.mesh" or host_calls.is_call(operation)
        if not ours and not is_left(operation.parent):
            call = operation.name == "stablehlo.custom_call"
            name = f"{operation.name} @{exported.target(operation)}" if call else operation.name
            left.append(_located(operation, name, _reason(operation)))

    walk(ir, module, visit)
    return left


def _reason(operation) -> str:
    """Products with other sums than their own (stablehlo.py) are left."""
    product = operation.name == "stablehlo.dot_general"
    if not product or "algorithm" not in attribute_names(operation):
        return ""
    sums = stablehlo_dialect.DotAlgorithm(operation.attributes["algorithm"]).accumulation_type
    return f"its precision asks for sums in {sums}: leave `precision` out"


def _located(operation, name: str, reason: str = "") -> Unsupported:
    where = operation.location
    return Unsupported(name, locations.name_of(where), locations.source_of(where), reason)
