# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs JAX programs: several in one step, by `baechi.jit` and by `jax.jit`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import baechi
from baechi.importer.common.errors import ImportFailure
from frameworks import compare
from frameworks.of_jax import names
from frameworks.of_jax.generate import Program
from frameworks.program import Block, Statement, Value, render, with_each
from frameworks.verdict import Verdict, of_error

CALLS = 3
_NEARBY = 3  # evaluations with all values moved by a last digit


def options(seed: int) -> dict[str, Any]:
    """How the batch of a seed is compiled: on one device and on two, whole and in pieces,
    in turns."""
    return {
        "machine": f"host:{1 + seed % 2}",
        "costs": "roofline",
        "budget": "0",
        "splits": ("none", "forced:2", "none", "forced:3")[seed // 2 % 4],
    }


def run(programs: Sequence[Program], seed: int) -> list[Verdict]:
    """The verdicts of programs, which are one step."""
    step, states, inputs = _step(programs), _states(programs), _inputs(programs)
    try:
        ours = _calls(baechi.jit(step, donate_argnums=0, **options(seed)), states, inputs)
    except ImportFailure as error:
        return _apart(programs, seed, of_error("refused", error))
    except Exception as error:  # a valid program: whatever it is, it is a finding
        return _apart(programs, seed, of_error("failed", error))
    try:
        theirs = _calls(jax.jit(step), states, inputs)
    except Exception as error:  # what JAX does not take decides nothing
        return _apart(programs, seed, of_error("invalid", error))
    return [
        _verdict(program, mine, right)
        for program, mine, right in zip(programs, ours, theirs, strict=True)
    ]


def _apart(programs: Sequence[Program], seed: int, verdict: Verdict) -> list[Verdict]:
    """Each half by itself, until it is known which program it was."""
    if len(programs) == 1:
        return [verdict]
    middle = len(programs) // 2
    found = run(programs[:middle], seed) + run(programs[middle:], seed)
    if all(each.kind not in ("refused", "failed", "invalid") for each in found):
        words = f"{verdict.kind} only together with {len(programs)} others: {verdict.words}"
        found[0] = Verdict("failed", words)
    return found


def _step(programs: Sequence[Program]) -> Callable[[Any, Any], Any]:
    """The step of all programs."""
    return _step_of(programs, [function(program.block, names.namespace()) for program in programs])


def _step_of(
    programs: Sequence[Program], functions: Sequence[Callable[..., Any]]
) -> Callable[[Any, Any], Any]:

    def step(states: Any, inputs: Any) -> Any:
        following, results = [], []
        for program, of, state, given in zip(programs, functions, states, inputs, strict=True):
            found = of(*state, *given)
            following.append(list(found[: program.state]))
            results.append(list(found[program.state :]))
        return following, results

    return step


def function(block: Block, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(render(block), block.name, "exec"), scope)
    return scope[block.name]


def _states(programs: Sequence[Program]) -> list[list[Any]]:
    return [program.values()[: program.state] for program in programs]


def _inputs(programs: Sequence[Program]) -> list[list[Any]]:
    return [program.values()[program.state :] for program in programs]


def _calls(step: Callable[[Any, Any], Any], states: Any, inputs: Any) -> list[list[np.ndarray]]:
    """For every program what all calls gave, and the last state. The step's own state goes
    into its next call."""
    state = jax.tree.map(lambda x: np.array(x), states)
    found: list[list[np.ndarray]] = [[] for _ in inputs]
    for _ in range(CALLS):
        state, results = step(state, inputs)
        for mine, result in zip(found, results, strict=True):
            mine += [np.asarray(each) for each in result]
    for mine, last in zip(found, state, strict=True):
        mine += [np.asarray(each) for each in last]
    return found


def alone(program: Program) -> None:
    """The program by `jax.jit`, without Baechi: where that ends the process, XLA does."""
    _calls(jax.jit(_step([program])), _states([program]), _inputs([program]))


def _verdict(program: Program, ours: list[np.ndarray], theirs: list[np.ndarray]) -> Verdict:
    verdict = _judged(program, ours, theirs)
    if verdict.kind != "wrong":
        return verdict
    try:
        eager = _eager(program)
    except Exception as error:  # what JAX compiles only
        return Verdict("wrong", f"{verdict.words}; without jit: {of_error('', error).words}")
    if _judged(program, ours, eager).kind in ("equal", "rounding"):
        return Verdict("xla", f"{verdict.words}; JAX without jit gives Baechi's")
    return verdict


def _eager(program: Program) -> list[np.ndarray]:
    """By JAX one operation after the other, loops and branches by Python."""
    plain = _step([program])

    def step(*given: Any) -> Any:
        return plain(*jax.tree.map(jax.numpy.asarray, given))

    with jax.disable_jit():
        return _calls(step, _states([program]), _inputs([program]))[0]


def _judged(program: Program, ours: list[np.ndarray], theirs: list[np.ndarray]) -> Verdict:
    digit = program.coarsest()
    found = compare.differences(ours, theirs, digit)
    if not found:
        return Verdict("equal")
    try:
        exact, nearby = _double(program)
    except TypeError as error:  # types that fit each other in single precision only
        return Verdict("wrong", f"{found[0]}; not judged by double precision: {error}")
    worst = Verdict("rounding")
    for each in found:
        i = each.index
        said = compare.judge(ours[i], theirs[i], exact[i], [x[i] for x in nearby], digit)
        if said == "wrong":
            return Verdict("wrong", str(each))
        if said == "unstable":
            worst = Verdict("unstable", str(each))
    return worst


def _double(program: Program) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """JAX's results in double precision, and those with every value moved a little."""
    states, inputs = (
        [[_wide(v) for v in each[0]]] for each in (_states([program]), _inputs([program]))
    )
    scope = {**names.namespace(double=True), "moved": _moved}
    with jax.enable_x64(True):
        plain = jax.jit(_step_of([program], [function(program.block, scope)]))
        exact = _calls(plain, states, inputs)[0]
        nearby = []
        for number in range(_NEARBY):
            block = with_each(program.block, functools.partial(_move, number))
            moving = jax.jit(_step_of([program], [function(block, scope)]))
            given = [[_moved(v, number, 2.0**-24) for v in inputs[0]]]
            nearby.append(_calls(moving, states, given)[0])
    return exact, nearby


def _wide(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float64) if compare.is_float(value) else value


def _move(number: int, value: Value) -> Statement | None:
    """Moves a value, where it is computed, by half a last digit of its type."""
    half = {"f32": 2.0**-24, "f16": 2.0**-12, "bf16": 2.0**-9}.get(value.dtype)
    salt = 31 * int(value.name[1:]) + 17 * number
    text = f"moved({{0}}, {salt}, {half})"
    return Statement((value,), text, (value.name,)) if half else None


def _moved(value: Any, salt: int, by: float) -> Any:
    """Up or down, as a salt says for each element."""
    if not jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
        return value
    places = np.arange(math.prod(value.shape)).reshape(value.shape)
    up = (places * 2654435761 + salt * 40503) >> 7 & 1
    return value * (1 + by * (2.0 * up - 1))
