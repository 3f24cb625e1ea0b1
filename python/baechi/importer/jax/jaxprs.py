# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equations of JAX steps: without calls, one after the other, with names and lines."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
from jax._src import source_info_util  # the scopes and lines of equations
from jax.extend import core

from baechi.importer.common.locations import clean_name

# Calls whose bodies are computed in place of them. What has control flow is one operation.
_CALLS = {"jit", "pjit", "closed_call", "remat2", "custom_jvp_call", "custom_vjp_call"}

_PACKAGE = pathlib.Path(__file__).resolve().parents[2]
# A line of the user's is wanted, where JAX would name one of these.
for _folder in ("importer", "jax"):
    source_info_util.register_exclusion(str(_PACKAGE / _folder) + os.sep)


def flatten(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """The same computation without calls."""
    return retraced(closed, function_of(closed))


def retraced(closed: core.ClosedJaxpr, function: Callable[..., Any]) -> core.ClosedJaxpr:
    """A function of the same arguments."""
    avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    return jax.make_jaxpr(function)(*avals)


def function_of(closed: core.ClosedJaxpr) -> Callable[..., list[Any]]:
    return lambda *args: evaluate_closed(closed, args)


def evaluate_closed(closed: core.ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    jaxpr = closed.jaxpr
    values = evaluate(jaxpr, jaxpr.eqns, closed.consts, args)
    return [v.val if isinstance(v, core.Literal) else values[v] for v in jaxpr.outvars]


def evaluate(
    jaxpr: core.Jaxpr, equations: Sequence[Any], consts: Sequence[Any], args: Sequence[Any]
) -> dict[core.Var, Any]:
    """All values of some equations, under the names and lines that they have."""
    values: dict[core.Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= zip(jaxpr.invars, args, strict=True)
    for eqn in equations:
        operands = [v.val if isinstance(v, core.Literal) else values[v] for v in eqn.invars]
        values |= zip(eqn.outvars, apply(eqn, operands), strict=True)
    return values


def apply(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """An equation's results, without the call that it may be."""
    with located(eqn):
        if (body := called_by(eqn)) is not None:
            return evaluate_closed(body, operands)
        return bind(eqn, eqn.params, operands)


def bind(eqn: Any, params: Mapping[str, Any], operands: Sequence[Any]) -> list[Any]:
    """An equation's primitive with these parameters."""
    bound = eqn.primitive.get_bind_params(dict(params))
    # Since JAX 0.10 functions are among the parameters.
    functions, parameters = bound if isinstance(bound, tuple) else ((), bound)
    made = eqn.primitive.bind(*functions, *operands, **parameters)
    return list(made) if eqn.primitive.multiple_results else [made]


def is_call(eqn: Any) -> bool:
    """Whether `flatten` puts a body in its place."""
    return eqn.primitive.name in _CALLS and _body(eqn) is not None


def called_by(eqn: Any) -> core.ClosedJaxpr | None:
    """What `flatten` puts in place of a call; None: it is none."""
    if not is_call(eqn):
        return None
    body = _body(eqn)
    return body if isinstance(body, core.ClosedJaxpr) else core.ClosedJaxpr(body, ())


def _body(eqn: Any) -> Any:
    return eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))


class located:
    """What is traced inside has the name and the line of an equation."""

    def __init__(self, eqn: Any):
        stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
        source = eqn.source_info.traceback
        if source_info_util.user_frame(source) is None:
            # Within a function of JAX that is compiled by itself, since 0.10 without its caller.
            source = source_info_util._source_info_context.context.traceback or source
        self._contexts = (
            source_info_util.user_context(source, name_stack=stack),
            eqn.ctx.manager,
        )

    def __enter__(self) -> None:
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *error: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*error)


def bodies(eqn: Any) -> Iterator[core.Jaxpr]:
    """The computations that an equation's parameters hold."""

    def is_body(value: Any) -> bool:
        return isinstance(value, core.ClosedJaxpr | core.Jaxpr)

    for value in jax.tree.leaves(list(eqn.params.values()), is_leaf=is_body):
        if is_body(value):
            yield value.jaxpr if isinstance(value, core.ClosedJaxpr) else value


def name_of(eqn: Any) -> str:
    """As the importer names operators: "decoder/l0/cond"."""
    return clean_name((f"{eqn.source_info.name_stack}/{eqn.primitive.name}",))


def source_of(eqn: Any) -> str:
    """`file:line:column` of the user's code."""
    frame = source_info_util.user_frame(eqn.source_info.traceback)
    return f"{frame.file_name}:{frame.start_line}:{frame.start_column}" if frame else "unknown"
