# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program of one block, which gets the entries and the arrays of one block after the other. It
knows no JAX: processes that only work run it, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from baechi.common import temporary
from baechi.steps.library import StepLibrary


@dataclasses.dataclass(frozen=True)
class Place:
    """An argument; `next_value` is the result with its next value."""

    shape: tuple[int, ...]
    dtype: np.dtype
    next_value: int | None


@dataclasses.dataclass(frozen=True)
class BlockForm:
    """What whoever runs the program has to know of it: other processes, too.

    longest: the most entries of a block. keys: how many there are. written: by array whether
    blocks change it.
    """

    arguments: list[Place]
    longest: int
    keys: int
    written: list[bool]
    by_data: bool
    new_values: bool


class BlockProgram:
    """An opened program: a thread and an arena of its own."""

    def __init__(self, form: BlockForm, library: bytes):
        self._form = form
        with temporary.folder("baechi-loop-") as folder:
            file = folder / "block.so"
            file.write_bytes(library)
            self._library = StepLibrary(file)  # stays mapped when its file is gone
        self._held: dict[int, np.ndarray] = {}  # by argument what its place holds

    def run(
        self,
        columns: Sequence[np.ndarray],
        firsts: Sequence[int],
        state: list[np.ndarray],
    ) -> tuple[list[np.ndarray], np.ndarray | None]:
        """A block: changes `state` to what its arrays are then, and gives the entries' new values
        and what was outside of arrays (tracing.OUTSIDE), if there are any.

        columns: the entries' keys and values. firsts: the positions that the pieces begin at.
        """
        form, count = self._form, len(columns[0])
        for at, column in enumerate(columns):
            padded = np.zeros((form.longest, *column.shape[1:]), column.dtype)
            padded[:count] = column
            self._set(at, padded)
        at = len(columns)
        self._set(at, np.array([0, count, *firsts, 1], np.int64))
        if form.by_data:
            self._set(at + 1, np.zeros(form.arguments[at + 1].shape))
        first = len(form.arguments) - len(state)
        for n, array in enumerate(state):
            if form.written[n] or self._held.get(n) is not array:
                self._set(first + n, array)
                self._held[n] = array
        self._library.run()
        outside = self._result(at + 1) if form.by_data else None
        values = range(form.keys, len(columns)) if form.new_values else ()
        made = [self._result(n)[:count] for n in values]
        for n, written in enumerate(form.written):
            if written:
                state[n] = self._result(first + n)
        return made, outside

    def _set(self, argument: int, value: np.ndarray) -> None:
        self._library.set_argument(
            argument, np.asarray(value, self._form.arguments[argument].dtype, order="C")
        )

    def _result(self, argument: int) -> np.ndarray:
        """The next value of an argument."""
        like = self._form.arguments[argument]
        assert like.next_value is not None
        return self._library.result(like.next_value).view(like.dtype)
