# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a worker does that goes at its own pace: its blocks, one after the other, between what it
shares with others. It knows no JAX: processes that only work run it, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from baechi.loops.block_program import BlockForm, BlockProgram
from baechi.loops.changes import change


@dataclasses.dataclass(frozen=True)
class Turn:
    """A block. parts: by array the piece that it works on. turns: by array which of those that
    change this piece in a pass it is, and how many there are."""

    number: int
    clock: int
    first: int
    end: int
    parts: list[int]
    firsts: list[int]
    turns: list[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Work:
    """What a worker has to do.

    columns: its entries' keys and values. homes: by array "store", "sum" (each block's own, added
    up in the end), "piece" or "constant". clocks: of a pass.
    """

    worker: int
    passes: int
    clocks: int
    turns: list[Turn]
    columns: list[np.ndarray]
    homes: list[str]


class Shared(Protocol):
    """What workers have in common."""

    def ready(self, array: int, part: int, turn: int) -> bool: ...
    def take(self, array: int, part: int, turn: int) -> np.ndarray: ...
    def give(self, array: int, part: int, value: np.ndarray) -> None: ...
    def get(self, worker: int, array: int) -> np.ndarray: ...
    def add(self, worker: int, array: int, change: np.ndarray) -> None: ...
    def clock(self, worker: int) -> None: ...
    def add_sum(self, array: int, at: tuple[int, int], value: np.ndarray) -> None: ...
    def check(self, number: int, outside: np.ndarray) -> None: ...
    def finish(self, worker: int, values: list[np.ndarray]) -> None: ...
    def device(self) -> Any: ...


# Of simulated time: an entry, and between two looks whether a piece has come.
_ENTRY, _LOOK = 1e-6, 1e-5


def go(work: Work, form: BlockForm, program: BlockProgram, shared: Shared) -> Iterator[float]:
    """Yields the seconds that are simulated; threads and processes have real ones."""
    columns = list(work.columns)
    constants: dict[tuple[int, int], np.ndarray] = {}
    by_clock: dict[int, list[Turn]] = {}
    for turn in work.turns:
        by_clock.setdefault(turn.clock, []).append(turn)
    for number in range(work.passes):
        for clock in range(work.clocks):
            for turn in by_clock.get(clock, ()):
                yield from _block(work, form, program, shared, columns, constants, turn, number)
            shared.clock(work.worker)
            yield 0
    shared.finish(work.worker, columns[form.keys :] if form.new_values else [])


def _block(
    work: Work,
    form: BlockForm,
    program: BlockProgram,
    shared: Shared,
    columns: list[np.ndarray],
    constants: dict[tuple[int, int], np.ndarray],
    turn: Turn,
    number: int,
) -> Iterator[float]:
    state: list[Any] = [None] * len(work.homes)
    for n, home in enumerate(work.homes):
        if home == "constant":
            at_part = n, turn.parts[n]
            if at_part not in constants:
                constants[at_part] = shared.take(*at_part, 0)
            state[n] = constants[at_part]
        elif home == "piece":
            which, of = turn.turns[n]
            at = number * of + which
            while not shared.ready(n, turn.parts[n], at):
                yield _LOOK
            state[n] = shared.take(n, turn.parts[n], at)
        elif home == "store":
            state[n] = shared.get(work.worker, n)
        else:
            like = form.arguments[len(form.arguments) - len(work.homes) + n]
            state[n] = np.zeros(like.shape, like.dtype)
    before = list(state)
    mine = [column[turn.first : turn.end] for column in columns]
    with shared.device():
        made, outside = program.run(mine, turn.firsts, state)
    if outside is not None and outside[0]:
        shared.check(turn.number, outside)
    for column, values in zip(columns[form.keys :], made, strict=False):
        column[turn.first : turn.end] = values
    yield _ENTRY * (turn.end - turn.first)
    for n, home in enumerate(work.homes):
        if home == "piece":
            shared.give(n, turn.parts[n], state[n])
        elif home == "sum":
            shared.add_sum(n, (number, turn.number), state[n])
        elif home == "store":
            shared.add(work.worker, n, change(state[n], before[n]))
