# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program of a loop, and its runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from baechi.common import progress, temporary
from baechi.compiling import compiler
from baechi.compiling.options import CompileOptions
from baechi.loops import module_text
from baechi.loops.block_program import BlockForm, Place
from baechi.loops.blocks import Block, Layout
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError
from baechi.loops.module_text import LoopModule
from baechi.loops.pieces import Pieces
from baechi.loops.tracing import OUTSIDE, Body
from baechi.pictures.picture import Picture
from baechi.steps.program import Program


class Runs(Protocol):
    """Where a loop's program runs. given: its arguments."""

    def run(
        self, given: Sequence[np.ndarray], passes: int, check: Callable[[list[np.ndarray]], None]
    ) -> list[np.ndarray]: ...
    def report(self, given: Sequence[np.ndarray]) -> str: ...
    def picture(self, given: Sequence[np.ndarray]) -> Picture: ...


class OnDevices:
    """The program of a loop on devices of this process."""

    def __init__(self, module: LoopModule, options: CompileOptions):
        self._module, self._program = module, Program(module.text, options)
        self._measured: Program | None = None

    def report(self, given: Sequence[np.ndarray]) -> str:
        return self._with_costs(given).report()

    def picture(self, given: Sequence[np.ndarray]) -> Picture:
        return self._with_costs(given).picture()

    def _with_costs(self, given: Sequence[np.ndarray]) -> Program:
        """What blocks take follows from the entries, so it is measured with them, when somebody
        asks: it changes nothing in the program."""
        if self._measured is None:
            self._measured = self._program.with_costs_of(self._module.archive(given))
        return self._measured

    def run(
        self, given: Sequence[np.ndarray], passes: int, check: Callable[[list[np.ndarray]], None]
    ) -> list[np.ndarray]:
        """What the arguments hold after all passes. check: after each."""
        made, library = list(given), self._program.library
        arguments = self._module.arguments
        followed = [(n, a.next_value) for n, a in enumerate(arguments) if a.next_value is not None]
        changed = list(range(len(made)))
        for _ in range(passes):
            for n in changed:
                library.set_argument(n, np.asarray(made[n], arguments[n].dtype, order="C"))
            self._program.step()
            changed = [n for n, _ in followed]
            for n, k in followed:
                made[n] = library.result(k).view(arguments[n].dtype)
            check(made)
        return made


class Compiled:
    """A loop compiled for some entries and shapes of arrays."""

    def __init__(
        self,
        runs: Runs,
        body: Body,
        layout: Layout,
        shapes: Sequence[jax.ShapeDtypeStruct],
        plans: Sequence[str],
    ):
        self._runs, self._body, self._layout, self._shapes = runs, body, layout, shapes
        self._plans = plans
        self._last: tuple[Entries, list[np.ndarray]] | None = None
        self._ranges = module_text.ranges_of(layout)

    def report(self) -> str:
        return self._runs.report(self._given()).rstrip("\n") + self._said_of_plans()

    def _said_of_plans(self) -> str:
        lines = "".join(
            f"{'runs by' if not n else '  rather than'} {plan}\n"
            for n, plan in enumerate(self._plans)
        )
        return f"\n\nSchemes of the loop, simulated:\n{lines}" if lines else ""

    def picture(self) -> Picture:
        return self._runs.picture(self._given())

    def run(self, entries: Entries, arrays: list[np.ndarray], passes: int) -> Any:
        self._last = entries, arrays
        given = self._runs.run(
            self._given(), passes, functools.partial(self._check_positions, entries)
        )
        made = self._new_values(entries, given) if self._body.new_values else []
        first = len(given) - sum(pieces.count for pieces in self._layout.pieces)
        for pieces in self._layout.pieces:
            if pieces.written:
                made.append(pieces.join(given[first : first + pieces.count]))
            first += pieces.count
        return made[0] if len(made) == 1 else tuple(made)

    def _given(self) -> list[np.ndarray]:
        """The program's arguments for the last entries and arrays."""
        assert self._last is not None
        entries, arrays = self._last
        layout = self._layout
        longest = max(len(mine) for mine in layout.entries)
        given: list[np.ndarray] = []
        for columns in (entries.keys, entries.leaves):
            for mine in layout.entries:
                for column in columns:
                    padded = np.zeros((longest, *column.shape[1:]), column.dtype)
                    padded[: len(mine)] = column[mine]
                    given.append(padded)
        given += self._ranges
        if self._body.by_data:
            given += [np.zeros(OUTSIDE.shape, OUTSIDE.dtype) for _ in layout.blocks]
        for pieces, array in zip(layout.pieces, arrays, strict=True):
            given += pieces.cut(array)
        return given

    def _check_positions(self, entries: Entries, given: Sequence[np.ndarray]) -> None:
        if not self._body.by_data:
            return
        blocks = self._layout.blocks
        first = len(given) - sum(pieces.count for pieces in self._layout.pieces) - len(blocks)
        for block, found in zip(blocks, given[first:], strict=False):
            mine = self._layout.entries[block.worker]
            check_position(self._body, self._shapes, entries, mine, found)

    def _new_values(self, entries: Entries, given: Sequence[np.ndarray]) -> list[Any]:
        first = len(entries.keys) * self._layout.workers
        leaves = [leaf.copy() for leaf in entries.leaves]
        for worker, mine in enumerate(self._layout.entries):
            for n, leaf in enumerate(leaves):
                leaf[mine] = given[first + worker * len(leaves) + n][: len(mine)]
        return [jax.tree.unflatten(entries.tree, leaves)]


def emit_block(
    entries: Entries,
    body: Body,
    shapes: Sequence[jax.ShapeDtypeStruct],
    layout: Layout,
    pieces: Sequence[Pieces],
    verbose: bool | None,
) -> tuple[BlockForm, bytes]:
    """The program of one block, and its library. pieces: what a block gets of each array."""
    longest = max(block.end - block.first for block in layout.blocks)
    one = Layout(1, [Block(0, 0, (0,), 0, longest)], [np.arange(longest)], list(pieces))
    module = module_text.module_of(entries, body, shapes, one, ["host0"])
    options = CompileOptions(
        machine="host:1",
        budget="0",
        pin=module.pins,
        costs="roofline",
        unroll="never",
        verbose=verbose,
    )
    form = BlockForm(
        [Place(a.shape, a.dtype, a.next_value) for a in module.arguments],
        longest,
        len(entries.keys),
        [each.written for each in pieces],
        body.by_data,
        body.new_values,
    )
    with progress.shown(verbose, "loop"), temporary.folder("baechi-loop-") as folder:
        file = folder / "block.so"
        compiler.emit(module.text, file, options)
        return form, file.read_bytes()


def check_position(
    body: Body,
    shapes: Sequence[jax.ShapeDtypeStruct],
    entries: Entries,
    numbers: np.ndarray,
    outside: np.ndarray,
) -> None:
    """Raises LoopError where a block has found a position outside of its array (OUTSIDE);
    numbers: what its entries are called."""
    at, number, dimension, position = map(int, outside)
    if at == 0:
        return
    access = body.accesses[number]
    extent = shapes[access.array].shape[dimension]
    entry = numbers[at - 1]
    keys = ", ".join(
        f"{name} = {column[entry]}"
        for name, column in zip(entries.names, entries.keys, strict=True)
    )
    raise LoopError(
        f"{access.place}dimension {dimension} of '{body.names[access.array]}' is "
        f"{'written' if access.writes else 'read'} at {position} by entry {entry} ({keys}), and "
        f"has {extent} elements, {-extent} to {extent - 1}: correct the number, which the data "
        "tell, or make the array larger"
    )
