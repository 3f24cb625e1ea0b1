# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which accesses of a body are sums, `x[i] += f`, minima or maxima, on whose order nothing else
depends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from baechi.loops.accesses import Access


def mark_sums(
    body: Any,
    seen: Sequence[tuple[Access, bool]],
    apart: Callable[..., tuple[list[Access], list[Any], list[Any]]],
    arguments: Sequence[jax.ShapeDtypeStruct],
    arrays: Sequence[jax.ShapeDtypeStruct],
) -> None:
    """Makes one addition, minimum or maximum of a read and a write where nothing else of the body
    depends on what was read.

    seen: the body's reads, with whether each sees, or may see, what the entry itself has
        written; one that surely does is no access of the body.
    apart: the body as a function of `arguments` and of what each read gives, as if an entry did
        not see what it has written: several additions to one place are then one each.

    What an entry writes depends on an array's elements through its reads alone. So if each read
    is used by an addition only, whose result is written where the read was, the entry adds to
    the array numbers that do not depend on it, even if the places are the same.
    """
    reads = [
        jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
            access.shape, arrays[access.array].dtype
        )
        for access, _ in seen
    ]
    accesses: list[Access] = []

    def function(*flat: Any) -> list[Any]:
        found, written, new = apart(*flat)
        accesses[:] = found
        numbers = [p.number for a in found for p in a.positions if not p.known]
        return [*written, *numbers, *new]

    jaxpr = jax.make_jaxpr(function)(*arguments, *reads).jaxpr
    made_reads = [a for a in accesses if not a.writes]
    made_writes = [a for a in accesses if a.writes]
    same = _numbers(jaxpr)
    told = iter(jaxpr.outvars[len(made_writes) :])
    places = [
        (
            access.array,
            access.positions,
            tuple(same(next(told)) for p in access.positions if not p.known),
        )
        for access in accesses
    ]
    place_of = {id(access): place for access, place in zip(accesses, places, strict=True)}
    # A position is a use: what is read and then a position is no sum.
    uses: dict[Any, int] = {}
    for variable in [v for e in jaxpr.eqns for v in e.invars] + list(jaxpr.outvars):
        if not hasattr(variable, "val"):
            uses[variable] = uses.get(variable, 0) + 1
    made = {variable: equation for equation in jaxpr.eqns for variable in equation.outvars}
    written = [access for access in body.accesses if access.writes]

    def updates(is_update: Callable[[Any, Any], bool]) -> dict[int, int]:
        """By write its read."""
        found: dict[int, int] = {}
        for number, access in enumerate(made_reads):
            variable = jaxpr.invars[len(arguments) + number]
            for at, (write, output) in enumerate(zip(made_writes, jaxpr.outvars, strict=False)):
                equation = None if hasattr(output, "val") else made.get(output)
                if (
                    at not in found
                    and place_of[id(write)] == place_of[id(access)]
                    and equation is not None
                    and is_update(equation, variable)
                    and uses[variable] == 1
                    and uses[output] == 1
                ):
                    found[at] = number
                    break
        return found

    def reads_of(array: int) -> list[int]:
        return [n for n, (access, _) in enumerate(seen) if access.array == array]

    def are_all(array: int, found: dict[int, int]) -> bool:
        return set(reads_of(array)) <= set(found.values()) and all(
            at in found for at, write in enumerate(written) if write.array == array
        )

    sums = updates(_adds)
    for array in {access.array for access in written}:
        # Otherwise a read may see a sum, and depend on what it began with.
        if not are_all(array, sums) and any(seen[n][1] for n in reads_of(array)):
            continue
        for at, number in sums.items():
            if written[at].array == array:
                written[at].adds = seen[number][0].adds = True
    for how in ("min", "max"):
        found = updates(functools.partial(_is_of, how))
        for array in {access.array for access in written}:
            # Of floats the order may tell which of two that are no numbers stays.
            if not are_all(array, found) or not jnp.issubdtype(arrays[array].dtype, jnp.integer):
                continue
            for at, number in found.items():
                if written[at].array == array:
                    written[at].joins = seen[number][0].joins = how


def _is_of(how: str, equation: Any, variable: Any) -> bool:
    """Whether an equation is the minimum, or maximum, of `variable` and something else."""
    places = [v is variable for v in equation.invars]
    return places.count(True) == 1 and str(equation.primitive) == how


def _adds(equation: Any, variable: Any) -> bool:
    """Whether an equation is `variable` plus, or minus, something else."""
    places = [v is variable for v in equation.invars]
    name = str(equation.primitive)
    return places.count(True) == 1 and (name in ("add", "add_any") or (name == "sub" and places[0]))


def _numbers(jaxpr: Any) -> Callable[[Any], Any]:
    """The same for variables that are computed in the same way."""
    known: dict[Any, int] = {}
    numbers: dict[Any, int] = {}

    def of(variable: Any) -> Any:
        if hasattr(variable, "val"):
            return ("literal", str(variable.val), str(variable.aval))
        return numbers.setdefault(variable, len(numbers) + len(known))

    for equation in jaxpr.eqns:
        key = (
            str(equation.primitive),
            tuple((name, _told(value)) for name, value in equation.params.items()),
            tuple(map(of, equation.invars)),
        )
        first = known.setdefault(key, len(numbers) + len(known))
        for k, variable in enumerate(equation.outvars):
            numbers[variable] = first if k == 0 else len(numbers) + len(known)
    return of


def _told(parameter: Any) -> Any:
    """What tells parameters of equations apart. Functions and arrays by what they are: their text
    does not show the arrays that a function has taken from around it, nor all of a long array."""
    if isinstance(parameter, tuple | list):
        return tuple(map(_told, parameter))
    if hasattr(parameter, "eqns") or hasattr(parameter, "jaxpr") or hasattr(parameter, "shape"):
        return id(parameter)
    return str(parameter)
