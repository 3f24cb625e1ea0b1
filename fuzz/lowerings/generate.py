# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs, by seed: the same seed gives the same program."""

from __future__ import annotations

import random
from collections.abc import Callable

from lowerings import flow, sums
from lowerings.generics import dims, generic
from lowerings.program import Block, Op, Printer, Program, Value

FLOATS, INTEGERS = ("f32", "f64"), ("i32",)
_UNARY = {
    "f": ("math.tanh", "math.absf", "arith.negf", "math.exp", "math.sin"),
    "i": ("math.absi",),
}
_BINARY = {
    "f": ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minimumf"),
    "i": ("arith.addi", "arith.subi", "arith.maxsi", "arith.minsi"),
}
_DEPTH = 2


def program(seed: int) -> Program:
    return _Builder(random.Random(seed)).program()


class _Builder(flow.Flow):
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def program(self) -> Program:
        arguments = [Value((), "i32"), Value((4, 4), "f32"), Value((4, 4), "f32")]
        arguments += [self.fresh_value() for _ in range(self.rng.randint(0, 3))]
        body = self.block(arguments, arguments, self.rng.randint(2, 10), 0)
        produced = [v for op in body.ops for v in op.results]
        count = self.rng.randint(1, 3)
        body.yields = [self.rng.choice(produced[-4:] or arguments) for _ in range(count)]
        if self.rng.random() < 0.1:
            body.yields.append(self.rng.choice(arguments))
        return Program(body)

    def fresh_value(self) -> Value:
        rank = self.rng.choice((0, 1, 2, 2, 3))
        sizes = (1, 2, 3, 4, 4, 5, 17) if self.rng.random() > 0.05 else (0, 1, 3)
        shape = tuple(self.rng.choice(sizes) for _ in range(rank))
        return Value(shape, self.rng.choice((*FLOATS, "f32", *INTEGERS)))

    def block(self, arguments: list[Value], outside: list[Value], count: int, depth: int) -> Block:
        block = Block(arguments, [], [])
        known = list(dict.fromkeys([*outside, *arguments]))
        while len(block.ops) < count:
            op = self.op(known, depth)
            if op is not None:
                block.ops.append(op)
                known += op.results
        return block

    def pick(self, known: list[Value], accept: Callable[[Value], bool]) -> Value | None:
        fitting = [v for v in known if accept(v)]
        if not fitting:
            return None
        return self.rng.choice(fitting[-3:] if self.rng.random() < 0.6 else fitting)

    def like(self, known: list[Value], value: Value) -> Value:
        """A value of the same type, perhaps the same."""
        found = self.pick(known, lambda v: v.type == value.type)
        return found if found is not None else value

    def op(self, known: list[Value], depth: int) -> Op | None:
        makers = [
            *[self.unary, self.binary, self.binary, self.product, self.product],
            *[self.reduction, self.reduction, self.joined],
            *[self.shuffle, self.slice, self.insertion, self.insertion, self.concat],
            *[self.pad, self.reshape, self.gather, self.filled, self.cast],
        ]
        if depth < _DEPTH:
            makers += [self.branch, self.branch, self.switch, self.loop, self.loop, self.until]
        return self.rng.choice(makers)(known, depth)

    # Elementwise.

    def unary(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: True)
        if x is None:
            return None
        name = self.rng.choice(_UNARY[x.dtype[0]])
        bounded = name == "math.exp"

        def body(names: list[str]) -> list[str]:
            if not bounded:
                return [f"%r = {name} {names[0]} : {x.dtype}", "%r"]
            first = f"%s = math.tanh {names[0]} : {x.dtype}"
            return [first, f"%r = {name} %s : {x.dtype}", "%r"]

        return self.elementwise([x], Value(x.shape, x.dtype), body)

    def binary(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: True)
        if x is None:
            return None
        y = self.like(known, x)
        name = self.rng.choice(_BINARY[x.dtype[0]])

        def body(names: list[str]) -> list[str]:
            line = f"%r = {name} {names[0]}, {names[1]} : {x.dtype}"
            if name == "arith.mulf":  # Stays bounded in loops.
                return [line, f"%s = math.tanh %r : {x.dtype}", "%s"]
            return [line, "%r"]

        return self.elementwise([x, y], Value(x.shape, x.dtype), body)

    def cast(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: v.dtype in ("f32", "f64"))
        if x is None:
            return None
        to = "f64" if x.dtype == "f32" else "f32"
        name = "arith.extf" if to == "f64" else "arith.truncf"
        return self.elementwise(
            [x], Value(x.shape, to), lambda n: [f"%r = {name} {n[0]} : {x.dtype} to {to}", "%r"]
        )

    def elementwise(
        self, inputs: list[Value], result: Value, body: Callable[[list[str]], list[str]]
    ) -> Op:
        rank = len(result.shape)

        def render(p: Printer, op: Op) -> None:
            generic(
                p,
                op.operands,
                op.results[0],
                [dims(rank)] * (len(inputs) + 1),
                ["parallel"] * rank,
                body,
            )

        return Op(render, inputs, [result])

    def filled(self, known: list[Value], depth: int) -> Op | None:
        result = self.rng.choice(known) if known else self.fresh_value()
        result = Value(result.shape, result.dtype)
        number = self.rng.choice((0, 0, 1, 2))

        def render(p: Printer, op: Op) -> None:
            one, init = p.fresh(), p.empty(result)
            suffix = ".0" if result.dtype.startswith("f") else ""
            p.line(f"{one} = arith.constant {number}{suffix} : {result.dtype}")
            p.line(
                f"{p.name(result)} = linalg.fill ins({one} : {result.dtype}) "
                f"outs({init} : {result.type}) -> {result.type}"
            )

        return Op(render, [], [result])

    def shuffle(self, known: list[Value], depth: int) -> Op | None:
        """A transposition, a reversal or a broadcast."""
        x = self.pick(known, lambda v: 1 <= len(v.shape) <= 2)
        if x is None:
            return None
        rank = len(x.shape)
        kind = self.rng.choice(("reverse", "transpose", "broadcast"))
        if kind == "reverse":
            if 0 in x.shape:
                return None
            read = ", ".join([f"-d0 + {x.shape[0] - 1}", *[f"d{i}" for i in range(1, rank)]])
            result = Value(x.shape, x.dtype)
        elif kind == "transpose":
            read = ", ".join(f"d{i}" for i in reversed(range(rank)))
            result = Value(x.shape[::-1], x.dtype)
        else:
            read = ", ".join(f"d{i + 1}" for i in range(rank))
            result = Value((self.rng.choice((1, 2, 4)), *x.shape), x.dtype)
        loops = len(result.shape)

        def render(p: Printer, op: Op) -> None:
            maps = [read, dims(loops)]
            generic(
                p, op.operands, op.results[0], maps, ["parallel"] * loops, lambda names: [names[0]]
            )

        return Op(render, [x], [result])

    # Sums.

    def product(self, known: list[Value], depth: int) -> Op | None:
        return sums.product(self.rng, self.among(known), FLOATS)

    def reduction(self, known: list[Value], depth: int) -> Op | None:
        return sums.reduction(self.rng, self.among(known))

    def joined(self, known: list[Value], depth: int) -> Op | None:
        return sums.joined(self.rng, self.among(known))

    def among(self, known: list[Value]) -> sums.Pick:
        return lambda accept: self.pick(known, accept)

    # Parts.

    def slice(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: len(v.shape) >= 1 and 0 not in v.shape)
        if x is None:
            return None
        sizes = [self.rng.randint(1, n) for n in x.shape]
        offsets = [self.rng.randint(0, n - s) for n, s in zip(x.shape, sizes, strict=True)]
        result = Value(tuple(sizes), x.dtype)

        def render(p: Printer, op: Op) -> None:
            p.line(
                f"{p.name(result)} = tensor.extract_slice {p.name(op.operands[0])}{offsets} "
                f"{sizes} {[1] * len(sizes)} : {x.type} to {result.type}"
            )

        return Op(render, [x], [result])

    def insertion(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: len(v.shape) >= 1 and 0 not in v.shape)
        if x is None:
            return None
        into = self.pick(
            known,
            lambda v: (
                len(v.shape) == len(x.shape)
                and v.dtype == x.dtype
                and all(n >= m for n, m in zip(v.shape, x.shape, strict=True))
            ),
        )
        if into is None:
            return None
        offsets = [self.rng.randint(0, n - m) for n, m in zip(into.shape, x.shape, strict=True)]
        result = Value(into.shape, into.dtype)

        def render(p: Printer, op: Op) -> None:
            p.line(
                f"{p.name(result)} = tensor.insert_slice {p.name(op.operands[0])} into "
                f"{p.name(op.operands[1])}{offsets} {list(x.shape)} {[1] * len(x.shape)} : "
                f"{x.type} into {result.type}"
            )

        return Op(render, [x, into], [result])

    def concat(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: len(v.shape) >= 1)
        if x is None:
            return None
        parts = [x, self.like(known, x)] + [x] * self.rng.choice((0, 1))
        self.rng.shuffle(parts)
        if len(parts) * x.size > 600:
            return None
        rows = x.shape[0]
        result = Value((rows * len(parts), *x.shape[1:]), x.dtype)

        def render(p: Printer, op: Op) -> None:
            if not p.plain:
                names = ", ".join(map(p.name, op.operands))
                types = ", ".join(v.type for v in op.operands)
                p.line(
                    f"{p.name(result)} = tensor.concat dim(0) {names} : ({types}) -> {result.type}"
                )
                return
            # The transformation is ours to test: upstream gets insertions.
            so_far = p.empty(result)
            for i, part in enumerate(op.operands):
                last = i + 1 == len(op.operands)
                target = p.name(result) if last else p.fresh()
                if result.size == 0:
                    if last:
                        p.line(f"{target} = tensor.empty() : {result.type}")
                    continue
                offsets = [rows * i] + [0] * (len(x.shape) - 1)
                p.line(
                    f"{target} = tensor.insert_slice {p.name(part)} into {so_far}{offsets} "
                    f"{list(x.shape)} {[1] * len(x.shape)} : {x.type} into {result.type}"
                )
                so_far = target

        return Op(render, parts, [result])

    def pad(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: len(v.shape) >= 1 and 0 not in v.shape)
        if x is None or x.size > 200:
            return None
        low = [self.rng.randint(0, 2) for _ in x.shape]
        high = [self.rng.randint(0, 2) for _ in x.shape]
        shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True))
        result = Value(shape, x.dtype)
        number = "1.0" if x.dtype.startswith("f") else "1"

        def render(p: Printer, op: Op) -> None:
            one = p.fresh()
            indices = ", ".join(f"%i{i}: index" for i in range(len(low)))
            p.line(f"{one} = arith.constant {number} : {x.dtype}")
            p.line(f"{p.name(result)} = tensor.pad {p.name(op.operands[0])} low{low} high{high} {{")
            p.line(f"^bb0({indices}):")
            p.line(f"tensor.yield {one} : {x.dtype}")
            p.line(f"}} : {x.type} to {result.type}")

        return Op(render, [x], [result])

    def reshape(self, known: list[Value], depth: int) -> Op | None:
        x = self.pick(known, lambda v: len(v.shape) >= 2)
        if x is None:
            return None
        result = Value((x.size,), x.dtype)
        groups = [list(range(len(x.shape)))]

        def render(p: Printer, op: Op) -> None:
            p.line(
                f"{p.name(result)} = tensor.collapse_shape {p.name(op.operands[0])} {groups} : "
                f"{x.type} into {result.type}"
            )

        return Op(render, [x], [result])

    def gather(self, known: list[Value], depth: int) -> Op | None:
        """Elements of a vector at computed places, which stay within it."""
        x = self.pick(known, lambda v: len(v.shape) == 1 and v.size > 0)
        places = self.pick(known, lambda v: v.dtype == "i32")
        if x is None or places is None:
            return None
        result, rank, last = Value(places.shape, x.dtype), len(places.shape), x.size - 1

        def render(p: Printer, op: Op) -> None:
            table = p.name(op.operands[1])

            def body(names: list[str]) -> list[str]:
                return [
                    "%c0 = arith.constant 0 : i32",
                    f"%cl = arith.constant {last} : i32",
                    f"%lo = arith.maxsi {names[0]}, %c0 : i32",
                    "%hi = arith.minsi %lo, %cl : i32",
                    "%ix = arith.index_cast %hi : i32 to index",
                    f"%r = tensor.extract {table}[%ix] : {x.type}",
                    "%r",
                ]

            generic(p, op.operands[:1], op.results[0], [dims(rank)] * 2, ["parallel"] * rank, body)

        return Op(render, [places, x], [result])
