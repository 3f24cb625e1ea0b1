# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A random program: statements whose text is the framework's Python, so that what is
run, what is shrunk and what is printed for a report are the same thing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence

_INDENT = "    "


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor that a program computes. No element is larger than `bound` (infinity: not
    known), so that a generator keeps numbers in a range where rounding stays small."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bound: float = float("inf")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def kind(self) -> tuple[tuple[int, ...], str]:
        return self.shape, self.dtype


@dataclasses.dataclass(frozen=True)
class Statement:
    """`targets = text`. In `text` {0}, {1}, … are operands' names and {f0}, {f1}, … those
    of functions, which are written before the statement."""

    targets: tuple[Value, ...]
    text: str
    operands: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    form: str = ""  # of the targets, such as "({0}, {1}), {2}"; default: one after the other

    @property
    def head(self) -> str:
        """How the targets are written."""
        names = [target.name for target in self.targets]
        return self.form.format(*names) if self.form else ", ".join(names)


@dataclasses.dataclass(frozen=True)
class Block:
    """A function, within a statement or the whole program."""

    name: str
    parameters: tuple[Value, ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]
    form: str = ""  # of the results, as a statement's
    head: str = ""  # of the parameters, such as "c, {2}"; default: one after the other
    opening: str = ""  # a line that takes parameters apart, such as "({0}, {1}) = c"


def render(block: Block, depth: int = 0) -> str:
    """The function's source."""
    pad = _INDENT * depth
    inner = pad + _INDENT
    parameters = [parameter.name for parameter in block.parameters]
    head = block.head.format(*parameters) if block.head else ", ".join(parameters)
    lines = [f"{pad}def {block.name}({head}):"]
    if block.opening:
        lines.append(inner + block.opening.format(*parameters))
    for statement in block.statements:
        lines += [render(each, depth + 1) for each in statement.blocks]
        lines.append(f"{inner}{statement.head} = {expression(statement)}")
    results = block.form.format(*block.results) if block.form else ", ".join(block.results)
    lines.append(f"{inner}return {results}")
    return "\n".join(lines)


def expression(statement: Statement) -> str:
    names = {f"f{i}": block.name for i, block in enumerate(statement.blocks)}
    return statement.text.format(*statement.operands, **names)


def names_of(statement: Statement) -> Iterator[str]:
    """All names that the statement and the functions in it read; also such as these
    functions define themselves."""
    yield from statement.operands
    for block in statement.blocks:
        yield from names_in(block)


def names_in(block: Block) -> Iterator[str]:
    yield from block.results
    for statement in block.statements:
        yield from names_of(statement)


def without_unused(block: Block) -> Block:
    """The block without the statements, in it and in its functions, that nothing needs."""
    needed, kept = set(block.results), []
    for statement in reversed(block.statements):
        if any(target.name in needed for target in statement.targets):
            inner = tuple(without_unused(each) for each in statement.blocks)
            statement = dataclasses.replace(statement, blocks=inner)
            kept.append(statement)
            needed.update(names_of(statement))
    return dataclasses.replace(block, statements=tuple(reversed(kept)))


def without_unused_parameters(block: Block, keep: int = 0) -> Block:
    """For a whole program: without the arguments that nothing reads, but for the first."""
    needed = {p.name for p in block.parameters[:keep]} | set(names_in(block))
    kept = tuple(dict.fromkeys(p for p in block.parameters if p.name in needed))
    return dataclasses.replace(block, parameters=kept)


def count(block: Block) -> int:
    """Statements, with those of the functions within."""
    return sum(1 + sum(map(count, each.blocks)) for each in block.statements)


def renamed(statement: Statement, names: dict[str, str]) -> Statement:
    """With other operands, everywhere in it."""
    return dataclasses.replace(
        statement,
        operands=tuple(names.get(name, name) for name in statement.operands),
        blocks=tuple(renamed_block(block, names) for block in statement.blocks),
    )


def renamed_block(block: Block, names: dict[str, str]) -> Block:
    return dataclasses.replace(
        block,
        statements=tuple(renamed(each, names) for each in block.statements),
        results=tuple(names.get(name, name) for name in block.results),
    )


def with_each(block: Block, after: Callable[[Value], Statement | None]) -> Block:
    """With another statement after each, for every value that it computes."""
    statements = []
    for statement in block.statements:
        inner = tuple(with_each(each, after) for each in statement.blocks)
        more = [after(target) for target in statement.targets]
        statements.append(dataclasses.replace(statement, blocks=inner))
        statements += [each for each in more if each]
    return dataclasses.replace(block, statements=tuple(statements))


def operations(block: Block) -> Iterator[str]:
    """The names of the framework's functions that a program calls, for statistics."""
    for statement in block.statements:
        yield from re.findall(r"[a-z_]+(?=\()", statement.text)
        for each in statement.blocks:
            yield from operations(each)


def kinds(values: Sequence[Value]) -> tuple[tuple[tuple[int, ...], str], ...]:
    return tuple(value.kind for value in values)
