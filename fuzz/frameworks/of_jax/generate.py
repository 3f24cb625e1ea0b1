# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole JAX programs: by a seed, the same every time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from frameworks.of_jax import (  # noqa: F401 - each enters its operations into the table
    control,
    derivatives,
    elementwise,
    indexing,
    names,
    randoms,
    reductions,
    shapes,
)
from frameworks.of_jax.builder import EXTENTS, Builder, NotApplicable, Root
from frameworks.of_jax.table import grow
from frameworks.program import (
    Block,
    Value,
    names_of,
    render,
    without_unused,
    without_unused_parameters,
)

_MOST_RESULTS = 4


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arguments, some of which are its state: the first results are their
    next values. Its caller donates these."""

    seed: int
    block: Block
    state: int  # so many of the parameters, and of the results, the first ones
    forms: tuple[tuple[str, str], ...] = ()  # of parameters whose values are simpler ones

    @property
    def source(self) -> str:
        return render(self.block)

    def values(self) -> list[Any]:
        """The arguments of the first call."""
        return [eval(text, names.namespace()) for text in self.expressions()]

    def expressions(self) -> list[str]:
        """The arguments as text."""
        forms = dict(self.forms)
        return [
            names.drawn(1000 * self.seed + int(p.name[1:]), *p.kind, forms.get(p.name, ""))
            for p in self.block.parameters
        ]

    def coarsest(self) -> float:
        """The largest rounding error of the types that it computes in."""
        found = {t.dtype for t in _targets(self.block)} | {p.dtype for p in self.block.parameters}
        return 2.0**-8 if "bf16" in found else 2.0**-11 if "f16" in found else 2.0**-23


def generate(seed: int, extents: Sequence[int] = EXTENTS) -> Program:
    """The program of a seed. `extents`: the sizes of dimensions, as many as there are."""
    root = Root(seed, extents)
    builder = Builder(root)
    for _ in range(root.choose.randint(1, 3)):
        builder.scope.append(
            builder.argument(
                builder.shape(least=1), root.choose.choice([d for d in root.dtypes if d != "bool"])
            )
        )
    grow(builder, root.choose.choice((2, 3, 4, 5, 6, 8, 10, 14)))
    return _whole(seed, builder)


def _whole(seed: int, builder: Builder) -> Program:
    root, choose = builder.root, builder.choose
    computed = [v for s in builder.statements for v in s.targets]
    used = {name for s in builder.statements for name in names_of(s)}
    unused = [v for v in computed if v.name not in used]
    results = choose.sample(unused, min(len(unused), choose.randint(1, _MOST_RESULTS)))
    results += choose.sample(computed, min(1, len(computed)))
    if choose.random() < 0.3:  # an argument as it came, or the same result twice
        results.append(choose.choice([*root.arguments, *results]))
    state, following = _state(builder)
    rest = [a for a in root.arguments if a not in state]
    given = [*following, *results]
    form = ", ".join(f"{{{i}}}" for i in range(len(given)))
    block = Block(
        f"program{seed}",
        (*state, *rest),
        tuple(builder.statements),
        tuple(v.name for v in given),
        f"({form},)",
    )
    whole = without_unused_parameters(without_unused(block), len(state))
    return Program(seed, whole, len(state))


def _state(builder: Builder) -> tuple[list[Value], list[Value]]:
    """Arguments that have next values, and these: what the program computed, the argument
    itself, or another one's old value."""
    if builder.choose.random() < 0.4:
        return [], []
    state, following = [], []
    candidates = [a for a in builder.root.arguments if a.dtype in names.FLOATS]
    for argument in builder.choose.sample(candidates, min(2, len(candidates))):
        same = [v for s in builder.statements for v in s.targets if v.kind == argument.kind]
        same += [a for a in candidates if a.kind == argument.kind]
        if builder.choose.random() < 0.3:
            same = [v for v in same if v not in builder.root.arguments] or same
        try:
            found = builder.as_kind(builder.choose.choice(same), *argument.kind, bound=3.0)
        except NotApplicable:
            continue
        state.append(argument)
        following.append(found)
    return state, following


def _targets(block: Block) -> list[Value]:
    found = []
    for statement in block.statements:
        found += statement.targets
        for inner in statement.blocks:
            found += _targets(inner)
    return found
