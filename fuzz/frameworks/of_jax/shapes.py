# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views and shapes: what moves elements without computing."""

from __future__ import annotations

import math

from frameworks.of_jax.builder import Builder, NotApplicable
from frameworks.of_jax.table import operation
from frameworks.program import Value


def _any(b: Builder, least: int = 1) -> Value:
    return b.pick(lambda v: v.rank >= least and math.prod(v.shape) > 0)


def _axis(b: Builder, value: Value) -> int:
    return b.choose.randrange(-value.rank, value.rank)


@operation(2)
def reshape(b: Builder) -> None:
    value = _any(b, 0)
    total = math.prod(value.shape)
    first = b.choose.choice([d for d in range(1, total + 1) if total % d == 0])
    shape = b.choose.choice(((first, -1), (-1,), (-1, first), (1, first, -1), (first, -1, 1)))
    b.emit(f"{{0}}.reshape({shape})", [value], bound=value.bound)


@operation(2)
def transpose(b: Builder) -> None:
    value = _any(b, 2)
    order = list(range(value.rank))
    b.choose.shuffle(order)
    b.emit(f"jnp.transpose({{0}}, {order})", [value], bound=value.bound)


@operation(1)
def flip(b: Builder) -> None:
    value = _any(b)
    b.emit(f"jnp.flip({{0}}, {_axis(b, value)})", [value], bound=value.bound)


@operation(1)
def roll(b: Builder) -> None:
    value = _any(b)
    by = b.choose.choice((1, -1, 2, 5))
    b.emit(f"jnp.roll({{0}}, {by}, {_axis(b, value)})", [value], bound=value.bound)


@operation(3)
def sliced(b: Builder) -> None:
    """Python's slices: parts, steps, backwards, single elements, new dimensions."""
    value = _any(b)
    parts = []
    for size in value.shape:
        begin = b.choose.randrange(size)
        end = b.choose.randint(begin + 1, size)
        step = b.choose.choice((1, 1, 2, 3))
        parts.append(
            b.choose.choice(
                (":", ":", f"{begin}:{end}", f"{begin}::{step}", "::-1", str(begin), str(-begin))
            )
        )
    if b.choose.random() < 0.2:
        parts.insert(b.choose.randrange(len(parts)), "None")
    b.emit(f"{{0}}[{', '.join(parts)}]", [value], bound=value.bound)


@operation(1.5)
def joined(b: Builder) -> None:
    """Pieces one after the other; the same one twice, sometimes."""
    first = _any(b)
    second = b.pick(lambda v: v.kind == first.kind)
    third = first if b.choose.random() < 0.4 else second
    bound = max(first.bound, second.bound)
    axis = _axis(b, first)
    forms = (
        f"jnp.concatenate([{{0}}, {{1}}], {axis})",
        f"jnp.concatenate([{{0}}, {{1}}, {{2}}], {axis})",
        f"jnp.stack([{{0}}, {{1}}], {axis})",
        "jnp.stack([{0}, {1}, {2}], -1)",
    )
    b.emit(b.choose.choice(forms), [first, second, third], bound=bound)


@operation(1)
def beside_zeros(b: Builder) -> None:
    value = _any(b)
    axis = _axis(b, value)
    zero = b.choose.choice(("jnp.zeros_like({0})", "jnp.ones_like({0})"))
    forms = (
        f"jnp.concatenate([{{0}}, {zero}], {axis})",
        f"jnp.concatenate([{zero}, {{0}}, {zero}], {axis})",
    )
    b.emit(b.choose.choice(forms), [value], bound=max(value.bound, 1))


@operation(1)
def padded(b: Builder) -> None:
    value = _any(b)
    width = [(b.choose.randrange(3), b.choose.randrange(3)) for _ in value.shape]
    mode = b.choose.choice(("constant", "constant", "edge", "reflect", "wrap", "symmetric"))
    if mode == "reflect" and any(size < 3 for size in value.shape):
        raise NotApplicable
    b.emit(f"jnp.pad({{0}}, {width}, mode={mode!r})", [value], bound=value.bound)


@operation(0.7)
def padded_inside(b: Builder) -> None:
    """Padding between elements, and cut edges."""
    value = b.floats(20, least=1)
    width = [
        (b.choose.randint(-1, 2), b.choose.randint(0, 2), b.choose.randrange(3))
        for _ in value.shape
    ]
    zero = f"jnp.asarray({b.constant()}, {{0}}.dtype)"
    b.emit(f"lax.pad({{0}}, {zero}, {width})", [value], bound=20)


@operation(1)
def broadcast(b: Builder) -> None:
    value = _any(b, 0)
    forms = (
        f"jnp.broadcast_to({{0}}, {(b.choose.choice((1, 2, 3)), *value.shape)})",
        f"jnp.expand_dims({{0}}, {b.choose.choice((0, -1))})",
        "{0}[..., None]",
        f"jnp.tile({{0}}, {b.choose.choice((2, 3))})",
    )
    b.emit(b.choose.choice(forms), [value], bound=value.bound)


@operation(0.7)
def repeated(b: Builder) -> None:
    value = _any(b)
    b.emit(f"jnp.repeat({{0}}, 2, axis={_axis(b, value)})", [value], bound=value.bound)


@operation(1)
def squeezed(b: Builder) -> None:
    value = b.pick(lambda v: 1 in v.shape)
    b.emit("jnp.squeeze({0})", [value], bound=value.bound)


@operation(1)
def split(b: Builder) -> None:
    value = b.pick(lambda v: v.rank and v.shape[-1] > 1)
    at = b.choose.randrange(1, value.shape[-1])
    b.emit_all(f"jnp.split({{0}}, [{at}], axis=-1)", [value], count=2, bounds=[value.bound] * 2)


@operation(0.7)
def of_square(b: Builder) -> None:
    value = b.pick(lambda v: v.rank == 2)
    forms = ("jnp.tril({0})", "jnp.triu({0}, 1)", "jnp.diagonal({0})", "{0}.T", "jnp.rot90({0})")
    b.emit(b.choose.choice(forms), [value], bound=value.bound)


@operation(0.5)
def diagonal(b: Builder) -> None:
    value = b.pick(lambda v: v.rank == 1 and v.shape[0] <= 8)
    b.emit("jnp.diag({0})", [value], bound=value.bound)


@operation(0.5)
def swapped(b: Builder) -> None:
    value = _any(b, 2)
    axes = _axis(b, value), _axis(b, value)
    text = b.choose.choice(("jnp.swapaxes({0}, %d, %d)", "jnp.moveaxis({0}, %d, %d)")) % axes
    b.emit(text, [value], bound=value.bound)


@operation(0.4)
def empty(b: Builder) -> None:
    """Nothing beside something."""
    value = b.floats(20, least=1)
    forms = (
        "jnp.concatenate([{0}, {0}[:0]], 0)",
        "jnp.concatenate([{0}[2:2], {0}], 0)",
        "{0} + {0}[:0].sum()",
    )
    b.emit(b.choose.choice(forms), [value], bound=20)


@operation(0.7)
def counted(b: Builder) -> None:
    size = b.choose.choice(b.root.extents)
    forms = (
        f"jnp.arange({size}, dtype=i32)",
        f"jnp.linspace(-1, 1, {size}, dtype=f32)",
        f"lax.iota(i32, {size})",
        f"jnp.eye({size}, dtype=f32)",
        f"jnp.full(({size}, 2), {b.constant()}, f32)",
        f"jnp.zeros(({size},), f32)",
    )
    b.emit(b.choose.choice(forms), bound=2)
