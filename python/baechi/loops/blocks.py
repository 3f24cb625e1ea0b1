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

from baechi.loops.analysis import Analysis, analysed
from baechi.loops.entries import Entries
from baechi.loops.tracing import Access, Body, LoopError

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


@dataclasses.dataclass(frozen=True)
class Pieces:
    """How an array is kept: whole, or cut along a dimension by an axis' parts, each piece as
    long as the longest."""

    axis: int | None = None
    dimension: int = 0
    bounds: tuple[int, ...] = ()  # where the pieces begin, and the end
    reduced: bool = False  # each block sums up for itself
    buffered: bool = False  # each block of a clock changes a copy of its own
    written: bool = False

    @property
    def count(self) -> int:
        return 1 if self.axis is None else len(self.bounds) - 1

    @property
    def longest(self) -> int:
        return max(b - a for a, b in itertools.pairwise(self.bounds))

    def shape(self, whole: Sequence[int]) -> tuple[int, ...]:
        shape = list(whole)
        if self.axis is not None:
            shape[self.dimension] = self.longest
        return tuple(shape)

    def cut(self, whole: np.ndarray) -> list[np.ndarray]:
        """What the whole array has of each piece."""
        if self.axis is None:
            return [np.ascontiguousarray(whole)]
        pieces = []
        for first, end in itertools.pairwise(self.bounds):
            piece = np.zeros(self.shape(whole.shape), whole.dtype)
            rows = [slice(None)] * whole.ndim
            rows[self.dimension] = slice(0, end - first)
            piece[tuple(rows)] = whole.take(range(first, end), axis=self.dimension)
            pieces.append(piece)
        return pieces

    def join(self, pieces: Sequence[np.ndarray]) -> np.ndarray:
        """The reverse of `cut`."""
        if self.axis is None:
            return pieces[0]
        spans = [end - first for first, end in itertools.pairwise(self.bounds)]
        return np.concatenate(
            [
                piece.take(range(span), axis=self.dimension)
                for piece, span in zip(pieces, spans, strict=True)
            ],
            axis=self.dimension,
        )


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
    why = _why_serial(analysis, body)
    axes = [np.asarray(axis) for axis in analysis.native.axes]
    if why is None:
        cuts = [_cuts(entries, axis, workers) for axis in axes]
        pieces, why = _pieces(body, analysis, arrays, axes, cuts, buffered)
    if why is not None:
        if fallback != "serial":
            raise LoopError(
                f"the loop may not run in parallel: {why}; or ask for fallback='serial'"
            )
        none = [Pieces(written=_is_written(body, n)) for n in range(len(arrays))]
        return Layout(1, [Block(0, 0, (0,), 0, len(entries))], [order], none)
    return _blocks(entries, analysis, axes, cuts, pieces, workers, order)


def _why_serial(analysis: Analysis, body: Body) -> str | None:
    if analysis.scheme == "serial":
        return analysis.explanation
    if analysis.scheme in ("skewed", "timed"):
        return (
            f"it is {analysis.text}, and arrays are cut along keys only; "
            "give the sum as a key of its own"
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


def _cuts(entries: Entries, axis: np.ndarray, workers: int) -> list[int]:
    """Equal counts of entries, as far as that can be."""
    from baechi import _loops

    key = int(np.flatnonzero(axis)[0])
    first, end = entries.bounds[key]
    width = max(1, -(-(end - first) // _BINS))
    bins = -(-(end - first) // width)
    counts = np.bincount((entries.keys[key].astype(np.int64) - first) // width, minlength=bins)
    cuts = _loops.balanced_cuts(0, counts.tolist(), workers)
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
            made.append(Pieces(reduced=True, written=True))
            continue
        if body.names[number] in buffered and written:
            made.append(Pieces(buffered=True, written=True))
            continue
        for which, axis in enumerate(axes):
            home = analysis.native.home(number, int(np.flatnonzero(axis)[0]))
            if home is not None:
                dimension, factor, constant = home
                bounds = [factor * cut + constant for cut in cuts[which]]
                bounds[0], bounds[-1] = 0, array.shape[dimension]
                made.append(Pieces(which, dimension, tuple(bounds), written=written))
                break
        else:
            if written:
                return [], _why_uncut(body, analysis, number)
            made.append(Pieces())
    return made, None


def _why_uncut(body: Body, analysis: Analysis, array: int) -> str:
    """With the two accesses, or the one, that keep an array in one piece, and the mend."""
    name = body.names[array]
    mine = [(n, a) for n, a in enumerate(analysed(body)) if a.array == array]
    said = f"{analysis.text}, but blocks cannot cut '{name}': "
    words = analysis.native.access
    for n, access in mine:
        others = [m for m, other in mine if _moving(other) != _moving(access)]
        if _moving(access) and others:
            return (
                f"{said}{words(n)}, {words(others[0])}, and a cut is along one sum of a key; "
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


def _moving(access: Access) -> list[tuple[int, tuple[int, ...], int]]:
    """The dimensions with keys, and their sums."""
    return [(d, p.factors, p.constant) for d, p in enumerate(access.positions) if any(p.factors)]


def _blocks(
    entries: Entries,
    analysis: Analysis,
    axes: list[np.ndarray],
    cuts: list[list[int]],
    pieces: list[Pieces],
    workers: int,
    order: np.ndarray,
) -> Layout:
    parts = [
        np.searchsorted(np.asarray(cut[1:-1]), _along(entries, axis), side="right")
        for axis, cut in zip(axes, cuts, strict=True)
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
