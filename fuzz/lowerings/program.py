# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as trees of operations that can be printed as MLIR, taken apart and made smaller."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor of static shape; `dtype` is MLIR's name of its elements."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{self.dtype}>"

    @property
    def size(self) -> int:
        product = 1
        for n in self.shape:
            product *= n
        return product


@dataclasses.dataclass(eq=False)
class Block:
    """A region: its arguments, operations and what it yields."""

    arguments: list[Value]
    ops: list[Op]
    yields: list[Value]


#: Prints an operation: the printer, the operands' and the results' names.
Render = Callable[["Printer", "Op"], None]


@dataclasses.dataclass(eq=False)
class Op:
    render: Render
    operands: list[Value]
    results: list[Value]
    blocks: list[Block] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Program:
    body: Block

    def text(self, plain: bool) -> str:
        """As MLIR. `plain`: without what upstream's bufferization does not know."""
        printer = Printer(plain)
        arguments = ", ".join(f"{printer.name(v)}: {v.type}" for v in self.body.arguments)
        results = ", ".join(v.type for v in self.body.yields)
        printer.line(f"func.func @step({arguments}) -> ({results}) {{")
        printer.block(self.body)
        names = ", ".join(map(printer.name, self.body.yields))
        printer.line(f"return {names} : {results}")
        printer.line("}")
        return "\n".join(printer.lines)

    def drop_dead(self) -> None:
        """Takes operations away whose results nothing reads."""
        _drop_dead(self.body)


class Printer:
    def __init__(self, plain: bool) -> None:
        self.plain = plain
        self.lines: list[str] = []
        self._names: dict[Value, str] = {}
        self._fresh = 0

    def name(self, value: Value) -> str:
        if value not in self._names:
            self._names[value] = f"%v{len(self._names)}"
        return self._names[value]

    def rename(self, value: Value, name: str) -> None:
        """For one of several results: %loop#1."""
        self._names[value] = name

    def fresh(self) -> str:
        """The name of a helper, such as an index or an empty tensor."""
        self._fresh += 1
        return f"%t{self._fresh}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    def empty(self, value: Value) -> str:
        name = self.fresh()
        self.line(f"{name} = tensor.empty() : {value.type}")
        return name

    def index(self, number: int) -> str:
        name = self.fresh()
        self.line(f"{name} = arith.constant {number} : index")
        return name

    def block(self, block: Block) -> None:
        for op in block.ops:
            op.render(self, op)

    def yielded(self, block: Block) -> None:
        self.block(block)
        names = ", ".join(map(self.name, block.yields))
        self.line(f"scf.yield {names} : {', '.join(v.type for v in block.yields)}")


def zeros(value: Value) -> Op:
    """A constant in place of an operation whose result is `value`."""
    zero = "0.0" if value.dtype.startswith("f") else "0"

    def render(p: Printer, op: Op) -> None:
        p.line(f"{p.name(value)} = arith.constant dense<{zero}> : {value.type}")

    return Op(render, [], [value])


def blocks_within(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for inner in op.blocks:
            yield from blocks_within(inner)


def _reads(op: Op) -> Iterator[Value]:
    yield from op.operands
    for block in op.blocks:
        for inner in block.ops:
            yield from _reads(inner)
        yield from block.yields


def _drop_dead(block: Block) -> None:
    needed = set(block.yields)
    kept = []
    for op in reversed(block.ops):
        if not needed.isdisjoint(op.results):
            for inner in op.blocks:
                _drop_dead(inner)
            needed.update(_reads(op))
            kept.append(op)
    block.ops = kept[::-1]
