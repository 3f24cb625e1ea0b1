# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, reductions, and joins of several reductions of one tensor."""

from __future__ import annotations

import random
from collections.abc import Callable

from lowerings.generics import dims, generic
from lowerings.program import Op, Printer, Value

#: A value that is known and fits.
Pick = Callable[[Callable[[Value], bool]], Value | None]

# What begins a reduction, where no computed value does: the combiner's neutral element.
_NEUTRAL = {
    "f": {
        "arith.addf": "0.0",
        "arith.mulf": "1.0",
        "arith.maximumf": "{low}",
        "arith.minimumf": "{high}",
        "arith.maxnumf": "{low}",
        "arith.minnumf": "{high}",
    },
    "i": {
        "arith.addi": "0",
        "arith.muli": "1",
        "arith.maxsi": "-2147483648",
        "arith.minsi": "2147483647",
        "arith.maxui": "0",
        "arith.minui": "-1",
        "arith.andi": "-1",
        "arith.ori": "0",
        "arith.xori": "0",
    },
}
_INFINITY = {"f32": ("0xFF800000", "0x7F800000")}
_INFINITY["f64"] = ("0xFFF0000000000000", "0x7FF0000000000000")


def product(rng: random.Random, pick: Pick, floats: tuple[str, ...]) -> Op | None:
    """A product of matrices that is added to zeros, or to a computed value."""
    a = pick(lambda v: len(v.shape) == 2 and 0 not in v.shape and v.dtype in floats)
    if a is None:
        return None
    b = pick(
        lambda v: (
            len(v.shape) == 2
            and v.shape[0] == a.shape[1]
            and v.dtype == a.dtype
            and 0 not in v.shape
        ),
    )
    if b is None:
        return None
    result = Value((a.shape[0], b.shape[1]), a.dtype)
    added = pick(lambda v: v.type == result.type)
    start = [added] if added is not None and rng.random() < 0.7 else []

    def render(p: Printer, op: Op) -> None:
        init = p.name(op.operands[2]) if start else _filled(p, result, "0.0")
        x, y = op.operands[:2]
        p.line(
            f"{p.name(result)} = linalg.matmul ins({p.name(x)}, {p.name(y)} : "
            f"{x.type}, {y.type}) outs({init} : {result.type}) -> {result.type}"
        )

    return Op(render, [a, b, *start], [result])


def reduction(rng: random.Random, pick: Pick) -> Op | None:
    """Over one dimension, from a computed value or from nothing."""
    x = pick(_has_elements)
    if x is None:
        return None
    dim = rng.randrange(len(x.shape))
    result = _reduced(x, dim)
    name = rng.choice(list(_NEUTRAL[x.dtype[0]]))
    added = pick(lambda v: v.type == result.type)
    start = [added] if added is not None and rng.random() < 0.5 else []

    def render(p: Printer, op: Op) -> None:
        init = p.name(op.operands[1]) if start else None
        _reduce(p, op.operands[0], result, dim, name, init)

    return Op(render, [x, *start], [result])


def joined(rng: random.Random, pick: Pick) -> Op | None:
    """Two or three reductions of one tensor by different combiners, and what is computed of
    all of them: in pieces none of them may be taken for another's part."""
    x = pick(_has_elements)
    if x is None:
        return None
    dim, kind = rng.randrange(len(x.shape)), x.dtype[0]
    names = rng.sample(list(_NEUTRAL[kind]), rng.choice((2, 2, 3)))
    if rng.random() < 0.3:
        names[1] = names[0]
    by = rng.choice(
        ("arith.addf", "arith.subf", "arith.maximumf", "arith.maxnumf")
        if kind == "f"
        else ("arith.addi", "arith.subi", "arith.maxsi", "arith.xori", "arith.andi")
    )
    parts = [_reduced(x, dim) for _ in names]
    result = _reduced(x, dim)

    def render(p: Printer, op: Op) -> None:
        for part, name in zip(parts, names, strict=True):
            _reduce(p, op.operands[0], part, dim, name, None)
        rank = len(result.shape)

        def body(given: list[str]) -> list[str]:
            lines, so_far = [], given[0]
            for i, other in enumerate(given[1:]):
                lines.append(f"%r{i} = {by} {so_far}, {other} : {x.dtype}")
                so_far = f"%r{i}"
            return [*lines, so_far]

        maps = [dims(rank)] * (len(parts) + 1)
        generic(p, parts, result, maps, ["parallel"] * rank, body)

    return Op(render, [x], [result, *parts])


def _has_elements(value: Value) -> bool:
    return len(value.shape) >= 1 and 0 not in value.shape


def _reduced(x: Value, dim: int) -> Value:
    return Value(x.shape[:dim] + x.shape[dim + 1 :], x.dtype)


def _reduce(p: Printer, x: Value, result: Value, dim: int, name: str, init: str | None) -> None:
    """`result` of `x`, from `init` or the combiner's neutral element."""
    rank = len(x.shape)
    if init is None:
        number = _NEUTRAL[x.dtype[0]][name]
        if "{" in number:
            low, high = _INFINITY[x.dtype]
            number = number.format(low=low, high=high)
        init = _filled(p, result, number)
    kept = ", ".join(f"d{i}" for i in range(rank) if i != dim)
    kinds = ["reduction" if i == dim else "parallel" for i in range(rank)]

    def body(given: list[str]) -> list[str]:
        if name != "arith.mulf":
            return [f"%r = {name} %o, {given[0]} : {x.dtype}", "%r"]
        # Stays bounded.
        first = f"%s = math.tanh {given[0]} : {x.dtype}"
        return [first, f"%r = {name} %o, %s : {x.dtype}", "%r"]

    generic(p, [x], result, [dims(rank), kept], kinds, body, init)


def _filled(p: Printer, value: Value, number: str) -> str:
    one, empty, init = p.fresh(), p.empty(value), p.fresh()
    p.line(f"{one} = arith.constant {number} : {value.dtype}")
    p.line(
        f"{init} = linalg.fill ins({one} : {value.dtype}) "
        f"outs({empty} : {value.type}) -> {value.type}"
    )
    return init
