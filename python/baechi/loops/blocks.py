# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop's entries in blocks, and its arrays in the pieces that blocks work on."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from baechi.loops.accesses import Access
from baechi.loops.analysis import Analysis, analysed
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError
from baechi.loops.pieces import Pieces, cut_by
from baechi.loops.tiles import tiles_of
from baechi.loops.tracing import Body

# An axis with more positions than these is cut by a histogram of so many bins.
_BINS = 1 << 16


@dataclasses.dataclass(frozen=True)
class Block:
    """Entries that one worker computes one after the other; those of a clock run at once."""

    clock: int
    worker: int
    parts: tuple[int, ...]
    first: int  # in the worker's entries
    end: int


@dataclasses.dataclass
class Layout:
    """Blocks in the order of a serial run, each worker's entries, and the arrays' pieces."""

    workers: int
    blocks: list[Block]
    entries: list[np.ndarray]  # by worker: the numbers of its entries, block after block
    pieces: list[Pieces]

    def order(self) -> np.ndarray:
        """The entries' numbers in the order of a serial run."""
        return np.concatenate([self.entries[b.worker][b.first : b.end] for b in self.blocks])


def lay_out(
    entries: Entries,
    body: Body,
    analysis: Analysis,
    arrays: Sequence[jax.ShapeDtypeStruct],
    workers: int,
    ordered: bool,
    buffered: Sequence[str],
    fallback: str,
) -> Layout:
    """Raises LoopError where the loop cannot run in blocks, and `fallback` is "refuse"."""
    order = np.lexsort(entries.keys[::-1]) if ordered else np.arange(len(entries))
    why = _why_serial(analysis)
    axes = [np.asarray(axis) for axis in analysis.native.axes]
    if why is None:
        counts = analysis.native.parts or [workers] * len(axes)
        cuts = [_cuts(entries, axis, n) for axis, n in zip(axes, counts, strict=True)]
        pieces, why = _pieces(body, analysis, arrays, axes, cuts, buffered)
    if why is not None:
        if fallback != "serial":
            raise LoopError(
                f"the loop may not run in parallel: {why}; or ask for fallback='serial'"
            )
        none = [Pieces(written=_is_written(body, n)) for n in range(len(arrays))]
        return Layout(1, [Block(0, 0, (0,), 0, len(entries))], [order], none)
    along = [_along(entries, axis) for axis in axes]
    if not ordered:
        tiles = tiles_of(along, cuts, pieces, arrays)
        order = np.lexsort(tiles[::-1]) if tiles else order
    return _blocks(analysis, along, cuts, pieces, workers, order)


def _why_serial(analysis: Analysis) -> str | None:
    if analysis.scheme == "serial":
        return analysis.explanation
    if not analysis.native.axes:
        return (
            f"it is {analysis.text}, and blocks need a second sum of keys in which no entry "
            "comes before one that it depends on: read fewer elements of what is written, at "
            "keys and numbers"
        )
    return None


def _is_written(body: Body, array: int) -> bool:
    return any(a.writes and a.array == array for a in body.accesses)


def _along(entries: Entries, axis: np.ndarray) -> np.ndarray:
    sums = np.zeros(len(entries), np.int64)
    for factor, column in zip(axis, entries.keys, strict=True):
        if factor:
            sums += factor * column.astype(np.int64)
    return sums


def _cuts(entries: Entries, axis: np.ndarray, parts: int) -> list[int]:
    """Equal counts of entries, as far as that can be."""
    from baechi import _loops

    first, end = 0, 1
    for factor, (lower, upper) in zip(axis.tolist(), entries.bounds, strict=True):
        least, most = sorted((factor * lower, factor * (upper - 1)))
        first, end = first + least, end + most
    width = max(1, -(-(end - first) // _BINS))
    bins = -(-(end - first) // width)
    counts = np.bincount((_along(entries, axis) - first) // width, minlength=bins)
    cuts = _loops.balanced_cuts(0, counts.tolist(), parts)
    return [min(first + cut * width, end) for cut in cuts]


def _pieces(
    body: Body,
    analysis: Analysis,
    arrays: Sequence[jax.ShapeDtypeStruct],
    axes: list[np.ndarray],
    cuts: list[list[int]],
    buffered: Sequence[str],
) -> tuple[list[Pieces], str | None]:
    made = []
    for number, array in enumerate(arrays):
        written = _is_written(body, number)
        if number in analysis.reduced:
            joins = next((a.joins for a in body.accesses if a.array == number and a.writes), "")
            made.append(Pieces(reduced=True, joins=joins, written=True))
            continue
        if body.names[number] in buffered and written:
            made.append(Pieces(buffered=True, written=True))
            continue
        homes = [(k, analysis.native.home(number, axis.tolist())) for k, axis in enumerate(axes)]
        homes = [(k, home) for k, home in homes if home is not None]
        if homes:
            which, home = min(homes, key=lambda one: one[1].below + one[1].above)
            cut = cut_by(home, which, cuts[which], array.shape)
            made.append(dataclasses.replace(cut, written=written))
        elif written and any(len(cut) > 2 for cut in cuts):
            return [], _why_uncut(body, analysis, number)
        else:  # of one block, too
            made.append(Pieces(written=written))
    return made, None


def _why_uncut(body: Body, analysis: Analysis, array: int) -> str:
    """With the two accesses, or the one, that keep an array in one piece, and the mend."""
    name = body.names[array]
    mine = [(n, a) for n, a in enumerate(analysed(body)) if a.array == array]
    said = f"{analysis.text}, but blocks cannot cut '{name}': "
    words = analysis.native.access
    for n, access in mine:
        others = [m for m, other in mine if _apart(access, other)]
        if others:
            return (
                f"{said}{words(n)}, {words(others[0])}, and a cut is along one sum of a key, "
                "which all accesses have, and all writes with the same number; "
                f"give '{name}' in parts, an array for each such sum ({name}[0::2] and "
                f"{name}[1::2] for 2 * i and 2 * i + 1)"
            )
    for n, access in mine:
        if any(factor < 0 for p in access.positions for factor in p.factors):
            return (
                f"{said}{words(n)}, which falls as the key grows; turn '{name}' round "
                f"({name}[::-1]), and its positions"
            )
    return (
        f"{said}{words(mine[0][0])}, and a cut is along a dimension with one key, of the scheme; "
        "give the sum as a key of its own"
    )


def _apart(access: Access, other: Access) -> bool:
    """Whether no cut can be along both."""
    both_write = access.writes and other.writes
    return any(any(p.factors) for p in access.positions) and any(
        p.factors != q.factors or (both_write and p.constant != q.constant)
        for p, q in zip(access.positions, other.positions, strict=True)
    )


def _blocks(
    analysis: Analysis,
    along: list[np.ndarray],
    cuts: list[list[int]],
    pieces: list[Pieces],
    workers: int,
    order: np.ndarray,
) -> Layout:
    parts = [
        np.searchsorted(np.asarray(cut[1:-1]), positions, side="right")
        for positions, cut in zip(along, cuts, strict=True)
    ]
    counts = [len(cut) - 1 for cut in cuts]
    scheduled = analysis.native.schedule(cuts, workers)
    flat = np.ravel_multi_index(parts, counts)
    rank = np.empty(int(np.prod(counts)), np.int64)
    for place, (_, _, block) in enumerate(scheduled):
        rank[np.ravel_multi_index(tuple(block), counts)] = place
    ranks = rank[flat[order]]
    by_block = order[np.argsort(ranks, kind="stable")]
    sizes = np.bincount(ranks, minlength=len(scheduled))
    ends = np.cumsum(sizes)
    mine: list[list[Any]] = [[] for _ in range(workers)]
    filled = [0] * workers
    blocks = []
    for place, (clock, worker, block) in enumerate(scheduled):
        first, size = filled[worker], int(sizes[place])
        mine[worker].append(by_block[ends[place] - size : ends[place]])
        filled[worker] += size
        blocks.append(Block(clock, worker, tuple(block), first, first + size))
    none = np.zeros(0, np.int64)
    return Layout(workers, blocks, [np.concatenate([none, *m]) for m in mine], pieces)


def exchanging(layout: Layout, times: int) -> Layout:
    """Each block in `times` parts, and each clock likewise, so that what is buffered is added up
    so often."""
    made = []
    for clock, grouped in itertools.groupby(layout.blocks, lambda block: block.clock):
        group = list(grouped)
        for part in range(times):
            for block in group:
                size = block.end - block.first
                first, end = (block.first + size * at // times for at in (part, part + 1))
                made.append(Block(clock * times + part, block.worker, block.parts, first, end))
    return dataclasses.replace(layout, blocks=made)
