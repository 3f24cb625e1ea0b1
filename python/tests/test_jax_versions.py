# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What JAX has since 0.9 computes what `jax.jit` does, or is left to JAX, which a warning says."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

jnp, lax = jax.numpy, jax.lax
pytestmark = needs.tool("baechi-run")

X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: jnp.log2(jnp.abs(x)), id="log2"),
        pytest.param(lambda x: jnp.empty(8).at[:].set(x[0]), id="empty"),
        pytest.param(lambda x: jnp.empty_like(x).at[:].set(x), id="empty like"),
        pytest.param(lambda x: jnp.unstack(x)[1] * 2, id="unstack"),
        pytest.param(lambda x: [v.imag for v in jnp.unstack(x * 1j + x)], id="complex unstack"),
        pytest.param(
            lambda x: lax.mul(*[x.astype(jnp.bfloat16)] * 2, out_dtype=jnp.float32),
            id="product of another type",
        ),
        pytest.param(
            lambda x: lax.mulhi((x * 1e9).astype(jnp.int32), jnp.int32(777777)), id="high bits"
        ),
        pytest.param(lambda x: lax.top_k(x, 3, is_stable=False), id="top k in any order"),
        pytest.param(lambda x: jnp.arange(0, 8, 0.5)[:8] + x, id="arange"),
        pytest.param(lambda x: jax.image.resize(x, (3, 4), "area"), id="areas"),
        pytest.param(
            lambda x: jax.grad(lambda x: jnp.linalg.qr(x)[1].sum())(x + 4 * jnp.eye(6, 8)),
            id="gradient of wide qr",
        ),
        pytest.param(lambda x: jnp.fft.irfftn(x * (1 + 2j), s=(6, 14)), id="irfftn"),
    ],
)
def test_what_is_new_is_as_jax_has_it(function):
    try:
        expected = jax.jit(function)(X)
    except (AttributeError, TypeError, ValueError, NotImplementedError) as error:
        pytest.skip(f"JAX {jax.__version__} has it not: {error}")
    assert_close(jit(function)(X), expected)


def test_a_complex_product_of_a_stated_type_is_jax_own():
    """Its rule does not read the type."""

    def function(x):
        return lax.mul(x + 1j, x - 2j, out_dtype=jnp.complex64).real

    try:
        expected = jax.jit(function)(X)
    except TypeError:
        pytest.skip(f"JAX {jax.__version__} states no types of products")
    with pytest.warns(UserWarning, match="JAX computes what has no lowering"):
        found = jit(function)(X)
    assert_close(found, expected)


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "threefry4x32", "philox4x32"])
def test_generators_give_jax_own_numbers_or_are_refused(kind):
    def function(key):
        return jax.random.uniform(key, (4, 3)), jax.random.split(key, 2)

    try:
        key = jax.random.key(3, impl=kind)
        expected = jax.jit(function)(key)
    except (ValueError, NotImplementedError) as error:
        pytest.skip(f"JAX {jax.__version__} has no such generator: {error}")
    found = jit(function)(key)
    assert_close(found[0], expected[0])
    assert (jax.random.key_data(found[1]) == jax.random.key_data(expected[1])).all()
