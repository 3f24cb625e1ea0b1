# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of an array an entry reads or writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from baechi.loops.positions import Position, several_of, shape_at, shape_of_region


@dataclasses.dataclass
class Access:
    """One element or slice of an array that an entry reads or writes, or several of one shape at
    positions that data tell."""

    array: int
    writes: bool
    positions: tuple[Position, ...]
    place: str
    # As the user wrote it, where positions depend on data: x[f(value)].
    source: str = ""
    # A read that is computed within the body, of the whole array: no key tells where it is.
    within: bool = False
    adds: bool = False  # the read or the write of x[i] += f
    # Of a write its element, if that is a number of Python's or NumPy's.
    number: bytes | None = None
    # What all entries do to an array, in any order: "set" it to one number, where nobody reads it;
    # "min" or "max", the read or the write of x[i] = minimum(x[i], f) with integers.
    joins: str = ""

    @property
    def kind(self) -> str:
        return "add" if self.adds else self.joins or "write" if self.writes else "read"

    @property
    def known(self) -> bool:
        return all(position.known for position in self.positions)

    @property
    def given(self) -> bool:
        """Whether it is a read of a region, which the body gets."""
        return not self.writes and not self.within

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_at(self.positions)

    @property
    def is_view(self) -> bool:
        """Whether NumPy would give a view: not of one element, nor of several positions."""
        return bool(self.shape) and not several_of(self.positions)[0]

    def region(self, extents: Sequence[int]) -> tuple[Position, ...]:
        """What the body gets for a read: all of a dimension in which data tell where it is, and
        of a read within all there is."""
        return tuple(
            Position((0,) * len(p.factors), size=extent, whole=True)
            if self.within or not p.known
            else p
            for p, extent in zip(self.positions, extents, strict=True)
        )

    def region_shape(self, extents: Sequence[int]) -> tuple[int, ...]:
        return shape_of_region(self.region(extents))
