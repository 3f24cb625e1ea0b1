# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of an array an entry reads or writes."""

from __future__ import annotations

import dataclasses

from baechi.loops.positions import Position


@dataclasses.dataclass
class Access:
    """One element or slice of an array that an entry reads or writes."""

    array: int
    writes: bool
    positions: tuple[Position, ...]
    place: str
    # As the user wrote it, where positions depend on data: x[f(value)].
    source: str = ""
    # A read that is computed within the body, of the whole array: it depends on data.
    within: bool = False
    adds: bool = False  # the read or the write of x[i] += f

    @property
    def kind(self) -> str:
        return "add" if self.adds else "write" if self.writes else "read"

    @property
    def known(self) -> bool:
        return all(position.known for position in self.positions)
