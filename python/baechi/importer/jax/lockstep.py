# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches of several replicas as one, whose body is theirs side by side.

Values that are the same for several replicas stay one through a loop, where its body keeps them
so: the least of such assumptions that holds is found by trying. Turns of a short loop, of which
is known how many there are, are written one after the other instead: then each replica has its own
operators, and what they exchange are messages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax._src import source_info_util  # the scopes of equations
from jax.extend import core

from baechi.importer.jax import jaxprs
from baechi.importer.jax.parts import whole

Values = list[Any]
# A jaxpr's results, of its constants and arguments.
Evaluate = Callable[[core.Jaxpr, list[Values], list[Values]], list[Values]]
# Of one variable: for each replica the first one that has the same value.
_Pattern = tuple[int, ...]
# Operators that a loop may become, of all replicas and turns.
LARGEST_UNROLLED = 16384


class Diverged(Exception):
    """Replicas would go different ways, of which none has all that exchange values."""


def apply(eqn: Any, operands: list[Values], evaluate: Evaluate, count: int) -> list[Values]:
    """A scan, while or cond of `count` replicas. Raises Diverged."""
    return _KINDS[eqn.primitive.name](eqn.params, operands, evaluate, count)


def is_short(eqn: Any, count: int) -> bool:
    """Whether a loop is written turn by turn: a scan of a few operators and turns, or one that
    is asked to be (`unroll=True`)."""
    if eqn.primitive.name != "scan":
        return False
    is_asked = eqn.params["unroll"] >= eqn.params["length"]
    return bool(is_asked) or operators_in_turns(eqn, count) <= LARGEST_UNROLLED


def operators_in_turns(scan: Any, count: int) -> int:
    """Of a scan that is written turn by turn, of all replicas."""
    return int(scan.params["length"]) * _operators_in_a_turn(scan, count)


def short_turns(scan: Any, count: int) -> int:
    """So many turns of a scan are written turn by turn unasked."""
    return LARGEST_UNROLLED // max(1, _operators_in_a_turn(scan, count))


def _operators_in_a_turn(scan: Any, count: int) -> int:
    return count * sum(map(_size, jaxprs.bodies(scan)))


def _size(jaxpr: core.Jaxpr) -> int:
    """Equations, also within others, and those of a shard_map for each replica."""
    return sum(
        1 + sum(map(_size, jaxprs.bodies(eqn))) * getattr(eqn.params.get("mesh"), "size", 1)
        for eqn in jaxpr.eqns
    )


def item_of(turn: int, value: Any) -> Any:
    """What a turn has of an array that a scan goes along."""
    return lax.index_in_dim(value, turn, keepdims=False)


def turns(
    eqn: Any,
    operands: list[Values],
    evaluate: Evaluate,
    count: int,
    item: Callable[[int, Any], Any] = item_of,
) -> list[Values]:
    """A scan without a loop; item: what a turn has of a value that it goes along."""
    params = eqn.params
    constants, carried = _counts(params)
    consts, rest = operands[:constants], operands[constants:]
    carry, xs = rest[:carried], rest[carried:]
    order = range(params["length"])
    made: dict[int, list[Values]] = {}
    for turn in reversed(order) if params["reverse"] else order:
        own = [_each(functools.partial(item, turn), values) for values in xs]
        with source_info_util.extend_name_stack(f"turn{turn}"):
            results = _call(evaluate, params["jaxpr"], [*consts, *carry, *own], count)
        carry, made[turn] = results[:carried], results[carried:]
    ys = []
    for number, variable in enumerate(eqn.outvars[carried:]):
        rows = [made[turn][number] for turn in order]
        if rows:
            ys.append(_each(lambda *each: jnp.stack(list(map(whole, each))), *rows))
        else:
            ys.append([jnp.zeros(variable.aval.shape, variable.aval.dtype)] * count)
    return [*carry, *ys]


def _each(compute: Callable[..., Any], *operands: Values) -> Values:
    """Of each replica's values, once where they are the same."""
    made: dict[tuple[int, ...], Any] = {}
    results = []
    for own in zip(*operands, strict=True):
        key = tuple(map(id, own))
        if key not in made:
            made[key] = compute(*own)
        results.append(made[key])
    return results


def _scan(params: Any, operands: list[Values], evaluate: Evaluate, count: int) -> list[Values]:
    constants, carried = _counts(params)
    consts, rest = operands[:constants], operands[constants:]
    start, xs = rest[:carried], rest[carried:]
    own = _patterns(xs)

    def run(patterns: list[_Pattern], found: list[_Pattern]) -> Any:
        def body(carry: Any, x: Any) -> Any:
            args = [*consts, *_spread(carry, patterns), *_spread(x, own)]
            results = _call(evaluate, params["jaxpr"], args, count)
            found[:] = _patterns(results)
            made, ys = results[:carried], results[carried:]
            return _taken(made, patterns), _taken(ys, found[carried:])

        return lax.scan(
            body,
            _taken(start, patterns),
            _taken(xs, own),
            length=params["length"],
            reverse=params["reverse"],
            unroll=params["unroll"],
        )

    found: list[_Pattern] = []
    patterns = _fixed_point(_patterns(start), found, run)
    last, ys = run(patterns, found)
    return [*_spread(last, patterns), *_spread(ys, found[carried:])]


def _counts(params: Any) -> tuple[int, int]:
    """How many constants a scan has, and how many values it carries."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # since JAX 0.11
    return len(list(consts.vals)), len(list(carry.vals))


def _while(params: Any, operands: list[Values], evaluate: Evaluate, count: int) -> list[Values]:
    of_condition, of_body = params["cond_nconsts"], params["body_nconsts"]
    asked, consts = operands[:of_condition], operands[of_condition:][:of_body]
    start = operands[of_condition + of_body :]

    def run(patterns: list[_Pattern], found: list[_Pattern]) -> Any:
        def condition(carry: Any) -> Any:
            args = [*asked, *_spread(carry, patterns)]
            [wanted] = _call(evaluate, params["cond_jaxpr"], args, count)
            if len(set(map(id, wanted))) > 1:
                raise Diverged(
                    "its condition is another for each replica, and its body exchanges values: "
                    "make the condition of what lax.psum or lax.pmax gives"
                )
            return wanted[0]

        def body(carry: Any) -> Any:
            args = [*consts, *_spread(carry, patterns)]
            results = _call(evaluate, params["body_jaxpr"], args, count)
            found[:] = _patterns(results)
            return _taken(results, patterns)

        return lax.while_loop(condition, body, _taken(start, patterns))

    found: list[_Pattern] = []
    patterns = _fixed_point(_patterns(start), found, run)
    return _spread(run(patterns, found), patterns)


def _cond(params: Any, operands: list[Values], evaluate: Evaluate, count: int) -> list[Values]:
    [index, *rest] = operands
    if len(set(map(id, index))) > 1:
        raise Diverged(
            "its branch is another for each replica, and a branch exchanges values: choose "
            "it by what lax.psum or lax.pmax gives, or exchange values before it"
        )
    own = _patterns(rest)

    def run(patterns: list[_Pattern] | None, found: list[_Pattern]) -> Any:
        def branch(jaxpr: Any, *taken: Any) -> Any:
            results = _call(evaluate, jaxpr, _spread(list(taken), own), count)
            made = _patterns(results)
            found[:] = [_meet(*pair) for pair in zip(found, made)] if found else made
            return _taken(results, patterns if patterns is not None else made)

        taken = _taken(rest, own)
        if patterns is None:
            for jaxpr in params["branches"]:
                jax.eval_shape(lambda *args, jaxpr=jaxpr: branch(jaxpr, *args), *taken)
            return None
        return lax.switch(
            index[0],
            [lambda *args, jaxpr=jaxpr: branch(jaxpr, *args) for jaxpr in params["branches"]],
            *taken,
        )

    found: list[_Pattern] = []
    run(None, found)
    patterns = list(found)
    return _spread(run(patterns, []), patterns)


_KINDS = {"scan": _scan, "while": _while, "cond": _cond}


def _call(evaluate: Evaluate, closed: Any, args: list[Values], count: int) -> list[Values]:
    return evaluate(closed.jaxpr, [[each] * count for each in closed.consts], args)


def _fixed_point(
    patterns: list[_Pattern], found: list[_Pattern], run: Callable[..., Any]
) -> list[_Pattern]:
    """What stays the same in each turn of a loop, of what is so at first."""
    while True:
        jax.eval_shape(lambda: run(patterns, found))
        kept = [_meet(before, after) for before, after in zip(patterns, found)]
        if kept == patterns:
            return patterns
        patterns = kept


def _meet(a: _Pattern, b: _Pattern) -> _Pattern:
    """Same where both are."""
    return tuple(
        next(k for k in range(len(a)) if (a[k], b[k]) == pair) for pair in zip(a, b, strict=True)
    )


def _patterns(values: Sequence[Values]) -> list[_Pattern]:
    def pattern(each: Values) -> _Pattern:
        ids = list(map(id, each))
        return tuple(map(ids.index, ids))

    return [pattern(each) for each in values]


def _taken(values: Sequence[Values], patterns: Sequence[_Pattern]) -> list[Values]:
    """Of each variable the different values."""
    return [
        [each[k] for k in sorted(set(pattern))]
        for each, pattern in zip(values, patterns, strict=True)
    ]


def _spread(taken: Sequence[Values], patterns: Sequence[_Pattern]) -> list[Values]:
    """And back."""
    spread = []
    for each, pattern in zip(taken, patterns, strict=True):
        known = dict(zip(sorted(set(pattern)), each, strict=True))
        spread.append([known[k] for k in pattern])
    return spread
