# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operation of a JAX step is the first whose values are wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax._src import source_info_util  # the scopes and lines of equations
from jax.extend import core

from baechi.checking.compare import Difference
from baechi.importer.errors import ImportFailure
from baechi.importer.locations import clean_name
from baechi.library import StepError
from baechi.tools import CompileError

# A function of flat arguments with flat results.
Flat = Callable[..., Sequence[Any]]

# Calls whose bodies are computed in place of them. What has control flow is one operation.
_CALLS = {"jit", "pjit", "closed_call", "remat2", "custom_jvp_call", "custom_vjp_call"}


@dataclasses.dataclass(frozen=True)
class Suspect:
    """The first operation whose values differ, or the last of `others` + 1 that may be."""

    operator: str
    primitive: str
    source: str
    text: str
    others: int

    def __str__(self) -> str:
        before = f" (or one of the {self.others} operations before it)" if self.others else ""
        return (
            f"first at '{self.operator}' ({self.primitive}), {self.source}{before}: {self.text}"
        )


def first_wrong(
    flat: Flat, leaves: Sequence[Any], judge: Callable[[Flat], Difference | None]
) -> Suspect | None:
    """The equation up to which a step must be computed for `judge` to see a difference,
    while up to the one before there is none. None: there is none in the whole step
    either, once it has no other program around it.
    """
    closed = jax.make_jaxpr(lambda *args: _evaluate_closed(jax.make_jaxpr(flat)(*args), args))(
        *leaves
    )
    equations = closed.jaxpr.eqns
    cuts = [k for k in range(1, len(equations) + 1) if _can_return(_live(closed.jaxpr, k))]
    found: Difference | None = None
    try:
        found = judge(_prefix(closed, len(equations)))
        if found is None:
            return None
        right, wrong = 0, len(cuts) - 1  # the cut `wrong` differs, those before `right` do not
        while right < wrong:
            middle = (right + wrong) // 2
            difference = judge(_prefix(closed, cuts[middle]))
            if difference is None:
                right = middle + 1
            else:
                wrong, found = middle, difference
    except (CompileError, ImportFailure, StepError):
        if found is None:
            return None  # a part of a program may be refused where the whole is not
    last = equations[cuts[wrong] - 1]
    others = cuts[wrong] - 1 - (cuts[right - 1] if right else 0)
    names = clean_name((f"{last.source_info.name_stack}/{last.primitive.name}",))
    return Suspect(names, last.primitive.name, _source_of(last), found.text, others)


def _prefix(closed: core.ClosedJaxpr, count: int) -> Flat:
    """The first so many equations; their results are what the others and the step need."""
    live = _live(closed.jaxpr, count)

    def prefix(*args: Any) -> list[Any]:
        values = _evaluate(closed.jaxpr, closed.jaxpr.eqns[:count], closed.consts, args)
        return [values[variable] for variable in live]

    return prefix


def _live(jaxpr: core.Jaxpr, count: int) -> list[core.Var]:
    made = {v: None for eqn in jaxpr.eqns[:count] for v in eqn.outvars}
    later = [v for eqn in jaxpr.eqns[count:] for v in eqn.invars]
    needed = [v for v in (*later, *jaxpr.outvars) if not isinstance(v, core.Literal)]
    return [v for v in dict.fromkeys(needed) if v in made]


def _can_return(variables: Sequence[core.Var]) -> bool:
    """Whether a program may return these: not complex numbers, nor what is no array."""
    kinds = [getattr(v.aval, "dtype", None) for v in variables]
    issubdtype = jax.numpy.issubdtype
    return all(k is not None and not issubdtype(k, jax.numpy.complexfloating) for k in kinds)


def _evaluate_closed(closed: core.ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    jaxpr = closed.jaxpr
    values = _evaluate(jaxpr, jaxpr.eqns, closed.consts, args)
    return [v.val if isinstance(v, core.Literal) else values[v] for v in jaxpr.outvars]


def _evaluate(
    jaxpr: core.Jaxpr, equations: Sequence[Any], consts: Sequence[Any], args: Sequence[Any]
) -> dict[core.Var, Any]:
    """All values of some equations, under the names and lines that they have."""
    values: dict[core.Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= zip(jaxpr.invars, args, strict=True)
    for eqn in equations:
        operands = [v.val if isinstance(v, core.Literal) else values[v] for v in eqn.invars]
        stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
        context = source_info_util.user_context(eqn.source_info.traceback, name_stack=stack)
        with context, eqn.ctx.manager:
            made = _apply(eqn, operands)
        values |= zip(eqn.outvars, made, strict=True)
    return values


def _apply(eqn: Any, operands: list[Any]) -> list[Any]:
    body = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if eqn.primitive.name in _CALLS and body is not None:
        closed = body if isinstance(body, core.ClosedJaxpr) else core.ClosedJaxpr(body, ())
        return _evaluate_closed(closed, operands)
    functions, parameters = eqn.primitive.get_bind_params(eqn.params)
    made = eqn.primitive.bind(*functions, *operands, **parameters)
    return list(made) if eqn.primitive.multiple_results else [made]


def _source_of(eqn: Any) -> str:
    frame = source_info_util.user_frame(eqn.source_info.traceback)
    return f"{frame.file_name}:{frame.start_line}:{frame.start_column}" if frame else "unknown"
