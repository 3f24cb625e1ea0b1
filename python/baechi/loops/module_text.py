# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop's blocks as a step: one loop over entries a block, which is one kernel, and between
them the pieces of the arrays, from block to block."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np

from baechi.loops.blocks import Block, Layout
from baechi.loops.changes import change_text, joined_text
from baechi.loops.entries import Entries
from baechi.loops.entry_text import EntryWriter, body_text, element, quoted, tensor
from baechi.loops.tracing import OUTSIDE, Body


@dataclasses.dataclass
class Argument:
    """Of the step; `next_value` is the position of the result with its next value."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    next_value: int | None = None


@dataclasses.dataclass
class LoopModule:
    """text: the module. pins: each block's device.

    arguments: a worker's keys, values and blocks' ranges, what they find outside of arrays,
        then the arrays' pieces.
    """

    text: str
    arguments: list[Argument]
    pins: dict[str, str]

    def archive(self, given: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Arguments as `baechi-run --inputs` takes them."""
        return {
            f"arg{n}": np.reshape(np.asarray(value, argument.dtype), argument.shape)
            for n, (value, argument) in enumerate(zip(given, self.arguments, strict=True))
        }


@dataclasses.dataclass
class _Writer(EntryWriter):
    """Writes the step of a layout.

    taken: by array, piece and neighbour what of this one its halo was taken from.
    holders: by array and piece the block that has last changed it, or that will be the first to.
    """

    arguments: list[Argument] = dataclasses.field(default_factory=list)
    pins: dict[str, str] = dataclasses.field(default_factory=dict)
    taken: dict[tuple[int, int, int], str] = dataclasses.field(default_factory=dict)
    strips: dict[tuple[str, tuple[int, int]], str] = dataclasses.field(default_factory=dict)
    holders: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)

    def argument(self, name: str, shape: Sequence[int], dtype: np.dtype) -> str:
        self.arguments.append(Argument(name, tuple(shape), np.dtype(dtype)))
        return f"%arg{len(self.arguments) - 1}"

    # The step.

    def write(self, devices: Sequence[str], carried: bool) -> LoopModule:
        body, layout = self.body, self.layout
        workers = range(layout.workers)
        self.keys = [
            [
                self.argument(f"keys/{name}/{w}", (self.longest,), np.dtype(np.int32))
                for name in self.entries.names
            ]
            for w in workers
        ]
        self.values = [
            [
                self.argument(f"values/{n}/{w}", (self.longest, *leaf.shape[1:]), leaf.dtype)
                for n, leaf in enumerate(self.entries.leaves)
            ]
            for w in workers
        ]
        first_values = [list(values) for values in self.values]
        size = 3 + len(self.arrays)
        self.ranges = [
            self.argument(f"ranges/{n}", (size,), np.dtype(np.int64))
            for n in range(len(layout.blocks))
        ]
        self.outside = [
            self.argument(f"outside/{n}", OUTSIDE.shape, np.dtype(OUTSIDE.dtype))
            for n in range(len(layout.blocks) if body.by_data else 0)
        ]
        self.state = [
            [
                self.argument(f"{name}/{p}", pieces.shape(array.shape), array.dtype)
                for p in range(pieces.count)
            ]
            for name, array, pieces in zip(body.names, self.arrays, layout.pieces, strict=True)
        ]
        for number in reversed(range(len(layout.blocks))):
            self._hold(number)
        first_state = [list(pieces) for pieces in self.state]
        first_outside = list(self.outside)
        clocks: dict[int, list[int]] = {}
        for number, block in enumerate(layout.blocks):
            clocks.setdefault(block.clock, []).append(number)
        for numbers in clocks.values():
            self._write_clock(numbers, devices)
        returned: list[tuple[str, Argument]] = []
        before = [*sum(first_values, []), *first_outside, *sum(first_state, [])]
        after = [*sum(self.values, []), *self.outside, *sum(self.state, [])]
        for old, new in zip(before, after, strict=True):
            if old != new:
                argument = self.arguments[int(old.removeprefix("%arg"))]
                argument.next_value = len(returned)
                if carried:
                    kind = tensor(argument.shape, argument.dtype)
                    name = f"next/{argument.name}"
                    new = self._copied(functools.partial(str, new), kind, 0, name)
                returned.append((new, argument))
        types = ", ".join(tensor(a.shape, a.dtype) for _, a in returned)
        names = ", ".join(name for name, _ in returned)
        given = ", ".join(
            f"%arg{n}: {tensor(a.shape, a.dtype)} {_attributes(a, carried)}"
            for n, a in enumerate(self.arguments)
        )
        results = ", ".join(
            f"{tensor(a.shape, a.dtype)} {{baechi.name = {quoted(f'new/{a.name}')}}}"
            for _, a in returned
        )
        lines = "\n    ".join(self.lines)
        text = (
            f"{body_text(body)}\n"
            f"  func.func @step({given}) -> ({results}) {{\n"
            "    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n"
            f"    {lines}\n    return {names} : {types}\n  }}\n"
        )
        return LoopModule(text, self.arguments, self.pins)

    def _write_clock(self, numbers: Sequence[int], devices: Sequence[str]) -> None:
        kept = [n for n, p in enumerate(self.layout.pieces) if p.buffered or p.reduced]
        before = {n: self.state[n][0] for n in kept}
        changed: dict[int, list[str]] = {n: [] for n in kept}
        # No block of a clock changes what another reads: halos are from before them all.
        earlier = [list(pieces) for pieces in self.state]
        for number in numbers:
            block = self.layout.blocks[number]
            for n in kept:
                pieces = self.layout.pieces[n]
                sums = pieces.reduced and not pieces.joins
                self.state[n][0] = self._zeros(n) if sums else before[n]
            self._take_halos(earlier, block, devices)
            self._write_block(number, block, devices[block.worker % len(devices)])
            for n in kept:
                changed[n].append(self.state[n][0])
        for number in numbers:
            self._hold(number)
        for n in kept:
            total = before[n]
            for one in changed[n]:
                if self.layout.pieces[n].joins:
                    total = self._joined(n, total, one, before[n])
                    continue
                if not self.layout.pieces[n].reduced:
                    one = self._change(n, one, before[n])
                total = self._elementwise("add", n, total, one)
            self.state[n][0] = total

    def _zeros(self, array: int) -> str:
        kind_of = element(self.arrays[array].dtype)
        kind = self._type_of(array)
        zero = self.emit(f"arith.constant 0{'.0' if 'f' in kind_of else ''} : {kind_of}")
        empty = self.emit(f"tensor.empty() : {kind}")
        return self.emit(f"linalg.fill ins({zero} : {kind_of}) outs({empty} : {kind}) -> {kind}")

    def _elementwise(self, what: str, array: int, a: str, b: str) -> str:
        kind = self._type_of(array)
        empty = self.emit(f"tensor.empty() : {kind}")
        return self.emit(
            f"linalg.{what} ins({a}, {b} : {kind}, {kind}) outs({empty} : {kind}) -> {kind}"
        )

    def _joined(self, array: int, total: str, after: str, before: str) -> str:
        kind, like = self._type_of(array), self.arrays[array]
        empty = self.emit(f"tensor.empty() : {kind}")
        how = self.layout.pieces[array].joins
        return self.emit(joined_text(how, total, after, before, empty, kind, like))

    def _change(self, array: int, after: str, before: str) -> str:
        kind_of = element(self.arrays[array].dtype)
        if "f" not in kind_of:
            return self._elementwise("sub", array, after, before)
        kind, rank = self._type_of(array), len(self.arrays[array].shape)
        empty = self.emit(f"tensor.empty() : {kind}")
        zero = self.emit(f"arith.constant 0.0 : {kind_of}")
        return self.emit(change_text(after, before, empty, zero, kind, rank))

    def _hold(self, number: int) -> None:
        for n, pieces in enumerate(self.layout.pieces):
            self.holders[n, pieces.part(self.layout.blocks[number].parts)] = number

    def _take_halos(
        self, earlier: Sequence[Sequence[str]], block: Block, devices: Sequence[str]
    ) -> None:
        """What neighbours have changed of a block's halos."""
        device = devices[block.worker % len(devices)]
        for n, pieces in enumerate(self.layout.pieces):
            if pieces.axis is None or not pieces.written:
                continue
            part = pieces.part(block.parts)
            for other, first, end in pieces.halos(part):
                source = earlier[n][other]
                if self.taken.get((n, part, other)) == source:
                    continue
                self.taken[n, part, other] = source
                kind, of_strip = self._type_of(n), self._rows(n, other, first, end)[1]
                strip = self._strip(n, other, source, (first, end), block, devices)
                # Several strips of a piece may become one operator.
                name = f"halo/{self.body.names[n]}/{{}}-{part}@{block.clock}"
                self.pins[name.format("*")] = device
                self.state[n][part] = self.emit(
                    f"tensor.insert_slice {strip} into {self.state[n][part]}"
                    f"{self._rows(n, part, first, end)[0]} : {of_strip} into {kind} "
                    f"loc({quoted(name.format(other))})"
                )

    def _rows(self, array: int, part: int, first: int, end: int) -> tuple[str, str]:
        """Where positions of the dimension that is cut are in a piece, and their type."""
        pieces, like = self.layout.pieces[array], self.arrays[array]
        sizes = list(pieces.shape(like.shape))
        offsets = [0] * len(sizes)
        sizes[pieces.dimension] = end - first
        offsets[pieces.dimension] = first - pieces.first(part)
        return f"{offsets} {sizes} {[1] * len(sizes)}", tensor(sizes, like.dtype)

    def _strip(
        self,
        array: int,
        part: int,
        source: str,
        rows: tuple[int, int],
        block: Block,
        devices: Sequence[str],
    ) -> str:
        """Rows of a piece: where another device has it, they are a tensor of their own, which is
        sent in place of the piece."""
        at, kind = self._rows(array, part, *rows)
        cut = f"tensor.extract_slice {source}{at} : {self._type_of(array)} to {kind}"
        number = self.holders[array, part]
        holder = devices[self.layout.blocks[number].worker % len(devices)]
        if holder == devices[block.worker % len(devices)]:
            return self.emit(cut)
        if (source, rows) in self.strips:
            return self.strips[source, rows]
        name = f"strip/{self.body.names[array]}/{part}-{rows[0]}-{rows[1]}@{block.clock}"
        self.pins[name] = holder
        self.strips[source, rows] = self._copied(lambda: self.emit(cut), kind, number, name)
        return self.strips[source, rows]

    def _copied(self, source: Callable[[], str], kind: str, block: int, name: str) -> str:
        """A tensor of its own. A loop as the blocks are, of one turn, which only its argument
        tells: what is no more than a slice would become a part of the block that takes it."""
        once = self._range(block, 2 + len(self.arrays))
        empty = self.emit(f"tensor.empty() : {kind}")
        into, made = self.new(), self.new()
        self.lines.append(
            f"{made} = scf.for %n = %c0 to {once} step %c1 iter_args({into} = {empty}) -> "
            f"({kind}) {{"
        )
        copy = self.emit(f"linalg.copy ins({source()} : {kind}) outs({into} : {kind}) -> {kind}")
        self.lines.append(f"scf.yield {copy} : {kind}\n    }} loc({quoted(name)})")
        return made

    def _range(self, block: int, at: int) -> str:
        """A number of a block's `ranges_of`."""
        kind = tensor((3 + len(self.arrays),), np.dtype(np.int64))
        place = self.emit(f"arith.constant {at} : index")
        word = self.emit(f"tensor.extract {self.ranges[block]}[{place}] : {kind}")
        return self.emit(f"arith.index_cast {word} : i64 to index")

    def _write_block(self, number: int, block: Block, device: str) -> None:
        name = "block/" + "-".join(map(str, block.parts))
        if name in self.pins:
            name += f"@{block.clock}"  # a part of it, between exchanges
        self.pins[name] = device
        bounds = [self._range(number, at) for at in range(2 + len(self.arrays))]
        written = [n for n, pieces in enumerate(self.layout.pieces) if pieces.written]
        part = {n: self.layout.pieces[n].part(block.parts) for n in range(len(self.arrays))}
        values = range(len(self.entries.leaves)) if self.body.new_values else []
        carried = [self.values[block.worker][n] for n in values]
        carried += [self.state[n][part[n]] for n in written]
        types = [self._value_type(n) for n in values] + [self._type_of(n) for n in written]
        if self.body.by_data:
            carried.append(self.outside[number])
            types.append(tensor(OUTSIDE.shape, np.dtype(OUTSIDE.dtype)))
        inner = [self.new() for _ in carried]
        result = self.new()
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(inner, carried, strict=True))
        self.lines.append(
            f"{result}:{len(carried)} = scf.for %n = {bounds[0]} to {bounds[1]} step %c1 "
            f"iter_args({pairs}) -> ({', '.join(types)}) {{"
        )
        held = list(self.values[block.worker])
        for k, n in enumerate(values):
            held[n] = inner[k]
        now = {n: self.state[n][part[n]] for n in range(len(self.arrays))}
        now |= dict(zip(written, inner[len(values) :], strict=False))
        outside = self._write_entry(block, held, now, bounds[2:], inner[-1])
        ends = [held[n] for n in values] + [now[n] for n in written] + outside
        self.lines.append(f"scf.yield {', '.join(ends)} : {', '.join(types)}")
        self.lines.append(f"}} loc({quoted(name)})")
        for k, n in enumerate(values):
            self.values[block.worker][n] = f"{result}#{k}"
        for k, n in enumerate(written):
            self.state[n][part[n]] = f"{result}#{len(values) + k}"
        if self.body.by_data:
            self.outside[number] = f"{result}#{len(carried) - 1}"


def _attributes(argument: Argument, carried: bool) -> str:
    kind = 'kind = "constant", value = 0.0 : f32'
    words = [f"baechi.name = {quoted(argument.name)}", f"baechi.init = {{{kind}}}"]
    if carried and argument.next_value is not None:
        words.append(f"baechi.updated_by = {argument.next_value} : i64")
    return f"{{{', '.join(words)}}}"


def module_of(
    entries: Entries,
    body: Body,
    arrays: Sequence[jax.ShapeDtypeStruct],
    layout: Layout,
    devices: Sequence[str],
    carried: bool = False,
) -> LoopModule:
    """The step of one pass over the entries on `devices`.

    carried: arguments have their next values when a step ends. These are copies: an argument is on
        one device with what computes its next value, which would be all blocks.
    """
    return _Writer(entries, body, arrays, layout).write(devices, carried)


def ranges_of(layout: Layout) -> list[np.ndarray]:
    """Each block's entries, where the pieces begin that it works on, and 1."""
    return [
        np.array([b.first, b.end, *(p.first(p.part(b.parts)) for p in layout.pieces), 1], np.int64)
        for b in layout.blocks
    ]
