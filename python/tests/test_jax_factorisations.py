# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorisations of small matrices are the program's own, and equal JAX's (LAPACK's)."""

import itertools

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from baechi.importer.common.errors import ImportFailure  # noqa: E402
from baechi.importer.jax import factorisations  # noqa: E402
from baechi.importer.jax.step import import_step  # noqa: E402
from jax_support import jit  # noqa: E402

jnp, lax = jax.numpy, jax.lax


def draw(*shape):
    return jax.random.normal(jax.random.key(sum(shape)), shape)


def assert_near(actual, expected):
    scale = np.abs(np.nan_to_num(expected)).max(initial=1e-30)
    np.testing.assert_allclose(actual / scale, expected / scale, atol=2e-5)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 4, 4), (40, 40)])
def test_cholesky(shape):
    a = draw(*shape)
    a = a @ a.mT + jnp.eye(shape[-1])
    assert_near(jnp.tril(factorisations.cholesky(a)), jnp.linalg.cholesky(a))


def test_cholesky_of_what_is_not_positive_is_nan():
    good, bad = jnp.eye(3), jnp.diag(jnp.array([1.0, -1, 1]))
    both = jnp.stack([good, bad, jnp.zeros((3, 3))])
    ours = jnp.tril(factorisations.cholesky(both))
    np.testing.assert_array_equal(ours, jnp.linalg.cholesky(both))
    assert jnp.isnan(ours[1, 2, 2]) and not jnp.isnan(ours[0]).any()


@pytest.mark.parametrize("left, lower, transposed", [*itertools.product([True, False], repeat=3)])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(left, lower, transposed, unit):
    a = 0.2 * draw(2, 3, 3) + jnp.eye(3)
    b = draw(2, 3, 2)
    options = {
        "left_side": left,
        "lower": lower,
        "transpose_a": transposed,
        "conjugate_a": False,
        "unit_diagonal": unit,
    }
    b = b if left else b.mT
    ours = factorisations.triangular_solve(a, b, **options)
    assert_near(ours, lax.linalg.triangular_solve(a, b, **options))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (2, 5, 4), (1, 1)])
def test_qr(shape, mode):
    a = draw(*shape)
    ours = factorisations.qr(a, full_matrices=mode == "complete")
    for mine, their in zip(ours, jnp.linalg.qr(a, mode=mode), strict=True):
        assert_near(mine, their)


def test_qr_of_columns_that_are_zero_already():
    a = jnp.diag(jnp.array([1.0, 2, 0, -3]))
    for mine, their in zip(
        factorisations.qr(a, full_matrices=False), jnp.linalg.qr(a), strict=True
    ):
        np.testing.assert_array_equal(mine, their)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 4, 4), (6, 3), (3, 6), (40, 40)])
def test_lu(shape):
    a = draw(*shape)
    ours, their = factorisations.lu(a), lax.linalg.lu(a)
    assert_near(ours[0], their[0])
    for mine, other in zip(ours[1:], their[1:], strict=True):  # exchanges and order
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype


def test_lu_of_what_is_singular():
    for a in (jnp.zeros((3, 3)), jnp.ones((3, 3)), jnp.diag(jnp.array([0.0, 2, 0]))):
        for mine, their in zip(factorisations.lu(a), lax.linalg.lu(a), strict=True):
            np.testing.assert_array_equal(mine, their)


@needs.tool("baechi-run")
def test_compiled_with_their_gradients():
    def f(x):
        factor = jnp.linalg.cholesky(x @ x.T + jnp.eye(5))
        solved = jax.scipy.linalg.cho_solve((factor, True), x)
        q, r = jnp.linalg.qr(x)
        return factor, solved, q, r, (factor**3).sum() + (r**3).sum() + jnp.sin(solved).sum()

    x = draw(5, 5)
    for mine, their in zip(jit(f)(x), jax.jit(f)(x), strict=True):
        assert_near(mine, their)
    gradient = jax.grad(lambda x: f(x)[-1])
    assert_near(jit(gradient, machine="host:2")(x), jax.jit(gradient)(x))


@needs.tool("baechi-run")
def test_within_loops():
    def f(xs):
        return lax.map(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), xs)

    xs = draw(4, 3, 3)
    assert_near(jit(f)(xs), jax.jit(f)(xs))


def test_large_ones_are_refused():
    large = factorisations.LARGEST + 1
    with pytest.raises(ImportFailure, match="has no lowering"):
        import_step(jnp.linalg.cholesky, (draw(large, large),))
