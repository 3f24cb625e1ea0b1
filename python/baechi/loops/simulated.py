# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop's blocks one after the other, by a program of one block."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from baechi.compiling.options import CompileOptions
from baechi.loops.blocks import Block, Layout
from baechi.loops.changes import change
from baechi.loops.compiled import check_position
from baechi.loops.entries import Entries
from baechi.loops.module_text import module_of
from baechi.loops.pieces import Pieces
from baechi.loops.tracing import OUTSIDE, Body
from baechi.steps.program import Program


class Simulated:
    """What `Compiled` computes, bit for bit, for any number of workers: the program has a block,
    which gets the entries and the arrays of one after the other."""

    def __init__(
        self,
        entries: Entries,
        body: Body,
        shapes: Sequence[jax.ShapeDtypeStruct],
        layout: Layout,
        verbose: bool | None,
    ):
        self._body, self._layout, self._shapes = body, layout, shapes
        self._longest = max(block.end - block.first for block in layout.blocks)
        pieces = [Pieces(written=each.written) for each in layout.pieces]
        one = Layout(1, [Block(0, 0, (0,), 0, self._longest)], [np.arange(self._longest)], pieces)
        module = module_of(entries, body, shapes, one, ["host0"])
        options = CompileOptions(
            machine="host:1", budget="0", pin=module.pins, costs="roofline", verbose=verbose
        )
        self._arguments = module.arguments
        self._results = [a.next_value for a in module.arguments]
        self._library = Program(module.text, options).library

    def run(self, entries: Entries, arrays: Sequence[np.ndarray], passes: int) -> Any:
        layout = self._layout
        leaves = [leaf.copy() for leaf in entries.leaves]
        state = [np.asarray(array, order="C") for array in arrays]
        kept = [n for n, each in enumerate(layout.pieces) if each.buffered or each.reduced]
        for n, each in enumerate(layout.pieces):
            if not each.written:
                self._set(len(self._arguments) - len(state) + n, state[n])
        for _ in range(passes):
            for _, blocks in itertools.groupby(layout.blocks, lambda block: block.clock):
                before = {n: state[n] for n in kept}
                total = dict(before)
                for block in blocks:
                    for n in kept:
                        reduced = layout.pieces[n].reduced
                        state[n] = np.zeros_like(before[n]) if reduced else before[n]
                    self._run_block(entries, leaves, state, block)
                    for n in kept:
                        reduced = layout.pieces[n].reduced
                        total[n] = total[n] + (state[n] if reduced else change(state[n], before[n]))
                for n in kept:
                    state[n] = total[n]
        made = [jax.tree.unflatten(entries.tree, leaves)] if self._body.new_values else []
        made += [array for array, each in zip(state, layout.pieces, strict=True) if each.written]
        return made[0] if len(made) == 1 else tuple(made)

    def _run_block(
        self,
        entries: Entries,
        leaves: Sequence[np.ndarray],
        state: list[np.ndarray],
        block: Block,
    ) -> None:
        numbers = self._layout.entries[block.worker][block.first : block.end]
        at = 0
        for column in (*entries.keys, *leaves):
            padded = np.zeros((self._longest, *column.shape[1:]), column.dtype)
            padded[: len(numbers)] = column[numbers]
            self._set(at, padded)
            at += 1
        self._set(at, np.array([0, len(numbers), *(0 for _ in state), 1], np.int64))
        if self._body.by_data:
            self._set(at + 1, np.zeros(OUTSIDE.shape, OUTSIDE.dtype))
        first = len(self._arguments) - len(state)
        for n, each in enumerate(self._layout.pieces):
            if each.written:
                self._set(first + n, state[n])
        self._library.run()
        if self._body.by_data:
            found = self._result(at + 1)
            check_position(self._body, self._shapes, entries, numbers, found)
        if self._body.new_values:
            for n, leaf in enumerate(leaves):
                leaf[numbers] = self._result(len(entries.keys) + n)[: len(numbers)]
        for n, each in enumerate(self._layout.pieces):
            if each.written:
                state[n] = self._result(first + n)

    def _set(self, argument: int, value: np.ndarray) -> None:
        self._library.set_argument(
            argument, np.asarray(value, self._arguments[argument].dtype, order="C")
        )

    def _result(self, argument: int) -> np.ndarray:
        """The next value of an argument."""
        result = self._results[argument]
        assert result is not None
        return self._library.result(result).view(self._arguments[argument].dtype)
