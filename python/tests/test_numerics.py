# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operations over their whole range give jax.jit's numbers."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import baechi  # noqa: E402
import needs  # noqa: E402

pytestmark = needs.tool("baechi-run")

SMALL = np.concatenate([np.geomspace(1e-30, 1, 300), -np.geomspace(1e-30, 0.99, 300)])
WIDE = np.linspace(-80, 80, 2001)
POSITIVE = np.geomspace(1e-37, 3e38, 2000)
EDGES = np.array([0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e5, -1e5, 87, -1])

FUNCTIONS = {
    "exp": (jnp.exp, [WIDE, EDGES]),
    "expm1": (jnp.expm1, [SMALL, WIDE, EDGES]),
    "log": (jnp.log, [POSITIVE, EDGES]),
    "log1p": (jnp.log1p, [SMALL, POSITIVE, EDGES]),
    "sin": (jnp.sin, [SMALL, WIDE, EDGES]),
    "cos": (jnp.cos, [SMALL, WIDE, EDGES]),
    "tan": (jnp.tan, [WIDE]),
    "tanh": (jnp.tanh, [SMALL, WIDE, EDGES]),
    "erf": (lax.erf, [SMALL, np.linspace(-5, 5, 999), EDGES]),
    "rsqrt": (lax.rsqrt, [POSITIVE, EDGES]),
    "1/sqrt": (lambda x: 1 / jnp.sqrt(x), [POSITIVE, EDGES]),
    "1/x": (lambda x: 1 / x, [POSITIVE[:-50], -POSITIVE[:-50], EDGES[:4]]),
    "cbrt": (jnp.cbrt, [POSITIVE, EDGES]),
    "asinh": (jnp.arcsinh, [SMALL, WIDE]),
    "atanh": (jnp.arctanh, [SMALL]),
    "atan": (jnp.arctan, [SMALL, WIDE, EDGES]),
    "asin": (jnp.arcsin, [SMALL]),
    "softplus": (jax.nn.softplus, [np.linspace(-18, 18, 999)]),
    "sigmoid": (jax.nn.sigmoid, [WIDE, EDGES]),
    "elu": (jax.nn.elu, [SMALL, WIDE, EDGES]),
    "power": (lambda x: x**1.7, [POSITIVE[:1500]]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name):
    function, parts = FUNCTIONS[name]
    x = np.concatenate(parts).astype(np.float32)
    ours = baechi.jit(function, machine="host:1", costs="roofline", budget="0")(x)
    np.testing.assert_allclose(ours, jax.jit(function)(x), rtol=2e-6, atol=1e-37)


def test_small_doubles():
    """What is left of exp(x) - 1 and log(1 + x) is x itself."""
    x = np.concatenate([SMALL, [3e-300, 0.0, 2.5, np.inf, np.nan]])

    def step(x):
        return jnp.expm1(x), jnp.log1p(x), jnp.sinh(x), jnp.arcsinh(x), jnp.arctanh(x)

    with jax.enable_x64(True):
        ours = baechi.jit(step, machine="host:1", costs="roofline", budget="0")(x)
        theirs = jax.jit(step)(x)
    for found, expected in zip(ours, theirs, strict=True):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_positions_beyond_the_largest_integers():
    x = np.arange(12.0).reshape(3, 4)

    def step(x, i):
        sliced = lax.dynamic_slice(x, (i, i), (2, 2)), lax.dynamic_index_in_dim(x, i)
        return *sliced, lax.dynamic_update_slice(x, jnp.zeros((1, 1)), (i, i))

    with jax.enable_x64(True):
        compiled = baechi.jit(step, machine="host:1", costs="roofline", budget="0")
        for i in (np.uint64(1), np.uint64(2**63 + 5), np.uint64(2**64 - 1)):
            for found, expected in zip(compiled(x, i), jax.jit(step)(x, i), strict=True):
                np.testing.assert_array_equal(found, expected)


def test_the_largest_integers():
    for dtype, value in ((np.int64, 2**63 - 1), (np.int64, -(2**63)), (np.uint64, 2**64 - 1)):
        x = np.array([0, 5, value], dtype)
        with jax.enable_x64(True):
            found = baechi.jit(lambda x: x ^ 3, machine="host:1", costs="roofline", budget="0")(x)
        np.testing.assert_array_equal(found, x ^ dtype(3))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_products_of_narrow_floats_are_summed_wide(dtype):
    draw = np.random.default_rng(0)

    def step(a, b, x, w):
        convolved = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return a @ b, convolved

    shapes = (8, 4096), (4096, 8), (2, 6, 6, 64), (3, 3, 64, 8)
    arguments = [jnp.asarray(draw.random(shape), dtype) for shape in shapes]
    ours = baechi.jit(step, costs="roofline", budget="0")(*arguments)
    for found, expected in zip(ours, jax.jit(step)(*arguments), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            np.float32(found), np.float32(expected), rtol=float(jnp.finfo(dtype).eps)
        )


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_sums_of_narrow_floats_are_wide(dtype):
    """Gradients of biases: beyond some hundred terms a narrow sum stops growing."""

    def step(x, b):
        bias = jax.grad(lambda b: ((x + b) * x).sum())(b)
        return bias, lax.reduce(x, dtype(0), lax.add, (1,))

    x = jnp.asarray(np.random.default_rng(0).random((4096, 8)), dtype)
    ours = baechi.jit(step, costs="roofline", budget="0")(x, jnp.zeros(8, dtype))
    for found, expected in zip(ours, jax.jit(step)(x, jnp.zeros(8, dtype)), strict=True):
        assert found.dtype == dtype
        rtol = 2 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(np.float32(found), np.float32(expected), rtol=rtol)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_associative_scans(count):
    """They slice and join empty parts."""
    x = np.random.default_rng(0).random((count, 3, 3)).astype(np.float32)
    step = functools.partial(lax.associative_scan, jnp.matmul)
    ours = baechi.jit(lambda x: step(x), costs="roofline", budget="0")(x)
    np.testing.assert_allclose(ours, step(x), rtol=1e-5)


def test_python_numbers_take_the_type_of_arrays():
    """bf16 times a Python float is bf16; a donated argument keeps its type."""

    @baechi.jit(donate_argnums=0, costs="roofline", budget="0")
    def step(p, rate):
        return p * (1 - rate)

    p = jnp.asarray([1.0, 2.0, 3.0], jnp.bfloat16)
    expected = jax.jit(lambda p, rate: p * (1 - rate))
    ours = step(p, 0.1)
    assert ours.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.float32(ours), np.float32(expected(p, 0.1)))
    # An array of one number is no Python number.
    wide = baechi.jit(lambda p, r: p * r, costs="roofline", budget="0")(p, np.float32(0.1))
    assert wide.dtype == jnp.float32


@pytest.mark.parametrize("narrow", ["bfloat16", "float16"])
def test_a_type_there_and_back_rounds(narrow):
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    step = lambda x: (x.astype(narrow).astype("float32"), 2 * x.astype(narrow))  # noqa: E731
    for ours, expected in zip(
        baechi.jit(step, costs="roofline", budget="0")(x), step(jnp.asarray(x)), strict=True
    ):
        np.testing.assert_array_equal(np.float32(ours), np.float32(expected))


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int32", "uint32", "bool"])
def test_floats_that_an_integer_cannot_hold_are_the_nearest(source, target):
    def convert(x):
        return x.astype(target), (x * 2).astype(target)

    values = [0.0, -0.5, 1.9, -1.9, 127.5, 128.0, -129.0, 255.5, 300.0, 3e9, -3e9, 5e9]
    x = jnp.array([*values, jnp.inf, -jnp.inf, jnp.nan], source)
    for found, expected in zip(baechi.jit(convert, costs="roofline")(x), jax.jit(convert)(x)):
        np.testing.assert_array_equal(found, expected)


def test_products_with_masks_choose():
    """jax.jit multiplies by no mask; through broadcasts it does."""

    def step(x, rows):
        return x * (x < 0), x * rows, x.T * (x < 0).astype(x.dtype).T, (x * jnp.isinf(x)).sum(1)

    x = np.array([[np.inf, np.nan, 1], [-np.inf, -1, 0]], np.float32)
    rows = np.zeros((2, 1), bool)
    ours = baechi.jit(step, costs="roofline", budget="0")(x, rows)
    for found, expected in zip(ours, jax.jit(step)(x, rows), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_gradients_of_maxima_beside_nans():
    step = jax.grad(lambda x: x.max(1).sum())
    x = np.array([[1, np.nan, 2], [1, 3, 2]], np.float32)
    ours = baechi.jit(step, costs="roofline", budget="0")(x)
    np.testing.assert_array_equal(ours, jax.jit(step)(x))


def test_differences_are_taken_in_the_programs_order():
    """Of large logits and of compensated sums all digits are in it."""

    def step(x, y):
        total = x + y
        return jax.nn.log_softmax(x), (total - x) - y, jnp.maximum(x, -y)

    x = np.array([[1e4, 1e4, 1, 2], [3e38, 3e38, 0, -0.0]], np.float32)
    y = np.full((2, 4), 0.1, np.float32)
    ours = baechi.jit(step, costs="roofline", budget="0")(x, y)
    for found, expected in zip(ours, jax.jit(step)(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


TENTHS = functools.partial(np.full, fill_value=0.1, dtype=np.float32)
LONG_SUMS = {
    "mean": (lambda x: x.mean(), TENTHS((2048, 2049))),
    "mean of an offset": (lambda x: x.mean(), 1e4 + np.arange(1 << 19, dtype=np.float32) % 7),
    "variance": (lambda x: ((x - x.mean()) ** 2).mean(), TENTHS((700, 1001)).cumsum(0)),
    "columns": (lambda x: x.sum(0), TENTHS((100001, 5))),
    "channels first": (lambda x: x.sum((0, 2)), TENTHS((37, 3, 5000))),
    "channels last": (lambda x: x.sum((0, 1)), TENTHS((37, 5000, 3))),
    "a product with positions": (
        lambda x: (x * (1 + np.arange(70001, dtype=np.float32))[:, None]).sum(0),
        TENTHS((70001, 3)),
    ),
    "squares": (lambda x: (x * x).sum(), TENTHS(1 << 21)),
    "a count": (lambda x: (x > 0).astype(x.dtype).sum(0), TENTHS(((1 << 24) + 5000, 2))),
    "a vector's product": (lambda x: x.reshape(4, -1) @ x.reshape(4, -1)[0], TENTHS(1 << 21)),
    "a narrow product": (lambda x: x.T @ x, TENTHS((300001, 3))),
    "a product": (lambda x: x.T @ x, TENTHS((200001, 40))),
}


@pytest.mark.parametrize("splits", ["none", "exact"])
@pytest.mark.parametrize("name", LONG_SUMS)
def test_long_sums_are_no_less_exact(name, splits):
    """Terms that are added one after the other would be rounded to what has been added up
    by then: of 300,001 tenths to some 2e-3. Exact products have that order."""
    function, x = LONG_SUMS[name]
    if splits == "exact" and "product" in name:
        return
    expected = np.asarray(function(x.astype(np.float64)))
    options = {"machine": "host:1", "costs": "roofline", "budget": "0", "splits": splits}
    found = np.asarray(baechi.jit(function, **options)(x), np.float64)
    # A large part of what is added may be rounded alike, a few hundred times.
    rtol = 3e-5 if "product" in name else 5e-6
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_gradients_of_filters_are_no_less_exact():
    def loss(w, x):
        image = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return (image * image).sum()

    x, w = TENTHS((64, 40, 40, 3)), TENTHS((3, 3, 3, 8))
    found = np.asarray(
        baechi.jit(jax.grad(loss), machine="host:1", costs="roofline", budget="0")(w, x)
    )
    wide = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [wide[:, i : i + 40, j : j + 40] for i in range(3) for j in range(3)]
    image = sum(tap.sum(-1) * 0.1 for tap in taps)
    right = [(2 * image[..., None] * tap).sum((0, 1, 2)) for tap in taps]
    expected = np.reshape(right, (3, 3, 3, 1)).repeat(8, -1)
    np.testing.assert_allclose(found, expected, rtol=3e-5)
