# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers within a step as pairs of real ones, and Fourier transforms as products.

A step whose complex operations all have a rule here is rewritten; of one with others JAX
computes the complex part itself (host_calls.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from baechi.importer.jax import fourier, jaxprs


class Pair(NamedTuple):
    real: Any
    imaginary: Any

    @staticmethod
    def of(value: Any) -> Pair:
        if isinstance(value, Pair):
            return value
        if jnp.issubdtype(jnp.result_type(value), jnp.complexfloating):
            value = np.asarray(value)  # of a constant
            return Pair(jnp.asarray(value.real), jnp.asarray(value.imag))
        return Pair(value, jnp.zeros_like(value))


def rewritten(closed: core.ClosedJaxpr, longest: int) -> core.ClosedJaxpr | None:
    """The same step without complex numbers; None: it has none, or some that stay.
    longest: a Fourier transform's length."""
    if not _has_complex(closed.jaxpr):
        return None
    flat = jaxprs.flatten(closed)
    return _without(flat) if _is_native(flat.jaxpr, longest) else None


def is_complex(variable: Any) -> bool:
    kind = getattr(variable.aval, "dtype", None)
    return kind is not None and jnp.issubdtype(kind, jnp.complexfloating)


def _touches(eqn: Any) -> bool:
    return any(map(is_complex, (*eqn.invars, *eqn.outvars)))


def _has_complex(jaxpr: core.Jaxpr) -> bool:
    return any(_touches(eqn) or any(map(_has_complex, jaxprs.bodies(eqn))) for eqn in jaxpr.eqns)


def _is_native(jaxpr: core.Jaxpr, longest: int, is_inlined: bool = False) -> bool:
    """is_inlined: of a call, whose arguments and results may be complex."""
    if not is_inlined and any(map(is_complex, (*jaxpr.invars, *jaxpr.outvars))):
        return False
    known = set(jaxpr.constvars)
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if _touches(eqn) and all(isinstance(v, core.Literal) or v in known for v in eqn.invars):
            known.update(eqn.outvars)
        elif jaxprs.is_call(eqn):
            if not all(_is_native(body, longest, is_inlined=True) for body in jaxprs.bodies(eqn)):
                return False
        elif name == "fft" and not fourier.is_native(eqn.params["fft_lengths"], longest):
            return False
        elif _touches(eqn):
            if not (name in _RULES and _knows_all(eqn)) and name not in _PARTWISE:
                return False
        elif not all(_is_native(body, longest) for body in jaxprs.bodies(eqn)):
            return False
    return True


def _knows_all(eqn: Any) -> bool:
    """Whether a rule knows what an equation says: a later JAX may say more."""
    # Where results lie is no matter of values.
    known = _PARAMETERS.get(eqn.primitive.name, set()) | {"sharding", "out_sharding"}
    return all(name in known or value is None for name, value in eqn.params.items())


def _without(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """The same flat computation, of pairs."""
    jaxpr = closed.jaxpr

    def function(*args: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values |= zip(jaxpr.invars, args, strict=True)
        for eqn in jaxpr.eqns:
            operands = [v.val if isinstance(v, core.Literal) else values[v] for v in eqn.invars]
            # Such as the factor that a transform is normalized by.
            is_known = _touches(eqn) and not any(map(_is_traced, operands))
            known = jax.ensure_compile_time_eval() if is_known else contextlib.nullcontext()
            with jaxprs.located(eqn), known:
                made = jaxprs.apply(eqn, operands) if is_known else _apply(eqn, operands)
            values |= zip(eqn.outvars, made, strict=True)
        return [v.val if isinstance(v, core.Literal) else values[v] for v in jaxpr.outvars]

    avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in jaxpr.invars]
    return jax.make_jaxpr(function)(*avals)


def _is_traced(value: Any) -> bool:
    return isinstance(value, Pair | jax.core.Tracer)


def _apply(eqn: Any, operands: Sequence[Any]) -> Sequence[Any]:
    if not _touches(eqn):
        return jaxprs.apply(_with_bodies(eqn), operands)
    given = [
        Pair.of(value) if is_complex(variable) else value
        for variable, value in zip(eqn.invars, operands, strict=True)
    ]
    if eqn.primitive.name in _ELEMENTWISE:
        given = [_broadcast(x, eqn.outvars[0].aval.shape) for x in given]
    rule = _RULES.get(eqn.primitive.name)
    if rule is not None:
        return [rule(eqn.params, *given)]
    parts = [
        jaxprs.apply(eqn, [x[part] if isinstance(x, Pair) else x for x in given])
        for part in range(2)
    ]
    return [Pair(*each) for each in zip(*parts, strict=True)]


def _broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    """An operand may be a scalar beside an array: such as the zero of which a gradient has its
    imaginary parts."""
    if isinstance(value, Pair):
        return Pair(*(_broadcast(part, shape) for part in value))
    return value if jnp.shape(value) == shape else jnp.broadcast_to(value, shape)


def _with_bodies(eqn: Any) -> Any:
    """A loop or branch whose bodies have no complex numbers."""

    def replaced(value: Any) -> Any:
        if not isinstance(value, core.ClosedJaxpr) or not _has_complex(value.jaxpr):
            return value
        return _without(jaxprs.flatten(value))

    def is_body(value: Any) -> bool:
        return isinstance(value, core.ClosedJaxpr)

    params = {
        name: jax.tree.map(replaced, value, is_leaf=is_body)
        if isinstance(value, core.ClosedJaxpr | tuple)
        else value
        for name, value in eqn.params.items()
    }
    return eqn.replace(params=params)


def _product(a: Pair, b: Pair) -> Pair:
    return Pair(
        a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real
    )


def _quotient(a: Pair, b: Pair) -> Pair:
    """C99, annex G.5.1: scaled, and with the infinities that are meant. Of the cases below
    the last that holds counts."""
    largest = jnp.maximum(abs(b.real), abs(b.imaginary))
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
    c, d = b.real / scale, b.imaginary / scale
    square = c * c + d * d
    real = (a.real * c + a.imaginary * d) / square / scale
    imaginary = (a.imaginary * c - a.real * d) / square / scale

    def boxed(x: Any) -> Any:
        return jnp.copysign(jnp.isinf(x).astype(x.dtype), x)

    def either(kind: Callable[[Any], Any], x: Pair) -> Any:
        return kind(x.real) | kind(x.imaginary)

    def both(kind: Callable[[Any], Any], x: Pair) -> Any:
        return kind(x.real) & kind(x.imaginary)

    lost = jnp.isnan(real) & jnp.isnan(imaginary)
    by_zero = lost & (square == 0) & ~both(jnp.isnan, a)
    infinite = lost & either(jnp.isinf, a) & both(jnp.isfinite, b)
    by_infinite = lost & either(jnp.isinf, b) & both(jnp.isfinite, a)
    huge = jnp.copysign(jnp.inf, b.real)
    x, y = boxed(a.real), boxed(a.imaginary)
    u, v = boxed(b.real), boxed(b.imaginary)
    for case, parts in (
        (
            by_infinite,
            (0 * (a.real * u + a.imaginary * v), 0 * (a.imaginary * u - a.real * v)),
        ),
        (infinite, (jnp.inf * (x * c + y * d), jnp.inf * (y * c - x * d))),
        (by_zero, (huge * a.real, huge * a.imaginary)),
    ):
        real, imaginary = (
            jnp.where(case, mended, plain)
            for mended, plain in zip(parts, (real, imaginary), strict=True)
        )
    return Pair(real, imaginary)


def _size(a: Pair) -> Any:
    """|a| without overflow."""
    larger = jnp.maximum(abs(a.real), abs(a.imaginary))
    ratio = jnp.minimum(abs(a.real), abs(a.imaginary)) / jnp.where(larger > 0, larger, 1)
    found = larger * jnp.sqrt(1 + ratio * ratio)
    return jnp.where(jnp.isinf(larger), jnp.inf, found)


def _sign(a: Pair) -> Pair:
    size = _size(a)
    still = size == 0
    return Pair(*(jnp.where(still, x, x / jnp.where(still, 1, size)) for x in a))


def _exponential(a: Pair) -> Pair:
    size = jnp.exp(a.real)
    sine = jnp.where(a.imaginary == 0, 0, size * jnp.sin(a.imaginary))
    return Pair(size * jnp.cos(a.imaginary), sine)


def _power(params: Any, a: Pair) -> Pair:
    left, found, square = abs(params["y"]), None, a
    while left:
        if left & 1:
            found = square if found is None else _product(found, square)
        left >>= 1
        square = _product(square, square) if left else square
    if found is None:
        return Pair(jnp.ones_like(a.real), jnp.zeros_like(a.real))
    if params["y"] > 0:
        return found
    return _quotient(Pair(jnp.ones_like(a.real), jnp.zeros_like(a.real)), found)


def _dot(params: Any, a: Any, b: Any) -> Pair:
    """One of the two may be real, or of another precision."""
    a, b = Pair.of(a), Pair.of(b)
    kind = params["preferred_element_type"]
    real = jnp.result_type(a.real, b.real) if kind is None else _real_of(kind)
    a, b = (Pair(*(lax.convert_element_type(x, real) for x in pair)) for pair in (a, b))
    settings = {name: params[name] for name in ("dimension_numbers", "precision")}

    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, preferred_element_type=real, **settings)

    return Pair(
        product(a.real, b.real) - product(a.imaginary, b.imaginary),
        product(a.real, b.imaginary) + product(a.imaginary, b.real),
    )


def _converted(params: Any, a: Any) -> Any:
    kind = params["new_dtype"]
    if not jnp.issubdtype(kind, jnp.complexfloating):
        return lax.convert_element_type(a.real, kind)
    if isinstance(a, Pair):
        return Pair(*(lax.convert_element_type(x, _real_of(kind)) for x in a))
    real = lax.convert_element_type(a, _real_of(kind))
    return Pair(real, jnp.zeros_like(real))


def _real_of(kind: Any) -> Any:
    return np.finfo(kind).dtype


def _transform(params: Any, a: Any) -> Any:
    given = (a.real, a.imaginary) if isinstance(a, Pair) else (a, None)
    kind = getattr(params["fft_type"], "name", str(params["fft_type"]))
    real, imaginary = fourier.transform(kind, params["fft_lengths"], given)
    return real if imaginary is None else Pair(real, imaginary)


def _gathered(params: Any, operand: Pair, indices: Any) -> Pair:
    names = "dimension_numbers", "slice_sizes", "indices_are_sorted", "unique_indices", "mode"
    settings = {name: params[name] for name in names}
    fill = params["fill_value"]
    fills = (None, 0) if fill is None else (np.real(fill), np.imag(fill))
    parts = zip(operand, fills, strict=True)
    return Pair(*(lax.gather(x, indices, fill_value=f, **settings) for x, f in parts))


def _scattered(function: Callable[..., Any]) -> Callable[..., Any]:
    names = "dimension_numbers", "indices_are_sorted", "unique_indices", "mode"

    def rule(params: Any, operand: Pair, indices: Any, updates: Pair) -> Pair:
        settings = {name: params[name] for name in names}
        parts = zip(operand, updates, strict=True)
        return Pair(*(function(x, indices, y, **settings) for x, y in parts))

    return rule


# From an equation's parameters and operands, complex ones as pairs, to its result.
_RULES: dict[str, Callable[..., Any]] = {
    "abs": lambda _, a: _size(a),
    "complex": lambda _, x, y: Pair(x, y),
    "conj": lambda _, a: Pair(Pair.of(a).real, -Pair.of(a).imaginary),
    "convert_element_type": _converted,
    "div": lambda _, a, b: _quotient(a, b),
    "dot_general": _dot,
    "eq": lambda _, a, b: (a.real == b.real) & (a.imaginary == b.imaginary),
    "exp": lambda _, a: _exponential(a),
    "fft": _transform,
    "gather": _gathered,
    "imag": lambda _, a: a.imaginary,
    "integer_pow": _power,
    "mul": lambda _, a, b: _product(a, b),
    "ne": lambda _, a, b: (a.real != b.real) | (a.imaginary != b.imaginary),
    "real": lambda _, a: a.real,
    "scatter": _scattered(lax.scatter),
    "scatter-add": _scattered(lax.scatter_add),
    "sign": lambda _, a: _sign(a),
    "square": lambda _, a: _product(a, a),
}
_OF_SCATTERS = {"dimension_numbers", "indices_are_sorted", "unique_indices", "mode"}
# What equations with rules say: that which the rule reads, and hints.
_PARAMETERS: dict[str, set[str]] = {
    "conj": {"input_dtype"},
    "convert_element_type": {"new_dtype", "weak_type"},
    "dot_general": {"dimension_numbers", "precision", "preferred_element_type"},
    "fft": {"fft_lengths", "fft_type"},
    "gather": _OF_SCATTERS | {"fill_value", "slice_sizes"},
    "integer_pow": {"y"},
    "scatter": _OF_SCATTERS | {"update_jaxpr", "update_consts"},
    "scatter-add": _OF_SCATTERS | {"update_jaxpr", "update_consts"},
}
# Those of several operands that have one shape.
_ELEMENTWISE = {"add", "add_any", "complex", "div", "eq", "mul", "ne", "sub"}
# The same of both parts.
_PARTWISE = {
    *("add", "add_any", "broadcast_in_dim", "concatenate", "copy", "copy_p", "cumsum"),
    *("dynamic_slice", "dynamic_update_slice", "expand_dims", "neg", "pad", "reduce_sum"),
    *("reshape", "rev", "select_n", "slice", "split", "squeeze", "sub", "transpose", "unstack"),
}
