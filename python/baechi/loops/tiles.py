# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of a block's entries where any is right: by what stays in a core's cache."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np

from baechi.loops.pieces import Pieces

# What the rows of a tile may take along each axis. A number of its own, no machine's: the order
# decides the results' last bits, which are the same everywhere.
_BYTES = 256 * 1024


def tiles_of(
    along: Sequence[np.ndarray],
    cuts: Sequence[Sequence[int]],
    pieces: Sequence[Pieces],
    arrays: Sequence[jax.ShapeDtypeStruct],
) -> list[np.ndarray]:
    """The entries' tiles, a column for each axis whose rows do not fit in a tile.

    Entries in the order that they are given in read rows of all of a block's pieces. In tiles,
    one after the other, they find most rows in the cache.

    along: for each axis the entries' positions, cuts: where its parts begin, and the end.
    """
    found = []
    for axis, (positions, cut) in enumerate(zip(along, cuts, strict=True)):
        taken = sum(
            math.prod(array.shape) * array.dtype.itemsize
            for array, piece in zip(arrays, pieces, strict=True)
            if piece.axis == axis
        )
        tiles = -(-taken // _BYTES)
        if tiles > 1:
            width = -(-(cut[-1] - cut[0]) // tiles)
            found.append((positions - cut[0]) // width)
    return found
