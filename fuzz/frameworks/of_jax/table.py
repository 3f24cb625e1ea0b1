# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of operations: each emits a statement or a few, or raises NotApplicable."""

from __future__ import annotations

import random
from collections.abc import Callable

from frameworks.of_jax.builder import Builder, NotApplicable

Operation = Callable[[Builder], object]

_TABLE: dict[Operation, float] = {}
_DEEPEST = 3  # functions within functions


def operation(weight: float = 1.0) -> Callable[[Operation], Operation]:
    """Enters a function into the table; `weight`: how often it is drawn."""

    def enter(function: Operation) -> Operation:
        _TABLE[function] = weight
        return function

    return enter


def table() -> dict[Operation, float]:
    return dict(_TABLE)


def grow(builder: Builder, statements: int) -> None:
    """Emits about so many statements by operations of the table."""
    drawn = weights(builder.depth)
    tries = 0
    while len(builder.statements) < statements and tries < 6 * statements:
        tries += 1
        kept, scope = list(builder.statements), list(builder.scope)
        try:
            pick(builder.choose, drawn)(builder)
        except NotApplicable:  # what it had made until then leaves with it
            builder.statements[:], builder.scope[:] = kept, scope


def weights(depth: int) -> dict[Operation, float]:
    """Functions with functions in them are rarer the deeper they are."""
    rarer = 0.6**depth if depth < _DEEPEST else 0.0
    return {
        op: weight * (rarer if getattr(op, "nests", False) else 1.0)
        for op, weight in _TABLE.items()
    }


def nests(function: Operation) -> Operation:
    """Marks an operation that has functions in it."""
    function.nests = True  # type: ignore[attr-defined]
    return function


def pick(choose: random.Random, drawn: dict[Operation, float]) -> Operation:
    (found,) = choose.choices(list(drawn), list(drawn.values()))
    return found
