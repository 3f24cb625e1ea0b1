# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the rounding of short types within a step changes of its results.

A step may compute in bfloat16 or half precision and return single precision. Which of its results
may differ, and by how much, shows where every value of a short type is another one in its last
place: those that depend on none stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core

from baechi.importer.jax import jaxprs

_SHORT = {"bfloat16", "float16"}
# What gives elements as they are.
_MOVES = {
    *("reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim", "rev", "copy"),
    *("slice", "dynamic_slice", "dynamic_update_slice", "concatenate", "gather", "pad", "sort"),
    *("select_n", "max", "min", "neg", "abs", "sign", "clamp", "reduce_max", "reduce_min"),
    *("stop_gradient", "optimization_barrier"),
}
# Their bodies are computed with changes, too. The number of a `while` loop's turns may depend
# on last places: it is one operation.
_WITH_BODIES = {"scan", "cond"}


def is_short(dtype: Any) -> bool:
    return str(dtype) in _SHORT


def computes_short(jaxpr: core.Jaxpr) -> bool:
    """Whether any value of a short type is made, or read."""
    variables = [v for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars)]
    return any(is_short(_type_of(v)) for v in variables) or any(
        computes_short(body) for eqn in jaxpr.eqns for body in jaxprs.bodies(eqn)
    )


def changed(closed: core.ClosedJaxpr, seed: int) -> Callable[..., list[Any]]:
    """The same computation with every value that it makes of a short type, and every one that it
    widens from one, changed by a unit in the last place of its type, up or down."""
    return lambda *args: _Changed(seed).evaluate(closed, args)


class _Changed:
    def __init__(self, seed: int):
        self._seed, self._count = seed, 0

    def evaluate(self, closed: core.ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        jaxpr = closed.jaxpr
        values: dict[core.Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values |= zip(jaxpr.invars, args, strict=True)

        def value_of(v: Any) -> Any:
            return v.val if isinstance(v, core.Literal) else values[v]

        for eqn in jaxpr.eqns:
            values |= zip(eqn.outvars, self._apply(eqn, list(map(value_of, eqn.invars))))
        return list(map(value_of, jaxpr.outvars))

    def _apply(self, eqn: Any, operands: list[Any]) -> list[Any]:
        with jaxprs.located(eqn):
            if (body := jaxprs.called_by(eqn)) is not None:
                return self.evaluate(body, operands)
            if eqn.primitive.name in _WITH_BODIES:
                params = jax.tree.map(self._body, eqn.params, is_leaf=_is_body)
                return jaxprs.bind(eqn, params, operands)
            made = jaxprs.bind(eqn, eqn.params, operands)
            widens = eqn.primitive.name == "convert_element_type" and any(
                is_short(_type_of(v)) for v in eqn.invars
            )
            if eqn.primitive.name in _MOVES:
                return made
            return [
                self._moved(value) if is_short(kind) or (widens and _is_wide(kind)) else value
                for value, kind in zip(made, map(_type_of, eqn.outvars), strict=True)
            ]

    def _body(self, value: Any) -> Any:
        if not isinstance(value, core.ClosedJaxpr):
            return value
        return jaxprs.retraced(value, lambda *args: self.evaluate(value, args))

    def _moved(self, value: Any) -> Any:
        """A unit up or down, as a hash of the operation and the element says."""
        self._count += 1
        number = np.uint32((self._seed * 0x9E3779B9 + self._count * 0x85EBCA6B) % 2**32)
        places = lax.iota(np.uint32, math.prod(value.shape)).reshape(value.shape)
        bits = (places + number) * np.uint32(0x7FEB352D)
        bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B)
        up = (bits >> np.uint32(31)) == 1
        unit = float(np.spacing(np.ones((), value.dtype)))
        kind = value.dtype if value.dtype == np.float64 else np.dtype(np.float32)
        factor = jax.numpy.where(up, 1 + unit, 1 - unit).astype(kind)
        return (value.astype(kind) * factor).astype(value.dtype)


def _is_body(value: Any) -> bool:
    return isinstance(value, core.ClosedJaxpr)


def _is_wide(dtype: Any) -> bool:
    return str(dtype) in ("float32", "float64")


def _type_of(variable: Any) -> Any:
    return getattr(variable.aval, "dtype", None)
