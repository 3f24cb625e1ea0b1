# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow: loops and branches, nested in each other and in derivatives."""

from __future__ import annotations

import math

from frameworks.of_jax import names
from frameworks.of_jax.builder import Builder
from frameworks.of_jax.table import grow, nests, operation
from frameworks.program import Block, Value

_TRIPS = (0, 1, 2, 3, 4)
# What a loop carries stays within these numbers, so that iterations do not make it grow.
_CARRIED = 4.0


@operation(3)
@nests
def scan(b: Builder) -> None:
    carried = _carried(b)
    count = len(carried)
    over = b.floats(5, least=1)
    inner = b.within([*_kinds(carried), (over.shape[1:], over.dtype, over.bound)])
    grow(inner, body_size(b))
    changed = _next(inner, inner.parameters[:count])
    out = some_results(inner, 2)
    form = f"{tupled(count)}, {tupled(len(out), count)}"
    opening = f"{tupled(count)} = c"
    body = inner.block([*changed, *out], form, f"c, {{{count}}}", opening)
    more = b.choose.choice(("", "", ", reverse=True", ", unroll=2"))
    b.emit_all(
        f"lax.scan({_rematerialized(b)}, {tupled(count)}, {{{count}}}{more})",
        [*carried, over],
        blocks=[body],
        form=form,
        count=count + len(out),
        bounds=_bounds([*carried, *out]),
    )


@operation(2)
@nests
def fori(b: Builder) -> None:
    """A number of iterations that is known, or that the program computes."""
    carried = _carried(b)
    count = len(carried)
    inner = b.within([((), "i32", 1.0), *_kinds(carried)])
    grow(inner, body_size(b))
    changed = _next(inner, inner.parameters[1:])
    body = inner.block(changed, tupled(count), "{0}, c", f"{tupled(count, 1)} = c")
    begin = b.choose.choice((0, 0, 1, -1))
    end = str(begin + b.choose.choice(_TRIPS))
    if b.choose.random() < 0.3:
        end = f"i32({b.index()}) % 4"
    b.emit_all(
        f"lax.fori_loop({begin}, {end}, {_rematerialized(b)}, {tupled(count)})",
        carried,
        blocks=[body],
        form=tupled(count),
        count=count,
        bounds=_bounds(carried),
    )


@operation(1.5)
@nests
def while_(b: Builder) -> None:
    """Ends by a count, and sometimes earlier, by what it computes."""
    carried = _carried(b)
    count = len(carried)
    inner = b.within([((), "i32", 1.0), *_kinds(carried)])
    grow(inner, body_size(b))
    changed = _next(inner, inner.parameters[1:])
    # Not by 2: of such loops with one iteration XLA (jaxlib 0.9.0) makes some with none.
    counter = inner.emit("{0} + 1", [inner.parameters[0]])
    opening = f"{tupled(count + 1)} = c"
    body = inner.block([counter, *changed], tupled(count + 1), "c", opening)
    until = f"c[0] < {b.choose.choice(_TRIPS)}"
    if b.choose.random() < 0.3:
        until = f"({until}) & (jnp.sum(c[1].astype(f32)) < 2.71)"
    begin = ", ".join(f"{{{i}}}" for i in range(count))
    b.emit_all(
        f"lax.while_loop(lambda c: {until}, {{f0}}, (i32(0), {begin}))",
        carried,
        blocks=[body],
        form=tupled(count + 1),
        count=count + 1,
        bounds=[1.0, *_bounds(carried)],
    )


@operation(2.5)
@nests
def map_(b: Builder) -> None:
    over = b.floats(5, least=1)
    inner = b.within([(over.shape[1:], over.dtype, over.bound)])
    grow(inner, body_size(b))
    out = some_results(inner, 2)
    more = b.choose.choice(("", "", "", ", batch_size=2"))
    b.emit_all(
        f"lax.map({_rematerialized(b)}, {{0}}{more})",
        [over],
        blocks=[inner.block(out, tupled(len(out)))],
        form=tupled(len(out)),
        count=len(out),
        bounds=_bounds(out),
    )


@operation(4)
@nests
def cond(b: Builder) -> None:
    """Branches that compute, or give what they were given, or what is around them."""
    given = [_strong(b, b.floats(_CARRIED)) for _ in range(b.choose.choice((0, 1, 1, 2)))]
    results = [
        b.choose.choice(given).kind
        if given and b.choose.random() < 0.6
        else b.floats(_CARRIED).kind
        for _ in range(b.choose.choice((1, 1, 2)))
    ]
    branches = [_branch(b, given, results) for _ in range(2)]
    _emit_branches(b, f"lax.cond({_predicate(b)}", given, results, branches)


@operation(2)
@nests
def switch(b: Builder) -> None:
    given = [_strong(b, b.floats(_CARRIED)) for _ in range(b.choose.choice((1, 2)))]
    results = [b.choose.choice(given).kind for _ in range(b.choose.choice((1, 2)))]
    count = b.choose.choice((1, 2, 3, 4))
    branches = [_branch(b, given, results) for _ in range(count)]
    functions = ", ".join(f"{{f{i}}}" for i in range(count))
    _emit_branches(b, f"lax.switch({b.index()}, [{functions}]", given, results, branches)


def _emit_branches(b: Builder, start: str, given, results, branches: list[Block]) -> None:
    functions = "" if start.endswith("]") else ", {f0}, {f1}"
    operands = "".join(f", {{{i}}}" for i in range(len(given)))
    b.emit_all(
        f"{start}{functions}{operands})",
        given,
        blocks=branches,
        form=tupled(len(results)),
        count=len(results),
        bounds=[_CARRIED] * len(results),
    )


def _branch(b: Builder, given: list[Value], results: list) -> Block:
    inner = b.within(_kinds(given))
    if b.choose.random() < 0.7:  # else: gives what there is
        grow(inner, body_size(b))
    found = []
    for kind in results:
        same = [
            v
            for v in inner.scope
            if v.kind == kind and v.bound <= _CARRIED and not b.root.abstract[v.name].weak_type
        ]
        if same and b.choose.random() < 0.6:
            found.append(b.choose.choice(same[-4:]))
        elif b.choose.random() < 0.2:
            found.append(inner.emit(f"jnp.zeros({kind[0]}, {kind[1]})", bound=0.0))
        else:
            of = b.choose.choice([v for v in inner.scope[-4:] if math.prod(v.shape)] or given)
            found.append(inner.as_kind(of, *kind, bound=_CARRIED))
    return inner.block(found, tupled(len(found)))


def _predicate(b: Builder) -> str:
    """Something that rounding does not decide: of indices, or of arguments' sums."""
    choice = b.choose.random()
    if choice < 0.5:
        return b.choose.choice(("i32(%s) > 1", "i32(%s) %% 2 == 0")) % b.index()
    value = b.floats(5) if choice < 0.8 else b.argument(b.shape(), "f32")
    return f"jnp.sum({value.name}.astype(f32)) > {b.constant()}"


def body_size(b: Builder) -> int:
    """How many statements a function within has."""
    return b.choose.choice((1, 2, 2, 3, 4))


def some_results(inner: Builder, most: int) -> list[Value]:
    """Some values of the function, its parameters and what is around it, too; the same
    one twice, sometimes."""
    count = inner.choose.randint(1, most)
    found = [inner.choose.choice(inner.scope[-5:]) for _ in range(count)]
    return [inner.tamed(v, 20) if v.dtype in names.FLOATS else v for v in found]


def tupled(count: int, first: int = 0) -> str:
    inner = ", ".join(f"{{{i}}}" for i in range(first, first + count))
    return f"({inner},)" if count == 1 else f"({inner})"


def _rematerialized(b: Builder) -> str:
    return "jax.checkpoint({f0})" if b.choose.random() < 0.25 else "{f0}"


def _carried(b: Builder) -> list[Value]:
    """One to three values that a loop changes: tensors, whole numbers; the same twice."""
    found = [b.floats(_CARRIED)]
    while len(found) < 3 and b.choose.random() < 0.45:
        kind = b.choose.random()
        if kind < 0.2:
            found.append(b.integer())
        else:
            found.append(found[0] if kind < 0.5 else b.floats(_CARRIED))
    return [_strong(b, value) for value in found]


def _strong(b: Builder, value: Value) -> Value:
    """With a type that is not weak: a loop cannot change the type of what it carries."""
    if not b.root.abstract[value.name].weak_type:
        return value
    return b.emit(f"{{0}}.astype({value.dtype})", [value], bound=value.bound)


def _next(inner: Builder, carried: list[Value]) -> list[Value]:
    """The carried values' next ones: what the body computed, or the old ones as they
    are, or in each other's places."""
    found = []
    for value in carried:
        same = [
            v
            for v in inner.scope
            if v.kind == value.kind
            and v.bound <= value.bound
            and not inner.root.abstract[v.name].weak_type
        ]
        if same and inner.choose.random() < 0.5:
            found.append(inner.choose.choice(same[-5:]))
            continue
        late = [v for v in inner.scope[-4:] if math.prod(v.shape) > 0]
        of = inner.choose.choice(late) if late else value
        found.append(inner.as_kind(of, *value.kind, bound=value.bound))
    return found


def _kinds(values: list[Value]) -> list[tuple[tuple[int, ...], str, float]]:
    return [(v.shape, v.dtype, bound) for v, bound in zip(values, _bounds(values), strict=True)]


def _bounds(values: list[Value]) -> list[float]:
    return [max(_CARRIED, v.bound) if v.dtype in names.FLOATS else 1.0 for v in values]
