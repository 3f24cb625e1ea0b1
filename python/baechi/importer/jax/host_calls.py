# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that JAX computes within a step, because they have no lowering (docs/host-calls.md).

A step is rewritten: equations that only JAX has code for become calls by name, of functions
that the step's runner is given. Complex numbers are arrays of two numbers between calls.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import effects as effects_internal  # which effects a step may have
from jax.extend import core
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from baechi.importer.common.errors import Unsupported, UnsupportedOperations
from baechi.importer.common.module import walk
from baechi.importer.jax import jaxprs
from baechi.importer.jax.complex_pairs import is_complex
from baechi.importer.jax.factorisations import is_native

# What has neither StableHLO with a linalg form nor a rule of ours.
_CALLBACKS = {"debug_print", "debug_callback", "pure_callback", "io_callback"}
_FACTORISATIONS = {
    "cholesky",
    "cholesky_update",
    "custom_linear_solve",
    "eig",
    "eigh",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
}
_ALONE = _CALLBACKS | _FACTORISATIONS | {"fft"}

# What a call is taken to cost: entering Python and JAX, a byte, a multiplication.
_CALL_NS, _BYTE_NS, _FLOP_NS = 50_000, 0.1, 0.5
_TARGET = "baechi.host_call"


@dataclasses.dataclass(frozen=True)
class HostCall:
    """function: from operands to results, arrays of numpy of these types."""

    name: str
    function: Callable[..., Sequence[np.ndarray]]
    operands: list[jax.ShapeDtypeStruct]
    results: list[jax.ShapeDtypeStruct]
    ordered: bool
    ns: int
    operations: list[Unsupported]


class _Ordered(effects_internal.Effect):
    """Keeps calls that print, or do what else is seen."""


_ORDERED = _Ordered()
effects_internal.lowerable_effects.add_type(_Ordered)

_call = core.Primitive(_TARGET)
_call.multiple_results = True


@_call.def_effectful_abstract_eval
def _abstract(*_: Any, name: str, results: tuple[Any, ...], ordered: bool) -> Any:
    return list(results), {_ORDERED} if ordered else set()


def _type_of(aval: Any) -> ir.Type:
    # JAX's own function for it takes other arguments since 0.10.
    return ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(aval.dtype))


def _lower(context: Any, *operands: Any, name: str, results: Any, ordered: bool) -> Any:
    return stablehlo.CustomCallOp(
        [_type_of(aval) for aval in context.avals_out],
        operands,
        call_target_name=ir.StringAttr.get(_TARGET),
        has_side_effect=ir.BoolAttr.get(ordered),
        backend_config=ir.StringAttr.get(name),
    ).results


mlir.register_lowering(_call, _lower)


def needed(jaxpr: core.Jaxpr) -> bool:
    """Whether JAX has to compute a part of a step."""
    return any(_is_alone(eqn) or any(map(needed, jaxprs.bodies(eqn))) for eqn in jaxpr.eqns)


def _is_alone(eqn: Any) -> bool:
    matrix = eqn.invars[0].aval if eqn.invars else None
    name = eqn.primitive.name
    # LU is a part of `solve` and `inv`, which are one call each.
    native = name != "lu" and name in _FACTORISATIONS
    if native and is_native(name, matrix.shape, matrix.dtype, eqn.params):
        return False
    return name in _ALONE or any(map(is_complex, (*eqn.invars, *eqn.outvars)))


def _is_literal(variable: Any) -> bool:
    return isinstance(variable, core.Literal)


class Rewritten:
    """A step of flat arguments in which host calls stand for what JAX computes.

    `calls` are those of the last tracing.
    """

    def __init__(self, closed: core.ClosedJaxpr):
        self.closed = jaxprs.flatten(closed)
        self.calls: list[HostCall] = []
        wrong = [v for v in self.closed.jaxpr.outvars if is_complex(v)]
        if wrong:
            reason = "a result of the step is complex; return its real and imaginary part"
            makers = [e for e in self.closed.jaxpr.eqns if set(e.outvars) & set(wrong)]
            raise UnsupportedOperations([_located(eqn, reason) for eqn in makers[:8]])

    def __call__(self, *args: Any) -> list[Any]:
        self.calls = []
        jaxpr = self.closed.jaxpr
        values: dict[Any, Any] = {
            v: np.stack([np.real(value), np.imag(value)], -1) if is_complex(v) else value
            for v, value in zip(jaxpr.constvars, self.closed.consts, strict=True)
        }
        values |= zip(jaxpr.invars, args, strict=True)
        waiting: list[Any] = []  # equations of the next call

        def read(variable: Any) -> Any:
            return variable.val if _is_literal(variable) else values[variable]

        def flush() -> None:
            if waiting:
                self._emit([*waiting], values)
                waiting.clear()

        for eqn in jaxpr.eqns:
            alone = _is_alone(eqn) or any(map(needed, jaxprs.bodies(eqn)))
            made = {v for other in waiting for v in other.outvars}
            if alone and not eqn.effects:
                waiting.append(eqn)
                continue
            if alone or any(not _is_literal(v) and v in made for v in eqn.invars):
                flush()
            if alone:
                self._emit([eqn], values)
            else:
                values |= zip(eqn.outvars, jaxprs.apply(eqn, [*map(read, eqn.invars)]), strict=True)
        flush()
        return [read(v) for v in jaxpr.outvars]

    def _emit(self, equations: list[Any], values: dict[Any, Any]) -> None:
        """One call for some equations."""
        made = dict.fromkeys(v for eqn in equations for v in eqn.outvars)
        inside = set(map(id, equations))
        jaxpr = self.closed.jaxpr
        later = [v for eqn in jaxpr.eqns if id(eqn) not in inside for v in eqn.invars]
        used = {v for v in (*later, *jaxpr.outvars) if not _is_literal(v)}
        results = [v for v in made if v in used]
        variables = [v for eqn in equations for v in eqn.invars if not _is_literal(v)]
        operands = [v for v in dict.fromkeys(variables) if v not in made]
        ordered = any(eqn.effects for eqn in equations)

        def compute(*given: Any) -> list[Any]:
            inner = dict(zip(operands, map(_from_border, operands, given), strict=True))
            for eqn in equations:
                arguments = [
                    # An array, as jax.jit gives it to callbacks: of no weak type.
                    jax.numpy.asarray(v.val, v.aval.dtype) if _is_literal(v) else inner[v]
                    for v in eqn.invars
                ]
                inner |= zip(eqn.outvars, jaxprs.apply(eqn, arguments), strict=True)
            return [_to_border(v, inner[v]) for v in results]

        with jaxprs.located(equations[0]):
            given = [values[v] if is_complex(v) else _to_border(v, values[v]) for v in operands]
            kinds = tuple(jax.typeof(jax.numpy.asarray(each)) for each in given)
            shapes = [jax.ShapeDtypeStruct(kind.shape, kind.dtype) for kind in kinds]
            out = [_border_type(v) for v in results]
            name = f"{equations[0].primitive.name}_{len(self.calls)}"
            self.calls.append(
                HostCall(
                    name,
                    functools.partial(_run, _compiled(compute, equations), ordered),
                    shapes,
                    out,
                    ordered,
                    _estimate(equations, [*shapes, *out]),
                    [_located(eqn) for eqn in equations],
                )
            )
            avals = tuple(jax.core.ShapedArray(o.shape, o.dtype) for o in out)
            made_values = _call.bind(*given, name=name, results=avals, ordered=ordered)
            for v, value in zip(results, made_values, strict=True):
                values[v] = value if is_complex(v) else _from_border(v, value)


def _compiled(compute: Callable[..., Any], equations: Sequence[Any]) -> Callable[..., Any]:
    """Callbacks run on the thread that asks: what they raise is theirs."""
    plain = len(equations) == 1 and equations[0].primitive.name in _CALLBACKS
    return compute if plain else jax.jit(compute)


def _run(compute: Callable[..., Any], ordered: bool, *given: np.ndarray) -> list[np.ndarray]:
    results = [np.asarray(value) for value in compute(*map(jax.numpy.asarray, given))]
    if ordered:
        jax.effects_barrier()  # whatever is printed is printed now
    return results


def _border_type(variable: Any) -> jax.ShapeDtypeStruct:
    aval = variable.aval
    return jax.eval_shape(
        functools.partial(_to_border, variable), jax.ShapeDtypeStruct(aval.shape, aval.dtype)
    )


def _to_border(variable: Any, value: Any) -> Any:
    """A value as numbers that programs have: signed, real, no keys."""
    kind = variable.aval.dtype
    if is_complex(variable):
        return jax.numpy.stack([jax.numpy.real(value), jax.numpy.imag(value)], -1)
    if jax.dtypes.issubdtype(kind, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
        kind = value.dtype
    if jax.numpy.issubdtype(kind, jax.numpy.unsignedinteger):
        return jax.lax.bitcast_convert_type(value, f"int{np.dtype(kind).itemsize * 8}")
    return value


def _from_border(variable: Any, value: Any) -> Any:
    kind = variable.aval.dtype
    if is_complex(variable):
        return jax.lax.complex(value[..., 0], value[..., 1])
    if jax.dtypes.issubdtype(kind, jax.dtypes.prng_key):
        data = jax.lax.bitcast_convert_type(value, "uint32")
        return jax.random.wrap_key_data(data, impl=str(jax.random.key_impl(variable.aval)))
    if jax.numpy.issubdtype(kind, jax.numpy.unsignedinteger):
        return jax.lax.bitcast_convert_type(value, kind)
    return value


def _estimate(equations: Sequence[Any], moved: Sequence[jax.ShapeDtypeStruct]) -> int:
    """The time of a call, stated rather than measured: what it computes may be seen."""
    sizes = [math.prod(shape.shape) for shape in moved]
    flops = 0.0
    for eqn in equations:
        shapes = [v.aval.shape for v in eqn.invars if getattr(v.aval, "ndim", 0) >= 2]
        if eqn.primitive.name in _FACTORISATIONS and shapes:
            flops = max(flops, 10.0 * math.prod(shapes[0]) * min(shapes[0][-2:]))
    return round(_CALL_NS + _BYTE_NS * 4 * sum(sizes) + _FLOP_NS * flops)


def _located(eqn: Any, reason: str = "") -> Unsupported:
    return Unsupported(eqn.primitive.name, jaxprs.name_of(eqn), jaxprs.source_of(eqn), reason)


def is_call(operation: Any) -> bool:
    return (
        operation.name == "stablehlo.custom_call"
        and ir.StringAttr(operation.attributes["call_target_name"]).value == _TARGET
    )


def declare(module: ir.Module, calls: Sequence[HostCall]) -> None:
    """Custom calls become calls of declared functions, which say what they are."""
    found: list[Any] = []
    walk(ir, module, lambda operation: is_call(operation) and found.append(operation))
    by_name = {call.name: call for call in calls}
    i64 = ir.IntegerType.get_signless(64)
    declared: set[str] = set()
    for operation in found:
        name = ir.StringAttr(operation.attributes["backend_config"]).value
        call = by_name[name]
        if name not in declared:
            declared.add(name)
            types = [value.type for value in operation.operands]
            kind = ir.FunctionType.get(types, [value.type for value in operation.results])
            effects = ir.StringAttr.get("ordered" if call.ordered else "pure")
            about = {"effects": effects, "ns": ir.IntegerAttr.get(i64, call.ns)}
            ir.Operation.create(
                "func.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(kind),
                    "baechi.host_call": ir.DictAttr.get(about),
                },
                ip=ir.InsertionPoint(module.body),
            )
        replacement = ir.Operation.create(
            "func.call",
            results=[value.type for value in operation.results],
            operands=list(operation.operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
            loc=ir.Location.name(call.operations[0].scope),
            ip=ir.InsertionPoint(operation),
        )
        for old, new in zip(operation.results, replacement.results, strict=True):
            old.replace_all_uses_with(new)
        operation.erase()
