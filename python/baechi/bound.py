# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call's arguments in one row, and which of them are meant by position or by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from baechi.importer.signature import argument_names


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

    def positional(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step of these values by position, which keep their names."""
        if not self.keywords:
            return step
        count = len(self.values) - len(self.keywords)

        def positional_step(*values: Any) -> Any:
            return step(*values[:count], **dict(zip(self.keywords, values[count:], strict=True)))

        names = [*argument_names(step, count), *self.keywords]
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


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Arguments of a step by number (negative ones from the end) and by name."""

    numbers: frozenset[int]
    names: frozenset[str]


def choose(
    step: Callable[..., Any], numbers: int | Sequence[int], names: str | Sequence[str]
) -> Chosen:
    """Raises ValueError for a name that the step does not have."""
    by_number = {numbers} if isinstance(numbers, int) else set(numbers)
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
