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

from baechi.loops.block_program import BlockProgram
from baechi.loops.blocks import Block, Layout
from baechi.loops.changes import change, joined
from baechi.loops.compiled import check_position, emit_block
from baechi.loops.entries import Entries
from baechi.loops.pieces import Pieces
from baechi.loops.tracing import Body


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
        wholes = [Pieces(written=each.written) for each in layout.pieces]
        self._program = BlockProgram(*emit_block(entries, body, shapes, layout, wholes, verbose))

    def run(self, entries: Entries, arrays: Sequence[np.ndarray], passes: int) -> Any:
        layout = self._layout
        leaves = [leaf.copy() for leaf in entries.leaves]
        state = [np.array(array, order="C") for array in arrays]
        kept = [n for n, each in enumerate(layout.pieces) if each.buffered or each.reduced]
        for _ in range(passes):
            for _, blocks in itertools.groupby(layout.blocks, lambda block: block.clock):
                before = {n: state[n] for n in kept}
                total = dict(before)
                for block in blocks:
                    for n in kept:
                        pieces = layout.pieces[n]
                        sums = pieces.reduced and not pieces.joins
                        state[n] = np.zeros_like(before[n]) if sums else before[n]
                    self._run_block(entries, leaves, state, block)
                    for n in kept:
                        pieces = layout.pieces[n]
                        if pieces.joins:
                            total[n] = joined(pieces.joins, total[n], state[n], before[n])
                            continue
                        mine = state[n] if pieces.reduced else change(state[n], before[n])
                        total[n] = total[n] + mine
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
        columns = [column[numbers] for column in (*entries.keys, *leaves)]
        made, outside = self._program.run(columns, [0] * len(state), state)
        if outside is not None:
            check_position(self._body, self._shapes, entries, numbers, outside)
        for leaf, values in zip(leaves, made, strict=False):
            leaf[numbers] = values
