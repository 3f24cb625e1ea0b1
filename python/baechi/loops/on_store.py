# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose workers go at their own pace, and share what is buffered through the parameter store
of replicas (docs/replicas.md).

Source: Wei et al., "Managed Communication and Consistency for Fast Data-Parallel Iterative
Analytics" (Bösen), SoCC 2015, which Orion writes buffers to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from baechi.loops.block_program import BlockProgram
from baechi.loops.blocks import Layout
from baechi.loops.board import Board, as_table, told
from baechi.loops.compiled import check_position, emit_block
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError
from baechi.loops.pace import Turn, Work, go
from baechi.loops.pieces import Pieces
from baechi.loops.store_ranks import StoreRanks
from baechi.loops.tracing import Body
from baechi.replicas.store import Network, ParameterStore, StoreReport

# Of simulated time: a cable that is no matter.
_CABLE = Network(1e9)


class OnStore:
    """A loop's blocks on threads, or in processes, of their own."""

    def __init__(
        self,
        entries: Entries,
        body: Body,
        shapes: Sequence[jax.ShapeDtypeStruct],
        layout: Layout,
        staleness: int,
        devices: int,
        ranks: int,
        verbose: bool | None,
    ):
        self._body, self._shapes, self._layout = body, shapes, layout
        self._staleness, self._devices, self._ranks = staleness, devices, ranks
        self._check()
        pieces = [_as_one(each) for each in layout.pieces]
        self._form, self._library = emit_block(entries, body, shapes, layout, pieces, verbose)
        self._programs: list[BlockProgram] = []
        self._processes: StoreRanks | None = None
        self._said: StoreReport | None = None

    def run(self, entries: Entries, arrays: Sequence[np.ndarray], passes: int) -> Any:
        """On threads of this process, or of the ranks."""
        processes = self._ranks if self._ranks > 1 else 0
        board = self._board(entries, arrays, passes, processes=processes)
        if self._ranks > 1:
            if self._processes is None:
                self._processes = StoreRanks(self._ranks, self._devices, self._form, self._library)
            self._processes.run(self._works(entries, passes), board)
        else:
            self._run_threads(self._works(entries, passes), board)
        return self._ended(entries, arrays, board)

    def simulate(self, entries: Entries, arrays: Sequence[np.ndarray], passes: int) -> Any:
        """One worker after the other, in simulated time: the same bits each time."""
        board = self._board(entries, arrays, passes, network=_CABLE)
        works, (program,) = self._works(entries, passes), self._opened(1)
        with told():
            board.store.run(lambda worker: go(works[worker], self._form, program, board))
        return self._ended(entries, arrays, board)

    def report(self) -> str:
        """What the store did in the last run."""
        said = self._said
        if said is None:
            return "no run has ended yet"
        reads = sum(said.reads_by_staleness)
        counts = enumerate(said.reads_by_staleness)
        late = ", ".join(f"{n} {100 * count / max(reads, 1):.0f} %" for n, count in counts)
        lines = [
            f"store      staleness {self._staleness}; clocks that reads were behind: {late}",
            f"           waited {max(said.seconds_waited):.3f} s at most, a worker",
            "",
            f"{'process':10} {'sent MiB':>12} {'received MiB':>14}",
        ]
        lines += [
            f"{process:<10} {sent / 2**20:>12.3f} {received / 2**20:>14.3f}"
            for process, (sent, received) in enumerate(
                zip(said.bytes_sent, said.bytes_received, strict=True)
            )
        ]
        return "\n".join(lines)

    def _check(self) -> None:
        if not any(pieces.buffered for pieces in self._layout.pieces):
            raise LoopError(
                "staleness is of arrays that are buffered, and the body writes none of those that "
                "are: name one that it writes, or leave staleness out"
            )
        names = zip(self._body.names, self._shapes, self._layout.pieces, strict=True)
        for name, like, pieces in names:
            if pieces.buffered and like.dtype != np.float32:
                raise LoopError(
                    f"'{name}' is of {like.dtype}, and what is buffered with a staleness is in a "
                    f"store of float32: give {name}.astype(np.float32), or leave staleness out"
                )
            if pieces.joins:
                raise LoopError(
                    f"'{name}' is set to one number, a minimum or a maximum at positions that "
                    "several workers may have, each in a copy, and workers that go at their own "
                    "pace have none: leave staleness out"
                )
            if pieces.written and (pieces.below or pieces.above):
                raise LoopError(
                    f"'{name}' is read beside the block that changes it, and workers that go at "
                    "their own pace have no strips of their neighbours': leave staleness out"
                )

    def _board(
        self,
        entries: Entries,
        arrays: Sequence[np.ndarray],
        passes: int,
        processes: int = 0,
        network: Network | None = None,
    ) -> Board:
        def check(number: int, outside: np.ndarray) -> None:
            block = self._layout.blocks[number]
            numbers = self._layout.entries[block.worker][block.first : block.end]
            check_position(self._body, self._shapes, entries, numbers, outside)

        shares = [n for n, each in enumerate(self._layout.pieces) if each.buffered]
        tables = {self._body.names[n]: as_table(arrays[n]) for n in shares}
        with told():
            store = ParameterStore(
                tables,
                workers=self._layout.workers,
                processes=processes,
                staleness=self._staleness,
                patience=float("inf"),
                network=network,
            )
        pieces = {
            (n, part): piece
            for n, each in enumerate(self._layout.pieces)
            if not each.buffered and not each.reduced
            for part, piece in enumerate(each.cut(np.array(arrays[n])))
        }
        named = {n: (self._body.names[n], arrays[n].shape) for n in shares}
        return Board(store, named, pieces, check, self._devices, waits=network is None)

    def _homes(self) -> list[str]:
        return [
            "store" if p.buffered else "sum" if p.reduced else "piece" if p.written else "constant"
            for p in self._layout.pieces
        ]

    def _works(self, entries: Entries, passes: int) -> list[Work]:
        layout, homes = self._layout, self._homes()
        changed: dict[tuple[int, int], int] = {}
        turns: list[list[Turn]] = [[] for _ in range(layout.workers)]
        for number, block in enumerate(layout.blocks):
            parts = [each.part(block.parts) for each in layout.pieces]
            at = []
            for n, home in enumerate(homes):
                at.append((changed.get((n, parts[n]), 0), 0))
                changed[n, parts[n]] = at[-1][0] + (home == "piece")
            firsts = [p.first(part) for p, part in zip(layout.pieces, parts, strict=True)]
            turns[block.worker].append(
                Turn(number, block.clock, block.first, block.end, parts, firsts, at)
            )
        clocks = layout.blocks[-1].clock + 1
        return [
            Work(
                worker,
                passes,
                clocks,
                [_of_all(turn, changed) for turn in turns[worker]],
                [np.array(column[mine]) for column in (*entries.keys, *entries.leaves)],
                homes,
            )
            for worker, mine in enumerate(layout.entries)
        ]

    def _opened(self, count: int) -> list[BlockProgram]:
        while len(self._programs) < count:
            self._programs.append(BlockProgram(self._form, self._library))
        return self._programs[:count]

    def _run_threads(self, works: Sequence[Work], board: Board) -> None:
        programs = self._opened(len(works))

        def worker(work: Work) -> Callable[[], None]:
            def run() -> None:
                for _ in go(work, self._form, programs[work.worker], board):
                    pass

            return run

        with told():
            board.run([(work.worker, worker(work)) for work in works])

    def _ended(self, entries: Entries, starts: Sequence[np.ndarray], board: Board) -> Any:
        with told():
            board.store.drain()
            self._said = board.store.report()
        made = []
        if self._body.new_values:
            leaves = [leaf.copy() for leaf in entries.leaves]
            for worker, mine in enumerate(self._layout.entries):
                for leaf, values in zip(leaves, board.values[worker], strict=True):
                    leaf[mine] = values
            made.append(jax.tree.unflatten(entries.tree, leaves))
        for n, pieces in enumerate(self._layout.pieces):
            if pieces.buffered:
                made.append(board.stored(n))
            elif pieces.reduced:
                made.append(board.summed(n, starts[n]))
            elif pieces.written:
                made.append(pieces.join([board.pieces[n, p] for p in range(pieces.count)]))
        return made[0] if len(made) == 1 else tuple(made)


def _as_one(pieces: Pieces) -> Pieces:
    """What a block gets: the longest, wherever it begins."""
    if pieces.axis is None:
        return Pieces(written=pieces.written)
    bounds = (0, pieces.longest - pieces.below - pieces.above)
    return dataclasses.replace(pieces, axis=0, bounds=bounds)


def _of_all(turn: Turn, changed: dict[tuple[int, int], int]) -> Turn:
    """With how many change each piece in a pass."""
    turns = [
        (which, changed[n, part])
        for n, (part, (which, _)) in enumerate(zip(turn.parts, turn.turns, strict=True))
    ]
    return dataclasses.replace(turn, turns=turns)
