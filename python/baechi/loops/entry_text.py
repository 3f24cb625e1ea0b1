# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An entry of a loop's blocks: what the body gets, and where what it gives is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from baechi.importer.common.errors import UnsupportedOperations
from baechi.importer.jax.step import function_text, import_step
from baechi.loops.accesses import Access
from baechi.loops.blocks import Block, Layout
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError, without_code
from baechi.loops.positions import Position, several_of, shape_of_region
from baechi.loops.tracing import Body

_ELEMENTS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "i1"}


def element(dtype: np.dtype) -> str:
    dtype = np.dtype(dtype)
    return _ELEMENTS.get(dtype.name) or f"i{8 * dtype.itemsize}"


def tensor(shape: Sequence[int], dtype: np.dtype) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element(dtype)}>"


def quoted(text: str) -> str:
    """As a string of MLIR's, whatever is in it."""
    plain = (
        each if each.isascii() and each.isprintable() and each not in '"\\' else _in_bytes(each)
        for each in text
    )
    return f'"{"".join(plain)}"'


def _in_bytes(text: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in text.encode(errors="replace"))


def body_text(body: Body) -> str:
    """The body as a private function @body of tensors. Raises LoopError."""
    try:
        imported = import_step(body.function, body.arguments, name="body", by_shape=True)
    except UnsupportedOperations as error:
        raise LoopError(without_code(error)) from error
    return function_text(imported, "body")


@dataclasses.dataclass
class EntryWriter:
    """Writes entries of a layout's blocks. keys: each worker's."""

    entries: Entries
    body: Body
    arrays: Sequence[jax.ShapeDtypeStruct]
    layout: Layout
    lines: list[str] = dataclasses.field(default_factory=list)
    keys: list[list[str]] = dataclasses.field(default_factory=list)
    count: int = 0

    @property
    def longest(self) -> int:
        return max(len(mine) for mine in self.layout.entries)

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str) -> str:
        name = self.new()
        self.lines.append(f"{name} = {text}")
        return name

    def _type_of(self, array: int) -> str:
        like = self.arrays[array]
        return tensor(self.layout.pieces[array].shape(like.shape), like.dtype)

    def _value_type(self, number: int) -> str:
        leaf = self.entries.leaves[number]
        return tensor((self.longest, *leaf.shape[1:]), leaf.dtype)

    def _write_entry(
        self,
        block: Block,
        held: list[str],
        now: dict[int, str],
        bases: Sequence[str],
        outside: str,
    ) -> list[str]:
        """Gives what is then outside, where positions depend on data."""
        body, i32 = self.body, np.dtype(np.int32)
        column = tensor((self.longest,), i32)
        words = [
            self.emit(f"tensor.extract {key}[%n] : {column}") for key in self.keys[block.worker]
        ]
        keys = [self.emit(f"arith.index_cast {word} : i32 to index") for word in words]
        given = [self.emit(f"tensor.from_elements {word} : tensor<i32>") for word in words]
        for n, leaf in enumerate(self.entries.leaves):
            given.append(self._slice(held[n], (self.longest, *leaf.shape[1:]), leaf.dtype))
        places = {}
        for number, access in enumerate(body.accesses):
            if access.within:
                continue
            places[number] = self._offsets(access, keys, bases[access.array])
        for number, access in enumerate(body.accesses):
            if access.given:
                given.append(self._read(access, now[access.array], places[number]))
        for array in sorted({a.array for a in body.accesses if a.within}):
            given.append(now[array])
        if body.by_data:
            entry = self.emit("arith.index_cast %n : index to i32")
            given += [self.emit(f"tensor.from_elements {entry} : tensor<i32>"), outside]
        out = self._call(given)
        results = iter(out)
        writes = [(n, a) for n, a in enumerate(body.accesses) if a.writes]
        made = [next(results) for _ in writes]
        numbers = [next(results) for _, a in writes for p in a.positions if not p.known]
        unknown = iter(numbers)
        for (number, access), value in zip(writes, made, strict=True):
            told = {d: next(unknown) for d, p in enumerate(access.positions) if not p.known}
            now[access.array] = self._write(access, value, now[access.array], places[number], told)
        if body.new_values:
            for n, leaf in enumerate(self.entries.leaves):
                held[n] = self._put(next(results), held[n], n, leaf)
        return list(results)

    def _extents(self, array: int) -> tuple[int, ...]:
        return self.layout.pieces[array].shape(self.arrays[array].shape)

    def _slice(self, source: str, shape: Sequence[int], dtype: np.dtype) -> str:
        """Entry %n of a tensor of entries."""
        rest = shape[1:]
        offsets = ", ".join(["%n", *("0" for _ in rest)])
        sizes = ", ".join(["1", *map(str, rest)])
        ones = ", ".join("1" for _ in shape)
        return self.emit(
            f"tensor.extract_slice {source}[{offsets}] [{sizes}] [{ones}] : "
            f"{tensor(shape, dtype)} to {tensor(rest, dtype)}"
        )

    def _put(self, value: str, into: str, number: int, leaf: np.ndarray) -> str:
        shape = (self.longest, *leaf.shape[1:])
        offsets = ", ".join(["%n", *("0" for _ in shape[1:])])
        sizes = ", ".join(["1", *map(str, shape[1:])])
        ones = ", ".join("1" for _ in shape)
        return self.emit(
            f"tensor.insert_slice {value} into {into}[{offsets}] [{sizes}] [{ones}] : "
            f"{tensor(shape[1:], leaf.dtype)} into {self._value_type(number)}"
        )

    def _offsets(self, access: Access, keys: Sequence[str], base: str) -> list[str]:
        pieces = self.layout.pieces[access.array]
        made = []
        for d, position in enumerate(access.positions):
            if pieces.axis is None or d != pieces.dimension:
                made.append(self._sum(position, keys))
                continue
            at = self._sum(pieces.cut_position(access.positions), keys)
            made.append(self.emit(f"arith.subi {at}, {base} : index"))
        return made

    def _sum(self, position: Position, keys: Sequence[str]) -> str:
        """A number, or the sum of keys that a position begins at."""
        total = None
        for factor, key in zip(position.factors, keys, strict=True):
            if factor == 0:
                continue
            if factor != 1:
                number = self.emit(f"arith.constant {factor} : index")
                key = self.emit(f"arith.muli {key}, {number} : index")
            total = key if total is None else self.emit(f"arith.addi {total}, {key} : index")
        if total is None:
            return str(position.constant)
        if position.constant:
            number = self.emit(f"arith.constant {position.constant} : index")
            total = self.emit(f"arith.addi {total}, {number} : index")
        return total

    def _read(self, access: Access, source: str, offsets: Sequence[str]) -> str:
        if not access.positions:
            return source
        like = self.arrays[access.array]
        part = tensor(access.region_shape(like.shape), like.dtype)
        return self.emit(
            f"tensor.extract_slice {source}{_place(access.region(like.shape), offsets)} : "
            f"{self._type_of(access.array)} to {part}"
        )

    def _write(
        self,
        access: Access,
        value: str,
        into: str,
        offsets: Sequence[str],
        told: dict[int, str],
    ) -> str:
        """told: of the dimensions that data tell, where the access begins."""
        if not access.positions:
            return value
        count, axis = several_of(access.positions)
        kind = self._type_of(access.array)
        shape, dtype = access.shape, self.arrays[access.array].dtype
        part = tensor(shape_of_region(access.positions), dtype)
        for n in range(count or 1):
            at = list(offsets)
            for d, number in told.items():
                each = n if access.positions[d].several else None
                at[d] = self._clamped(number, self._extents(access.array)[d], each, count)
            one = value
            if count:
                begins = ", ".join(str(n * (k == axis)) for k in range(len(shape)))
                sizes = ", ".join(str(1 if k == axis else s) for k, s in enumerate(shape))
                ones = ", ".join("1" for _ in shape)
                one = self.emit(
                    f"tensor.extract_slice {value}[{begins}] [{sizes}] [{ones}] : "
                    f"{tensor(shape, dtype)} to {part}"
                )
            into = self.emit(
                f"tensor.insert_slice {one} into {into}{_place(access.positions, at)} : "
                f"{part} into {kind}"
            )
        return into

    def _clamped(self, number: str, extent: int, each: int | None, count: int) -> str:
        """A position that data tell, one of several if `each` says which; one outside of the
        array, which stops the run, is within it until then."""
        if each is None:
            word = self.emit(f"tensor.extract {number}[] : tensor<i32>")
        else:
            which = self.emit(f"arith.constant {each} : index")
            word = self.emit(f"tensor.extract {number}[{which}] : tensor<{count}xi32>")
        at = self.emit(f"arith.index_cast {word} : i32 to index")
        last = self.emit(f"arith.constant {extent - 1} : index")
        below = self.emit(f"arith.minsi {at}, {last} : index")
        return self.emit(f"arith.maxsi {below}, %c0 : index")

    def _call(self, given: Sequence[str]) -> list[str]:
        types = ", ".join(tensor(a.shape, a.dtype) for a in self.body.arguments)
        # Whole arrays may be pieces: the body was traced with the arrays' own shapes.
        outputs = jax.eval_shape(self.body.function, *self.body.arguments)
        kinds = [tensor(o.shape, o.dtype) for o in outputs]
        result = self.new()
        self.lines.append(
            f"{result}:{len(kinds)} = func.call @body({', '.join(given)}) : ({types}) -> "
            f"({', '.join(kinds)})"
        )
        return [f"{result}#{k}" for k in range(len(kinds))]


def _place(positions: Sequence[Position], offsets: Sequence[str]) -> str:
    sizes = ", ".join(str(p.size) for p in positions)
    ones = ", ".join("1" for _ in positions)
    return f"[{', '.join(offsets)}] [{sizes}] [{ones}]"
