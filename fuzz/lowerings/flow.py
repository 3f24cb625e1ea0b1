# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches and loops of random programs."""

from __future__ import annotations

import random
from collections.abc import Callable

from lowerings.program import Block, Op, Printer, Value


class Flow:
    """A part of the builder, which knows how values are picked and blocks are made."""

    rng: random.Random
    pick: Callable[[list[Value], Callable[[Value], bool]], Value | None]
    like: Callable[[list[Value], Value], Value]
    block: Callable[[list[Value], list[Value], int, int], Block]

    def branch(self, known: list[Value], depth: int) -> Op | None:
        return self.choice(known, depth, 2)

    def switch(self, known: list[Value], depth: int) -> Op | None:
        return self.choice(known, depth, 3)

    def choice(self, known: list[Value], depth: int, ways: int) -> Op | None:
        chosen = self.pick(known, lambda v: v.shape == () and v.dtype == "i32")
        like = [self.pick(known, lambda v: True) for _ in range(self.rng.choice((1, 1, 2)))]
        if chosen is None or None in like:
            return None
        results = [Value(v.shape, v.dtype) for v in like if v is not None]
        blocks = [self.inner(known, results, [], depth) for _ in range(ways)]

        def render(p: Printer, op: Op) -> None:
            number = p.fresh()
            p.line(f"{number} = tensor.extract {p.name(op.operands[0])}[] : tensor<i32>")
            names = ", ".join(map(p.name, op.results))
            types = ", ".join(v.type for v in op.results)
            if ways == 2:
                zero, test = p.fresh(), p.fresh()
                p.line(f"{zero} = arith.constant 0 : i32")
                p.line(f"{test} = arith.cmpi sgt, {number}, {zero} : i32")
                p.line(f"{names} = scf.if {test} -> ({types}) {{")
                p.yielded(op.blocks[0])
                p.line("} else {")
                p.yielded(op.blocks[1])
                p.line("}")
                return
            index = p.fresh()
            p.line(f"{index} = arith.index_cast {number} : i32 to index")
            p.line(f"{names} = scf.index_switch {index} -> {types}")
            for case, block in enumerate(op.blocks[:-1]):
                p.line(f"case {case} {{")
                p.yielded(block)
                p.line("}")
            p.line("default {")
            p.yielded(op.blocks[-1])
            p.line("}")

        return Op(render, [chosen], results, blocks)

    def inner(
        self, known: list[Value], results: list[Value], arguments: list[Value], depth: int
    ) -> Block:
        """A region that yields values of the types of `results`, often of outside."""
        block = self.block(arguments, known, self.rng.randint(0, 3), depth + 1)
        inside = [v for op in block.ops for v in op.results]
        everything = [*known, *arguments, *inside]
        block.yields = []
        for wanted in results:
            found = self.pick(everything, lambda v, wanted=wanted: v.type == wanted.type)
            assert found is not None, "what the results are like is known"
            block.yields.append(found)
        return block

    def carried(self, known: list[Value]) -> list[Value] | None:
        starts = []
        first = self.pick(known, lambda v: True)
        if first is None:
            return None
        starts.append(first)
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            starts.append(self.like(known, first))
        return starts

    def rounds(
        self, known: list[Value], depth: int
    ) -> tuple[list[Value], list[Value], Block, int] | None:
        """What a loop carries before and after, its body, and how often that runs."""
        starts = self.carried(known)
        if starts is None:
            return None
        results = [Value(v.shape, v.dtype) for v in starts]
        arguments = [Value(v.shape, v.dtype) for v in starts]
        block = self.inner(known, results, arguments, depth)
        return starts, results, block, self.rng.choice((0, 1, 2, 3))

    def loop(self, known: list[Value], depth: int) -> Op | None:
        made = self.rounds(known, depth)
        if made is None:
            return None
        starts, results, block, rounds = made

        def render(p: Printer, op: Op) -> None:
            low, high, step = p.index(0), p.index(rounds), p.index(1)
            carried = ", ".join(
                f"{p.name(a)} = {p.name(v)}"
                for a, v in zip(op.blocks[0].arguments, op.operands, strict=True)
            )
            names = p.name(op.results[0]) if len(op.results) == 1 else p.fresh()
            types = ", ".join(v.type for v in op.results)
            p.line(
                f"{_packed(names, op)} = scf.for {p.fresh()} = {low} to {high} step {step} "
                f"iter_args({carried}) -> ({types}) {{"
            )
            p.yielded(op.blocks[0])
            p.line("}")
            _unpack(p, names, op)

        return Op(render, starts, results, [block])

    def until(self, known: list[Value], depth: int) -> Op | None:
        """A scf.while that counts in a tensor, as JAX's loops do."""
        made = self.rounds(known, depth)
        if made is None:
            return None
        starts, results, block, rounds = made

        def render(p: Printer, op: Op) -> None:
            inside = op.blocks[0].arguments
            zero, counter, before, after = p.fresh(), p.fresh(), p.fresh(), p.fresh()
            types = ", ".join(["tensor<i32>", *[v.type for v in op.results]])
            p.line(f"{zero} = arith.constant dense<0> : tensor<i32>")
            firsts = [p.fresh() for _ in inside]
            heads = ", ".join(
                [f"{before} = {zero}"]
                + [f"{a} = {p.name(v)}" for a, v in zip(firsts, op.operands, strict=True)]
            )
            p.line(f"{counter}:{len(inside) + 1} = scf.while ({heads}) : ({types}) -> ({types}) {{")
            n, bound, test = p.fresh(), p.fresh(), p.fresh()
            p.line(f"{n} = tensor.extract {before}[] : tensor<i32>")
            p.line(f"{bound} = arith.constant {rounds} : i32")
            p.line(f"{test} = arith.cmpi slt, {n}, {bound} : i32")
            p.line(f"scf.condition({test}) {', '.join([before, *firsts])} : {types}")
            p.line("} do {")
            heads = ", ".join(
                [f"{after}: tensor<i32>", *[f"{p.name(v)}: {v.type}" for v in inside]]
            )
            p.line(f"^bb0({heads}):")
            p.block(op.blocks[0])
            m, one, more, next_ = p.fresh(), p.fresh(), p.fresh(), p.fresh()
            p.line(f"{m} = tensor.extract {after}[] : tensor<i32>")
            p.line(f"{one} = arith.constant 1 : i32")
            p.line(f"{more} = arith.addi {m}, {one} : i32")
            p.line(f"{next_} = tensor.from_elements {more} : tensor<i32>")
            yields = ", ".join([next_, *map(p.name, op.blocks[0].yields)])
            p.line(f"scf.yield {yields} : {types}")
            p.line("}")
            for i, value in enumerate(op.results):
                p.rename(value, f"{counter}#{i + 1}")

        return Op(render, starts, results, [block])


def _packed(names: str, op: Op) -> str:
    return names if len(op.results) == 1 else f"{names}:{len(op.results)}"


def _unpack(p: Printer, names: str, op: Op) -> None:
    if len(op.results) > 1:
        for i, value in enumerate(op.results):
            p.rename(value, f"{names}#{i}")
