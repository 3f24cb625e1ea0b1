# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of integers of every width and sign, and functions of bits, bit for bit as
`jax.jit`'s."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from jax_support import jit  # noqa: E402

pytestmark = needs.tool("baechi-run")
jnp, lax = jax.numpy, jax.lax

INTEGERS = ("int8", "uint8", "int16", "uint16", "bool")


def whole(seed, shape, dtype):
    """Numbers of a byte's whole range, the ends among them; small ones of other types."""
    draws = np.random.default_rng(seed)
    if dtype == "bool":
        return draws.integers(0, 2, shape).astype(bool)
    if dtype == "float32":
        return draws.integers(-9, 9, shape).astype(np.float32)
    if "16" in dtype:  # of which single precision has all sums of products
        return draws.integers(0 if "u" in dtype else -99, 99, shape).astype(dtype)
    info = np.iinfo(dtype)
    values = draws.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    values.flat[:2] = info.min, info.max
    return values


def assert_same(f, *args, machine="host:1", **options):
    ours, theirs = jit(f, machine=machine, **options)(*args), jax.jit(f)(*args)
    for mine, right in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert mine.dtype == right.dtype
        # NumPy knows no NaN of bfloat16.
        wide = [np.asarray(x, np.float32) if x.dtype == jnp.bfloat16 else x for x in (mine, right)]
        np.testing.assert_array_equal(*map(np.asarray, wide))


@pytest.mark.parametrize("left", INTEGERS)
def test_products_of_two_types_with_wider_sums(left):
    kinds = [*INTEGERS, "float32"]
    factors = [whole(i, (4, 5), kind) for i, kind in enumerate(kinds)]

    def f(x, ys):
        found = []
        for y in ys:
            for sums in ("int32", "uint32", "float32"):
                if y.dtype == "float32" and sums != "float32":
                    continue
                dims = (((1,), (0,)), ((), ()))
                found.append(lax.dot_general(x, y, dims, preferred_element_type=sums))
        return found

    assert_same(f, whole(9, (3, 4), left), factors)


@pytest.mark.parametrize("options", [{}, {"machine": "host:2", "splits": "forced:2"}])
def test_products_of_bytes(options):
    a, b = whole(1, (6, 8), "int8"), whole(2, (8, 4), "int8")
    u, v = whole(3, (6, 8), "uint8"), whole(4, (8, 4), "uint8")

    def f(a, b, u, v):
        return (
            a @ b,  # wraps
            u @ v,
            jnp.einsum("ij,jk->ki", a, b, preferred_element_type=jnp.int32),
            jnp.einsum("ij,jk->ki", u, v, preferred_element_type=jnp.int32) + 1,
            lax.dot_general(u[None], v[None], (((2,), (1,)), ((0,), (0,)))),
            jnp.tensordot(u, v, 1, preferred_element_type=jnp.uint32),
        )

    assert_same(f, a, b, u, v, **options)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_convolutions_of_bytes(dtype):
    image, kernel = whole(1, (1, 4, 6, 6), dtype), whole(2, (4, 2, 3, 3), dtype)

    def f(x, w):
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", feature_group_count=2, preferred_element_type=jnp.int32
        )

    assert_same(f, image, kernel)


def test_functions_of_whole_numbers():
    x, y = np.int32([0, 12, -18, 7, 2**31 - 1, -5]), np.int32([4, 0, 27, 21, 2**30, -15])

    def f(x, y, a, b):
        return (
            jnp.gcd(x, y),
            jnp.lcm(x[:4], y[:4]),
            a ^ b,
            a & b,
            a | b,
            lax.reduce_xor(x, (0,)),
            lax.reduce_and(y, (0,)),
            jnp.bitwise_count(y),
        )

    assert_same(f, x, y, np.int32(5), np.int32(-3))
    assert_same(lambda a, b: (a ^ b, jnp.gcd(a, b)), np.uint8(200), np.uint8(150))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_functions_of_a_floats_bits(dtype):
    special = [0.0, -0.0, 1.0, -1.0, 0.75, 3.1415, -1e3, np.inf, -np.inf, np.nan]
    x = jnp.array(special, dtype)

    def f(x, y, n):
        found = [jnp.frexp(x), jnp.ldexp(x, n), jnp.signbit(x), jnp.modf(x)]
        # Next to zero is a denormal number (docs/differences.md).
        return [*found, jnp.nextafter(x[2:], y[2:]), jnp.nextafter(x[2:], -y[2:])]

    assert_same(f, x, x[::-1], jnp.arange(-5, 5))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_floats_become_long_integers(dtype):
    """The nearest one; of NaN zero."""
    ends = [2.0**63, 2.0**64, 1.5e19, 3e18, 1e30, np.inf]
    with jax.enable_x64(True):
        x = jnp.array([0.0, 1.5, np.nan, *ends, *(-x for x in ends)], dtype)
        assert_same(lambda x: (x.astype(jnp.uint64), x.astype(jnp.int64)), x)
