# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, running ones, orders, products and convolutions."""

from __future__ import annotations

import math

from frameworks.of_jax.builder import Builder, NotApplicable
from frameworks.of_jax.table import operation

# Whether the text may keep its reduced dimensions, and the bound for n elements of at most b.
_REDUCTIONS = {
    "jnp.sum": lambda n, b: n * b,
    "jnp.mean": lambda n, b: b,
    "jnp.max": lambda n, b: b,
    "jnp.min": lambda n, b: b,
    "jnp.var": lambda n, b: b * b,
    "jax.nn.logsumexp": lambda n, b: b + math.log(max(n, 1)),
}
_ALONG = {
    "jax.nn.softmax({0}, axis={a})": 1,
    "jax.nn.log_softmax({0}, axis={a})": 20,
    "jnp.cumsum({0}, axis={a})": 40,
    "lax.cumsum({0}, {p}, reverse=True)": 40,
    "lax.cummax({0}, {p})": 5,
    "lax.cummin({0}, {p}, reverse=True)": 5,
    "jnp.cumprod({0} * 0.3, axis={a})": 6,
    "lax.cumlogsumexp({0}, {p})": 10,
    "{0} - {0}.mean(axis={a}, keepdims=True)": 10,
    "{0} / (jnp.linalg.norm({0}, axis={a}, keepdims=True) + 0.5)": 1,
    "jax.nn.standardize({0}, axis={a}, epsilon=0.1)": 10,
    "lax.associative_scan(jnp.add, {0}, axis={a})": 40,
    "jnp.diff({0}, axis={a})": 10,
}


@operation(4)
def reduced(b: Builder) -> None:
    """Over one axis, several or all of them."""
    value = b.floats(4, least=1)
    name = b.choose.choice(list(_REDUCTIONS))
    axes = b.choose.sample(range(value.rank), b.choose.randint(1, value.rank))
    over = b.choose.choice((tuple(axes), axes[0] - value.rank, None))
    keep = b.choose.choice(("", ", keepdims=True"))
    count = math.prod(value.shape)
    bound = _REDUCTIONS[name](count, 4)
    b.emit(f"{name}({{0}}, axis={over}{keep})", [value], bound=bound)


@operation(0.7)
def product(b: Builder) -> None:
    value = b.floats(1.3, least=1)
    b.emit(f"jnp.prod({{0}}, axis={b.choose.randrange(value.rank)})", [value], bound=12)


@operation(3)
def along(b: Builder) -> None:
    value = b.floats(5, least=1)
    axis = b.choose.randrange(value.rank)
    text = b.choose.choice(list(_ALONG))
    bound = _ALONG[text]
    b.emit(
        text.replace("{a}", str(axis - value.rank)).replace("{p}", str(axis)), [value], bound=bound
    )


@operation(1)
def whole_reduced(b: Builder) -> None:
    value = b.integer(least=1)
    axis = b.choose.choice((*range(value.rank), None))
    forms = (
        f"jnp.max({{0}}, axis={axis})",
        f"jnp.min({{0}}, axis={axis})",
        f"jnp.sum({{0}}, axis={axis}, dtype=i32)",
        f"jnp.argmax({{0}}, axis={axis}).astype(i32)",
        "jnp.cumsum({0}, axis=-1, dtype=i32)",
        f"jnp.any({{0}} > 3, axis={axis})",
        f"jnp.all({{0}} < 5, axis={axis})",
        f"jnp.sum({{0}} > 2, axis={axis}, dtype=i32)",
        "lax.reduce({0}, jnp.asarray(0, {0}.dtype), lax.bitwise_xor, (0,))",
    )
    b.emit(b.choose.choice(forms), [value])


@operation(1.5)
def place_of_extreme(b: Builder) -> None:
    """Of what an argument holds, which has no two equal elements."""
    value = b.argument(b.shape(least=1), "f32")
    axis = b.choose.choice((*range(value.rank), None))
    scaled = b.choose.choice(("{0}", "{0} * 2", "-{0}"))
    name = b.choose.choice(("argmax", "argmin"))
    b.emit(f"jnp.{name}({scaled}, axis={axis}).astype(i32)", [value])


@operation(1.5)
def sorted_(b: Builder) -> None:
    """By values of arguments: equal ones would be in an order that rounding decides."""
    value = b.argument(b.shape(least=1), "f32")
    size = value.shape[-1]
    axis = b.choose.randrange(value.rank)
    forms = (
        f"jnp.sort({{0}}, axis={axis})",
        f"jnp.argsort({{0}}, axis={axis}).astype(i32)",
        f"-jnp.sort(-{{0}}, axis={axis})",
        "jnp.median({0}, axis=-1)",
    )
    pairs = (
        f"lax.top_k({{0}}, {b.choose.randint(1, size)})",
        f"lax.sort_key_val({{0}}, jnp.sin({{0}}), {axis})",
        f"lax.sort(({{0}}, lax.broadcasted_iota(i32, {value.shape}, {axis})), dimension={axis})",
    )
    if b.choose.random() < 0.5:
        b.emit(b.choose.choice(forms), [value], bound=4)
    else:
        b.emit_all(b.choose.choice(pairs), [value], count=2, bounds=[4, 4])


@operation(0.7)
def whole_sorted(b: Builder) -> None:
    """Of integers, with equal ones: sorting is stable."""
    value = b.integer(least=1)
    text = b.choose.choice(("jnp.sort({0}, axis=-1)", "jnp.argsort({0}, axis=0).astype(i32)"))
    b.emit(text, [value])


@operation(3)
def matmul(b: Builder) -> None:
    left = b.floats(3, rank=2)
    right = b.floats(3, shape=(left.shape[1], b.choose.choice(b.root.extents)), dtype=left.dtype)
    forms = (
        "{0} @ {1}",
        "jnp.dot({0}, {1})",
        "jnp.einsum('ij,jk->ki', {0}, {1})",
        "({1}.T @ {0}.T)",
        "{0} @ {1} + 1",
        "jnp.matmul({0}, {1}, preferred_element_type=f32)",
    )
    b.emit(b.choose.choice(forms), [left, right], bound=9.0 * left.shape[1] + 1)


@operation(1.5)
def square_product(b: Builder) -> None:
    """Repeated products by one matrix, as recurrent networks have them."""
    weight = b.argument((b.choose.choice(b.root.extents),) * 2, "f32")
    value = b.floats(3, rank=2, shape=(b.choose.choice((1, 2, 3)), weight.shape[0]), dtype="f32")
    forms = ("{0} @ {1}", "jnp.tanh({0} @ {1}) + {0}", "({0} @ {1}) @ {1}", "{0} + {0} @ {1}")
    b.emit(b.choose.choice(forms), [value, weight], bound=400)


@operation(1.5)
def contraction(b: Builder) -> None:
    left = b.floats(2, rank=3)
    right = b.floats(2, rank=3, dtype=left.dtype)
    letters = "abc"
    used, second = {}, []
    for size in right.shape:
        same = [c for c, n in zip(letters, left.shape) if n == size and c not in second]
        second.append(
            b.choose.choice(same)
            if same and b.choose.random() < 0.7
            else b.choose.choice([c for c in "defg" if c not in second])
        )
        used[second[-1]] = size
    every = [*letters, *[c for c in second if c not in letters]]
    result = b.choose.sample(every, b.choose.randint(0, min(3, len(every))))
    spec = f"{letters},{''.join(second)}->{''.join(result)}"
    bound = 4.0 * math.prod(left.shape) * math.prod(right.shape)
    b.emit(f"jnp.einsum({spec!r}, {{0}}, {{1}})", [left, right], bound=bound)


@operation(1)
def of_vectors(b: Builder) -> None:
    value = b.floats(3, rank=1)
    other = b.tamed(b.pick(lambda v: v.kind == value.kind), 3)
    forms = (
        "jnp.vdot({0}, {1})",
        "jnp.outer({0}, {1})",
        "jnp.inner({0}, {1})",
        "jnp.convolve({0}, {1}, mode='same')",
    )
    b.emit(b.choose.choice(forms), [value, other], bound=9.0 * value.shape[0])


@operation(1)
def batched(b: Builder) -> None:
    value = b.floats(2, rank=3)
    forms = (
        "jnp.einsum('bij,bkj->bik', {0}, {0})",
        "{0} @ jnp.swapaxes({0}, 1, 2)",
        "jnp.tensordot({0}, {0}, axes=((0, 2), (0, 2)))",
        "jnp.einsum('bij->bj', {0})",
        "jnp.einsum('bij,bij->', {0}, {0})",
    )
    b.emit(b.choose.choice(forms), [value], bound=4.0 * math.prod(value.shape))


@operation(1)
def convolution(b: Builder) -> None:
    channels, out = b.choose.choice((1, 2, 3)), b.choose.choice((1, 2, 4))
    image = b.argument((b.choose.choice((1, 2)), b.choose.choice((4, 5, 6)), 4, channels), "f32")
    kernel = b.argument((b.choose.choice((1, 2, 3)), 2, channels, out), "f32")
    strides = b.choose.choice(((1, 1), (2, 1), (2, 2)))
    padding, more = b.choose.choice(("SAME", "VALID", [(1, 0), (2, 1)])), ""
    if b.choose.random() < 0.5:
        more = b.choose.choice((", rhs_dilation=(2, 1)", ", feature_group_count=1"))
    elif not isinstance(padding, str):
        more = ", lhs_dilation=(1, 2)"
    b.emit(
        f"lax.conv_general_dilated({{0}}, {{1}}, {strides}, {padding!r}, "
        f"dimension_numbers=('NHWC', 'HWIO', 'NHWC'){more})",
        [image, kernel],
        bound=100,
    )


@operation(0.8)
def pooled(b: Builder) -> None:
    value = b.floats(5, rank=2)
    if min(value.shape) < 2:
        raise NotApplicable
    window = (b.choose.choice((1, 2)), 2)
    strides = b.choose.choice(((1, 1), (2, 1), (1, 2)))
    padding = b.choose.choice(("SAME", "VALID"))
    what = b.choose.choice(("-jnp.inf, lax.max", "jnp.inf, lax.min", "0.0, lax.add"))
    b.emit(f"lax.reduce_window({{0}}, {what}, {window}, {strides}, {padding!r})", [value], bound=20)
