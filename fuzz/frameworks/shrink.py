# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a program that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

from frameworks import program as programs
from frameworks.program import Block, Statement, Value

# A program, or a part of it, with some of it left out.
Fails = Callable[[Block], bool]


def shrink(block: Block, fails: Fails, keep: int = 0, seconds: float = 120) -> Block:
    """The smallest found of the programs that fail; `block` itself is known to. Its first
    `keep` parameters and results are its state: they stay."""
    end = time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for smaller in candidates(block, keep):
            if time.monotonic() > end:
                break
            if _size(smaller) < _size(block) and fails(smaller):
                block, changed = smaller, True
                break
    return block


def candidates(block: Block, keep: int = 0) -> Iterator[Block]:
    """Programs with less in them, the much smaller ones first."""
    state, rest = block.results[:keep], block.results[keep:]
    if len(rest) > 1:
        for name in rest:
            yield _tidy(_with_results(block, (*state, name)), keep)
    half = len(block.statements) // 2
    parts = [range(half), range(half, len(block.statements))] if half > 1 else []
    parts += [(i,) for i in reversed(range(len(block.statements)))]
    for part in parts:
        for smaller in _without(block, part):
            yield _tidy(smaller, keep)
    for smaller in _within(block, block.parameters):
        yield _tidy(smaller, keep)


def _with_results(block: Block, names: tuple[str, ...]) -> Block:
    form = ", ".join(f"{{{i}}}" for i in range(len(names)))
    return dataclasses.replace(block, results=names, form=f"({form},)")


def _without(block: Block, places: Sequence[int]) -> Iterator[Block]:
    """Without some of its statements: what they computed is given as arguments, or is
    another value of the same type."""
    left = [s for i, s in enumerate(block.statements) if i not in set(places)]
    gone = [t for i in places for t in block.statements[i].targets]
    whole = dataclasses.replace(block, statements=tuple(left))
    for names in (_others(block, gone), {}):
        new = [Value(f"a{v.name[1:]}", v.shape, v.dtype) for v in gone if v.name not in names]
        renames = {v.name: f"a{v.name[1:]}" for v in gone if v.name not in names} | names
        smaller = programs.renamed_block(whole, renames)
        parameters = (*smaller.parameters, *new)
        yield dataclasses.replace(smaller, parameters=parameters)


def _others(block: Block, gone: list[Value]) -> dict[str, str]:
    """For values that are gone, parameters of the same type."""
    found = {}
    for value in gone:
        same = [p.name for p in block.parameters if p.kind == value.kind]
        if same:
            found[value.name] = same[0]
    return found


def _within(block: Block, scope: tuple[Value, ...]) -> Iterator[Block]:
    """With less in the functions of its statements."""
    for i, statement in enumerate(block.statements):
        for k, inner in enumerate(statement.blocks):
            seen = (*scope, *inner.parameters)
            for smaller, new in _function_candidates(inner, seen):
                parts = list(statement.blocks)
                parts[k] = smaller
                yield _with_statement(
                    block, i, dataclasses.replace(statement, blocks=tuple(parts)), new
                )
        scope = (*scope, *statement.targets)


def _function_candidates(
    inner: Block, scope: Sequence[Value]
) -> Iterator[tuple[Block, list[Value]]]:
    for i in reversed(range(len(inner.statements))):
        gone = inner.statements[i].targets
        left = inner.statements[:i] + inner.statements[i + 1 :]
        earlier = [*scope, *(t for s in inner.statements[:i] for t in s.targets)]
        same = {v.name: [e.name for e in reversed(earlier) if e.kind == v.kind] for v in gone}
        names = {name: found[0] for name, found in same.items() if found}
        new = [Value(f"a{v.name[1:]}", v.shape, v.dtype) for v in gone if v.name not in names]
        names |= {v.name: f"a{v.name[1:]}" for v in gone if v.name not in names}
        yield programs.renamed_block(dataclasses.replace(inner, statements=left), names), new
    for smaller in _within(inner, tuple(scope)):
        new = [p for p in smaller.parameters if p not in inner.parameters]
        yield dataclasses.replace(smaller, parameters=inner.parameters), new


def _with_statement(block: Block, i: int, statement: Statement, new: list[Value]) -> Block:
    statements = (*block.statements[:i], statement, *block.statements[i + 1 :])
    return dataclasses.replace(block, statements=statements, parameters=(*block.parameters, *new))


def _tidy(block: Block, keep: int) -> Block:
    return programs.without_unused_parameters(programs.without_unused(block), keep)


def _size(block: Block) -> tuple[int, int]:
    return programs.count(block), len(block.results) + len(block.parameters)
