# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a program that a lowering gets wrong small."""

from __future__ import annotations

from collections.abc import Callable

from lowerings.program import Program, blocks_within, zeros


def shrink(program: Program, still: Callable[[Program], bool]) -> None:
    """Takes away what `still` does not need, in place, until nothing more goes."""
    changed = True
    while changed:
        changed = _fewer_results(program, still) or _fewer_operations(program, still)


def _fewer_results(program: Program, still: Callable[[Program], bool]) -> bool:
    whole = program.body.yields
    for i in range(len(whole)):
        if len(whole) == 1:
            break
        program.body.yields = whole[:i] + whole[i + 1 :]
        if still(program):
            return True
    program.body.yields = whole
    return False


def _fewer_operations(program: Program, still: Callable[[Program], bool]) -> bool:
    """Replaces an operation by zeros; what nothing reads then goes."""
    program.drop_dead()
    for block in list(blocks_within(program.body)):
        for place, op in enumerate(block.ops):
            if not op.operands and not op.blocks:
                continue
            before = list(block.ops)
            block.ops[place : place + 1] = [zeros(value) for value in op.results]
            if still(program):
                program.drop_dead()
                return True
            block.ops = before
    return False
