# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Look-ups and updates: gathers, scatters, slices at indices that are values."""

from __future__ import annotations

from frameworks.of_jax.builder import Builder
from frameworks.of_jax.table import operation
from frameworks.program import Value


def _places(b: Builder, rank: int | None = 1) -> Value:
    """Indices of i32, some beyond the end, some negative, some twice."""
    return b.integer(rank=rank, dtype="i32")


@operation(2)
def taken(b: Builder) -> None:
    value = b.floats(30, least=1)
    places = _places(b, None)
    axis = b.choose.randrange(value.rank)
    mode = b.choose.choice(("clip", "wrap", "fill"))
    text = f"jnp.take({{0}}, {{1}}, axis={axis}, mode={mode!r})"
    b.emit(
        f"jnp.nan_to_num({text}, nan=0.5)" if mode == "fill" else text, [value, places], bound=30
    )


@operation(2)
def indexed(b: Builder) -> None:
    value = b.floats(30, least=2)
    places = _places(b)
    i = b.index()
    forms = (
        "{0}[{1}]",
        "{0}[:, {1}]",
        "{0}[{1}, {1}]",
        "{0}[{1}[:, None], {1}]",
        f"{{0}}[{i}]",
        f"{{0}}[:, {i}]",
        f"{{0}}[{{1}}, {i}]",
        "{0}[-{1}]",
        "{0}[{1} % 2, ::-1]",
    )
    b.emit(b.choose.choice(forms), [value, places], bound=30)


@operation(1.5)
def taken_along(b: Builder) -> None:
    value = b.floats(30, least=1)
    axis = b.choose.randrange(value.rank)
    shape = list(value.shape)
    shape[axis] = b.choose.choice((1, 2, 3, 9))
    places = b.integer(shape=tuple(shape), dtype="i32")
    b.emit(
        f"jnp.take_along_axis({{0}}, {{1}} % {value.shape[axis]}, axis={axis})",
        [value, places],
        bound=30,
    )


@operation(2)
def sliced_at(b: Builder) -> None:
    """`dynamic_slice` keeps its window inside."""
    value = b.floats(30, least=1)
    sizes = tuple(b.choose.randint(1, size) for size in value.shape)
    at = ", ".join(f"i32({b.index()})" for _ in sizes)
    b.emit(f"lax.dynamic_slice({{0}}, ({at},), {sizes})", [value], bound=30)


@operation(2)
def updated_at(b: Builder) -> None:
    value = b.floats(30, least=1)
    sizes = tuple(b.choose.randint(1, size) for size in value.shape)
    part = b.as_kind(b.floats(30), sizes, value.dtype, 30)
    at = ", ".join(f"i32({b.index()})" for _ in sizes)
    b.emit(f"lax.dynamic_update_slice({{0}}, {{1}}, ({at},))", [value, part], bound=30)


@operation(3)
def changed(b: Builder) -> None:
    """`.at[...]` at slices and single places."""
    value = b.floats(10, least=1)
    size = value.shape[0]
    begin = b.choose.randrange(size)
    end = b.choose.randint(begin + 1, size)
    where = b.choose.choice(
        (
            f"{begin}:{end}",
            f"{begin}",
            "::2",
            "::-1",
            f"..., {value.shape[-1] - 1}",
            "...",
            b.index(),
            f"{b.index()}, ...",
        )
    )
    name = b.choose.choice(("set", "add", "multiply", "min", "max"))
    with_ = b.choose.choice((b.constant(), f"{{0}}[{where}] * 0.5", f"jnp.cos({{0}}[{where}])"))
    b.emit(f"{{0}}.at[{where}].{name}({with_})", [value], bound=30)


@operation(3)
def scattered(b: Builder) -> None:
    """Rows by indices; equal ones and such beyond the end included, but where the order
    of updates would matter."""
    value = b.floats(5, least=1)
    places = _places(b)
    count = places.shape[0]
    rows = b.as_kind(b.floats(5), (count, *value.shape[1:]), value.dtype, 5)
    name = b.choose.choice(("add", "min", "max", "subtract"))
    mode = b.choose.choice(("", ", mode='drop'", ", mode='clip'"))
    b.emit(f"{{0}}.at[{{1}}].{name}({{2}}{mode})", [value, places, rows], bound=5 + 5.0 * count)


@operation(1)
def scattered_once(b: Builder) -> None:
    """`set` at places that are all different."""
    value = b.floats(20, least=1)
    count = b.choose.randint(1, value.shape[0])
    rows = b.as_kind(b.floats(20), (count, *value.shape[1:]), value.dtype, 20)
    i = b.index()
    b.emit(
        f"{{0}}.at[(jnp.arange({count}) + {i}) % {value.shape[0]}].set({{1}})",
        [value, rows],
        bound=20,
    )


@operation(0.7)
def counted_up(b: Builder) -> None:
    value = b.floats(5, least=1)
    where = b.integer(shape=(value.shape[0],), dtype="i32")
    forms = (
        "jax.ops.segment_sum({0}, {1} % 3, 3)",
        "jax.ops.segment_max({0}, {1} % 2, 2)",
        "jax.ops.segment_sum({0}, {1}, 4)",
    )
    text = b.choose.choice(forms)
    b.emit(f"jnp.clip({text}, -50, 50)", [value, where], bound=50)


@operation(0.7)
def whole_changed(b: Builder) -> None:
    value = b.integer(least=1)
    places = _places(b)
    forms = (
        "{0}.at[{1}].add(1)",
        "{0}.at[0].set(3)",
        "{0}.at[{1}].max(4)",
        "{0}[{1}]",
        "jnp.bincount({1} % 5, length=5).astype(i32)",
        "{0}.at[::2].multiply(2)",
    )
    b.emit(b.choose.choice(forms), [value, places])


@operation(0.6)
def encoded(b: Builder) -> None:
    places = _places(b, None)
    b.emit(f"jax.nn.one_hot({{0}}, {b.choose.choice((1, 2, 5))}, dtype=f32)", [places], bound=1)


@operation(0.6)
def searched(b: Builder) -> None:
    value = b.floats(3, least=1)
    grid = "jnp.linspace(-2, 2, 5, dtype=f32)"
    forms = (f"jnp.interp({{0}}, {grid}, jnp.sin({grid}))",)
    if value.dtype == "f32":
        b.emit(b.choose.choice(forms), [value], bound=1)
