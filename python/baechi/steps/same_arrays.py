# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that are the same arrays in each call, as parameters are: their places have them."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from baechi.steps import gpu_array

There = dict[int, "weakref.ref[Any]"]


class SameArrays:
    """Which arrays, that lie on a GPU and do not change, the last call of a program has put into
    the places of arguments, where a step leaves them."""

    def __init__(self) -> None:
        self._there: There = {}

    def holds(self, index: int, value: object) -> bool:
        there = self._there.get(index)
        return there is not None and there() is value and gpu_array.is_fixed(value)

    def forget(self) -> There:
        """What was there; a call that fails leaves nothing of it."""
        there, self._there = self._there, {}
        return there

    def keep(
        self,
        there: There,
        leaves: Sequence[Any],
        moved: Mapping[int, Any],
        updated: Collection[int],
    ) -> None:
        """After a call that has ended well, or is told to the GPU. moved: what it has put there."""
        for i, leaf in enumerate(leaves):
            if i in updated:
                continue
            if i not in moved and i in there:
                self._there[i] = there[i]
            elif i in moved and moved[i] is leaf and gpu_array.is_fixed(leaf):
                self._there[i] = weakref.ref(leaf)
