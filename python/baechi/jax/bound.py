# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call's arguments in one row, and which of them are meant by position or by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from baechi.importer.jax.signature import argument_names


@dataclasses.dataclass(frozen=True)
class Bound:
    """The values of a call: those by position, then those that stay keywords."""

    values: tuple[Any, ...]
    keywords: tuple[str, ...] = ()

    def positions(self, chosen: Chosen) -> list[int]:
        """Where the chosen arguments are among the values; left-off ones are nowhere."""
        count = len(self.values) - len(self.keywords)
        numbers = (p + count if p < 0 else p for p in chosen.numbers)
        found = {p for p in numbers if 0 <= p < count}
        found |= {count + i for i, name in enumerate(self.keywords) if name in chosen.names}
        return sorted(found)

    def hashable(self, step: Callable[..., Any], chosen: Chosen) -> dict[int, Any]:
        """The chosen values by position. Raises ValueError for one that has no hash."""
        found = {i: self.values[i] for i in self.positions(chosen)}
        for i, value in found.items():
            try:
                hash(value)
            except TypeError as error:
                name = self.names(step)[i]
                raise ValueError(
                    f"static argument '{name}' is a {type(value).__name__}, which has no hash: "
                    "give a tuple or another hashable value, or let it be an array"
                ) from error
        return found

    def names(self, step: Callable[..., Any]) -> list[str]:
        """Of the values."""
        count = len(self.values) - len(self.keywords)
        return [*argument_names(step, count), *self.keywords]

    def positional(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step of these values by position, which keep their names."""
        if not self.keywords:
            return step
        count = len(self.values) - len(self.keywords)

        def positional_step(*values: Any) -> Any:
            return step(*values[:count], **dict(zip(self.keywords, values[count:], strict=True)))

        names = self.names(step)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in names]
        vars(positional_step)["__signature__"] = inspect.Signature(parameters)
        return positional_step


def bind(step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
    """A call's arguments: by position as far as they can be, the others in the order of
    the step's parameters. Raises TypeError for arguments that the step does not take."""
    if not kwargs:
        return Bound(args)
    signature = inspect.signature(step)
    bound = signature.bind(*args, **kwargs)
    named = [name for name in signature.parameters if name in bound.kwargs]
    others = sorted(set(bound.kwargs) - set(named))
    keywords = (*named, *others)
    return Bound((*bound.args, *(bound.kwargs[name] for name in keywords)), keywords)


class Way:
    """How calls with so many arguments by position, and with these keywords, become one row
    of values: bind, positions and hashable for all of them at once."""

    def __init__(self, step: Callable[..., Any], count: int, names: Sequence[str], static: Chosen):
        numbers: tuple[Any, ...] = tuple(range(count))
        bound = bind(step, numbers, {name: name for name in names})
        self.static = bound.positions(static)
        fixed = set(self.static)
        self._order = bound.values
        self._dynamic = [i for i in range(len(self._order)) if i not in fixed]
        self._is_plain = not names and not fixed

    def dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The values that are not static."""
        if self._is_plain:
            return args
        return tuple(self._value(i, args, kwargs) for i in self._dynamic)

    def fixed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The static ones."""
        return tuple(self._value(i, args, kwargs) for i in self.static)

    def _value(self, i: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        at = self._order[i]
        return args[at] if type(at) is int else kwargs[at]


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Arguments of a step by number (negative ones from the end) and by name."""

    numbers: frozenset[int]
    names: frozenset[str]


def choose(
    step: Callable[..., Any], numbers: int | Sequence[int], names: str | Sequence[str], what: str
) -> Chosen:
    """Raises ValueError for a number or a name that the step does not have; what: `donate`
    or `static`."""
    by_number = {numbers} if isinstance(numbers, int) else set(numbers)
    if by_number:
        _check_numbers(step, by_number, what)
    wanted = [names] if isinstance(names, str) else list(names)
    known = inspect.signature(step).parameters if wanted else {}  # a builtin may have none
    for name in wanted:
        parameter = known.get(name)
        if parameter is None and any(p.kind is p.VAR_KEYWORD for p in known.values()):
            continue
        if parameter is None:
            raise ValueError(
                f"the step has no argument '{name}'; its arguments: {', '.join(known)}"
            )
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            by_number.add(list(known).index(name))
    return Chosen(frozenset(by_number), frozenset(wanted))


def _check_numbers(step: Callable[..., Any], numbers: set[int], what: str) -> None:
    try:
        parameters = inspect.signature(step).parameters.values()
    except ValueError:  # a builtin may have none
        return
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in by_position for p in parameters)
    for number in sorted(numbers):
        if not -count <= number < count:
            raise ValueError(
                f"{what}_argnums has {number}, but the step takes {count} arguments by position"
            )
