# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a loop's arrays are cut into the pieces that blocks work on."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from baechi.loops.positions import Position


@dataclasses.dataclass(frozen=True)
class Shear:
    """Along diagonals: what is cut are the positions in a dimension, and `multiple` times those
    in `other`, and `offset`, with which they begin at 0."""

    other: int
    multiple: int
    offset: int


@dataclasses.dataclass(frozen=True)
class Pieces:
    """How an array is kept: whole, or cut along a dimension by an axis' parts, each piece as
    long as the longest, between halos: copies of what the neighbours begin and end with."""

    axis: int | None = None
    dimension: int = 0
    bounds: tuple[int, ...] = ()  # where the pieces begin without their halos, and the end
    below: int = 0
    above: int = 0
    shear: Shear | None = None
    reduced: bool = False  # each block sums up for itself
    joins: str = ""  # of reduced: each block has a copy, and these are joined (Access.joins)
    buffered: bool = False  # each block of a clock changes a copy of its own
    written: bool = False

    @property
    def count(self) -> int:
        return 1 if self.axis is None else len(self.bounds) - 1

    @property
    def longest(self) -> int:
        """With the halos."""
        return self.below + max(b - a for a, b in itertools.pairwise(self.bounds)) + self.above

    def part(self, parts: Sequence[int]) -> int:
        """Which piece a block works on."""
        return 0 if self.axis is None else parts[self.axis]

    def first(self, part: int) -> int:
        """The position that a piece begins at, with its halo."""
        return 0 if self.axis is None else self.bounds[part] - self.below

    def shape(self, whole: Sequence[int]) -> tuple[int, ...]:
        shape = list(whole)
        if self.axis is not None:
            shape[self.dimension] = self.longest
        return tuple(shape)

    def cut_position(self, positions: Sequence[Position]) -> Position:
        """Of an access, in the dimension that is cut."""
        mine = positions[self.dimension]
        if self.shear is None:
            return mine
        other, multiple = positions[self.shear.other], self.shear.multiple
        pairs = zip(mine.factors, other.factors, strict=True)
        constant = mine.constant + multiple * other.constant + self.shear.offset
        return Position(tuple(a + multiple * b for a, b in pairs), constant)

    def halos(self, part: int) -> Iterator[tuple[int, int, int]]:
        """What of a piece's halos is another's: (piece, first position, end)."""
        first, end = self.bounds[part], self.bounds[part + 1]
        for other, (begins, ends) in enumerate(itertools.pairwise(self.bounds)):
            low = first - self.below if other < part else end
            high = first if other < part else end + self.above
            low, high = max(low, begins), min(high, ends)
            if other != part and low < high:
                yield other, low, high

    def cut(self, whole: np.ndarray) -> list[np.ndarray]:
        """What the whole array has of each piece."""
        if self.axis is None:
            return [np.ascontiguousarray(whole)]
        source = self._sheared(whole)
        pieces = []
        for part, end in enumerate(self.bounds[1:]):
            start = self.first(part)
            first, last = max(start, 0), min(end + self.above, source.shape[self.dimension])
            piece = np.zeros(self.shape(whole.shape), whole.dtype)
            piece[self._rows(first - start, last - start, whole.ndim)] = source[
                self._rows(first, last, whole.ndim)
            ]
            pieces.append(piece)
        return pieces

    def join(self, pieces: Sequence[np.ndarray]) -> np.ndarray:
        """The reverse of `cut`."""
        if self.axis is None:
            return pieces[0]
        own = [
            piece[self._rows(self.below, self.below + end - first, piece.ndim)]
            for piece, (first, end) in zip(pieces, itertools.pairwise(self.bounds), strict=True)
        ]
        joined = np.concatenate(own, axis=self.dimension)
        return joined if self.shear is None else self._unsheared(joined)

    def _rows(self, first: int, end: int, dimensions: int) -> tuple[slice, ...]:
        rows = [slice(None)] * dimensions
        rows[self.dimension] = slice(first, end)
        return tuple(rows)

    def _diagonals(self, shape: Sequence[int], extent: int) -> Iterator[tuple[Any, Any]]:
        """For each position of the other dimension: its index, and where it is when sheared."""
        assert self.shear is not None
        for x in range(shape[self.shear.other]):
            at = x * self.shear.multiple + self.shear.offset
            index: list[Any] = [slice(None)] * len(shape)
            index[self.shear.other] = x
            moved = list(index)
            moved[self.dimension] = slice(at, at + extent)
            yield tuple(index), tuple(moved)

    def _sheared(self, whole: np.ndarray) -> np.ndarray:
        if self.shear is None:
            return whole
        shape = list(whole.shape)
        shape[self.dimension] = self.bounds[-1]
        made = np.zeros(shape, whole.dtype)
        for index, moved in self._diagonals(whole.shape, whole.shape[self.dimension]):
            made[moved] = whole[index]
        return made

    def _unsheared(self, sheared: np.ndarray) -> np.ndarray:
        assert self.shear is not None
        spread = abs(self.shear.multiple) * (sheared.shape[self.shear.other] - 1)
        shape = list(sheared.shape)
        shape[self.dimension] -= spread
        made = np.empty(shape, sheared.dtype)
        for index, moved in self._diagonals(shape, shape[self.dimension]):
            made[index] = sheared[moved]
        return made


def cut_by(home: Any, which: int, cuts: Sequence[int], shape: Sequence[int]) -> Pieces:
    """As lib/Loops' `homeOf` says, along axis `which` with its cuts."""
    shear, extent = None, shape[home.dimension]
    if home.sheared is not None:
        spread = shape[home.sheared] - 1
        shear = Shear(home.sheared, home.multiple, max(0, -home.multiple) * spread)
        extent += abs(home.multiple) * spread
    offset = home.constant + (shear.offset if shear else 0)
    bounds = [home.factor * cut + offset for cut in cuts]
    bounds[0], bounds[-1] = 0, extent
    return Pieces(which, home.dimension, tuple(bounds), home.below, home.above, shear)
