# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on every element: arithmetic, types, comparisons, choices."""

from __future__ import annotations

import math

from frameworks.of_jax import names
from frameworks.of_jax.builder import Builder
from frameworks.of_jax.table import operation

_MOST = 6.0
# The text, the largest operand that it is given, and the largest result then.
UNARY = {
    "jnp.sin({0})": (_MOST, 1),
    "jnp.cos({0} * 0.7)": (_MOST, 1),
    "jnp.tanh({0})": (_MOST, 1),
    "jnp.arctan({0})": (_MOST, 1.6),
    "jnp.sinh({0})": (2, 4),
    "jnp.arcsinh({0})": (_MOST, 3),
    "jnp.exp({0})": (2.5, 13),
    "jnp.exp2({0})": (3, 8),
    "jnp.expm1({0})": (2, 7),
    "jnp.log1p(jnp.abs({0}))": (_MOST, 2),
    "jnp.log({0} * {0} + 0.3)": (_MOST, 4),
    "jnp.sqrt({0} * {0} + 0.5)": (_MOST, 7),
    "lax.rsqrt({0} * {0} + 0.5)": (_MOST, 1.5),
    "lax.erf({0})": (_MOST, 1),
    "jnp.cbrt(jnp.abs({0}) + 0.2)": (_MOST, 2),
    "jnp.reciprocal(1.5 + {0} * {0})": (_MOST, 1),
    "jnp.abs({0})": (_MOST, _MOST),
    "-{0}": (_MOST, _MOST),
    "jnp.square({0})": (4, 16),
    "{0} ** 3": (3, 27),
    "(jnp.abs({0}) + 0.4) ** 1.5": (3, 7),
    "jnp.sign({0})": (_MOST, 1),
    "jnp.floor({0} * 2)": (_MOST, 2 * _MOST),
    "jnp.round({0} * 3) / 3": (_MOST, _MOST),
    "jax.nn.relu({0})": (_MOST, _MOST),
    "jax.nn.gelu({0})": (_MOST, _MOST),
    "jax.nn.silu({0})": (_MOST, _MOST),
    "jax.nn.sigmoid({0})": (_MOST, 1),
    "jax.nn.softplus({0})": (_MOST, _MOST + 1),
    "jax.nn.leaky_relu({0})": (_MOST, _MOST),
    "jax.nn.elu({0})": (_MOST, _MOST),
    "jax.nn.hard_tanh({0})": (_MOST, 1),
    "jnp.clip({0}, -0.7, 0.9)": (_MOST, 0.9),
    "jnp.nan_to_num({0})": (_MOST, _MOST),
    "lax.stop_gradient({0})": (_MOST, _MOST),
    "lax.optimization_barrier({0})": (_MOST, _MOST),
    "{0} + 0": (_MOST, _MOST),
    "{0} * 1.0": (_MOST, _MOST),
    "jnp.copy({0})": (_MOST, _MOST),
}
# Operands of shapes that broadcast to each other; the largest operand, and result.
BINARY = {
    "{0} + {1}": (_MOST, 2 * _MOST),
    "{0} - {1}": (_MOST, 2 * _MOST),
    "{0} * {1}": (4, 16),
    "{0} / (1 + {1} * {1})": (4, 4),
    "jnp.maximum({0}, {1})": (_MOST, _MOST),
    "jnp.minimum({0}, {1})": (_MOST, _MOST),
    "jnp.arctan2({0}, 1 + jnp.abs({1}))": (_MOST, 2),
    "jnp.hypot({0}, 1 + {1} * {1})": (3, 11),
    "jnp.logaddexp({0}, {1})": (_MOST, _MOST + 1),
    "(jnp.abs({0}) + 0.5) ** {1}": (2, 7),
    "jnp.copysign({0}, {1})": (_MOST, _MOST),
    "jnp.where({1} > 0.2, {0}, {1})": (_MOST, _MOST),
    "lax.add(*jnp.broadcast_arrays({0}, {1}))": (_MOST, 2 * _MOST),
}
WHOLE = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "jnp.maximum({0}, {1})",
    "jnp.minimum({0}, {1})",
    "{0} & {1}",
    "{0} | {1}",
    "{0} ^ {1}",
    "{0} // ({1} | 1)",
    "{0} % ({1} | 1)",
    "{0} << ({1} & 3)",
    "{0} >> ({1} & 3)",
    "lax.div({0} + ({1} & 0), {1} | 1)",
    "jnp.where({0} > {1}, {0}, {1} + 1)",
)
WHOLE_UNARY = (
    "{0} + 1",
    "{0} * 3",
    "5 - {0}",
    "~{0}",
    "-{0}",
    "jnp.abs({0})",
    "jnp.sign({0})",
    "{0} // 3",
    "{0} % 3",
    "lax.population_count({0})",
    "lax.clz({0})",
    "jnp.clip({0}, 1, 5)",
)
LOGIC = ("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} == {1}", "jnp.logical_not({0}) & {1}")
COMPARED = ("{0} > {1}", "{0} <= {1}", "{0} != {1}", "{0} == {1}")


@operation(6)
def unary(b: Builder) -> None:
    text = b.choose.choice(list(UNARY))
    limit, bound = UNARY[text]
    b.emit(text, [b.floats(limit)], bound=bound)


@operation(6)
def binary(b: Builder) -> None:
    text = b.choose.choice(list(BINARY))
    limit, bound = BINARY[text]
    left = b.floats(limit)
    right = b.tamed(b.pick(lambda v: v.dtype in names.FLOATS and _broadcast(v, left)), limit)
    b.emit(text, [left, right], bound=bound)


@operation(2)
def with_number(b: Builder) -> None:
    """Python's numbers have weak types."""
    text = b.choose.choice(("{0} * C", "C - {0}", "{0} / C", "{0} + C", "jnp.maximum({0}, C)"))
    text = text.replace("C", b.constant())
    b.emit(text, [b.floats(5)], bound=50)


@operation(1)
def weak(b: Builder) -> None:
    """What is made of numbers alone stays weak."""
    text = b.choose.choice(
        ("jnp.asarray({c})", "jnp.sin({c})", "jnp.float32({c}) * 2", "jnp.add(2, {c})")
    )
    b.emit(text.replace("{c}", b.constant()), bound=4)


@operation(1.5)
def mixed(b: Builder) -> None:
    """Operands of two types, by JAX's promotion."""
    left = b.floats(4)
    right = b.pick(lambda v: v.dtype != left.dtype and _broadcast(v, left))
    if right.dtype in names.FLOATS:
        right = b.tamed(right, 4)
    elif right.dtype != "bool":
        right = b.emit("{0} % 5", [right])
    b.emit(b.choose.choice(("{0} * {1}", "{1} + {0}", "{0} - {1}")), [left, right], bound=20)


@operation(1.5)
def whole(b: Builder) -> None:
    left = b.integer()
    if b.choose.random() < 0.4:
        b.emit(b.choose.choice(WHOLE_UNARY), [left])
        return
    right = b.pick(lambda v: v.dtype in names.INTEGERS and _broadcast(v, left))
    b.emit(b.choose.choice(WHOLE), [left, right])


@operation(1)
def logic(b: Builder) -> None:
    left = b.pick(lambda v: v.dtype == "bool")
    right = b.pick(lambda v: v.dtype == "bool" and _broadcast(v, left))
    b.emit(b.choose.choice(LOGIC), [left, right])


@operation(1)
def compared(b: Builder) -> None:
    left = b.integer()
    right = b.pick(lambda v: v.dtype in names.INTEGERS and _broadcast(v, left))
    b.emit(b.choose.choice(COMPARED), [left, right])


@operation(2)
def chosen(b: Builder) -> None:
    """`where`, with the same value on one side sometimes."""
    left = b.floats(20)
    right = b.tamed(b.pick(lambda v: v.kind == left.kind), 20)
    mask = b.mask(left.shape)
    forms = (
        "jnp.where({2}, {0}, {1})",
        "lax.select({2}, {0}, {1})",
        "jnp.where({2}, {0}, 0)",
        "jnp.where({2}, {0}, {0} * 0.5)",
    )
    b.emit(b.choose.choice(forms), [left, right, mask], bound=20)


@operation(1.5)
def cast(b: Builder) -> None:
    value = b.pick(lambda v: math.prod(v.shape) > 0)
    b.cast(value, b.choose.choice([d for d in b.root.dtypes if d != value.dtype]))


@operation(0.5)
def bits(b: Builder) -> None:
    """Numbers as bits and back: a view of another type."""
    value = b.integer(dtype="i32")
    b.emit("lax.bitcast_convert_type(lax.bitcast_convert_type({0}, u32), i32)", [value])


def _broadcast(value, other) -> bool:
    """Whether two shapes fit each other and the result is not larger than both."""
    pairs = zip(reversed(value.shape), reversed(other.shape))
    return all(a == b or a == 1 or b == 1 for a, b in pairs)
