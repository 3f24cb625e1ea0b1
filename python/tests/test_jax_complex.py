# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers within a JAX step, and Fourier transforms: compiled, as pairs of real ones."""

import itertools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")

import needs  # noqa: E402
from baechi.importer.jax import fourier  # noqa: E402
from baechi.importer.jax.step import import_step  # noqa: E402
from jax_support import jit  # noqa: E402

jnp, lax = jax.numpy, jax.lax

# A host call would say so.
pytestmark = [needs.tool("baechi-run"), pytest.mark.filterwarnings("error:JAX computes")]

X, Y = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")
WEIGHTS = np.random.default_rng(1).normal(size=(3, 3, 2)).astype("float32")


def parts(z):
    return jnp.stack([z.real, z.imag])


def spectral(weights, x):
    """A layer of a Fourier neural operator (Li et al., 2021)."""
    modes = jnp.fft.rfft(x)
    mixed = jnp.einsum("bk,kl->bl", modes[:, :3], lax.complex(weights[..., 0], weights[..., 1]))
    return jnp.fft.irfft(jnp.zeros_like(modes).at[:, :3].set(mixed), n=x.shape[-1])


FUNCTIONS = {
    "fft": lambda x: parts(jnp.fft.fft(x)),
    "fft2, ifft2": lambda x: parts(jnp.fft.ifft2(jnp.fft.fft2(x) * (2 + 1j))),
    "irfftn": lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x) * jnp.exp(-0.3j), s=x.shape),
    "odd": lambda x: jnp.fft.irfft(jnp.fft.rfft(x[:, :7]) * 1j, n=7),
    "padded": lambda x: parts(jnp.fft.fft(x, n=100, norm="ortho")),
    "columns": lambda x: parts(jnp.fft.rfft(x, axis=0)),
    "hfft": lambda x: jnp.fft.hfft(x[0] + 1j * x[1]),
    "spectral": lambda x: spectral(WEIGHTS, x),
    "its gradients": lambda x: jax.grad(
        lambda given: (spectral(*given) ** 2).sum() + jnp.abs(jnp.fft.rfft(given[1])).sum()
    )((jnp.asarray(WEIGHTS), x)),
    "arithmetic": lambda x: parts(((x + 1j * Y) * (x - 2j) - 1) / (x + 3j) - (1j * x) ** 3),
    "matrices": lambda x: parts((x + 1j * Y) @ (x + 1j * Y).conj().T),
    "with real ones": lambda x: parts((x * 1j) @ Y.T + Y @ jnp.einsum("ij,kj->ji", x, Y[:1] * 2j)),
    "with integers": lambda x: parts(jnp.matmul(jnp.arange(12).reshape(2, 6), x * 1j)),
    "vdot": lambda x: parts(jnp.vdot(x * 1j, Y) * jnp.vdot(Y, x + 1j)),
    "rotary": lambda x: parts(
        lax.complex(x[:, ::2], x[:, 1::2]) * jnp.exp(1j * jnp.arange(4.0) / 3)
    ),
    "moved": lambda x: parts(
        jnp.concatenate([jnp.flip(x + 1j * Y, 0), jnp.pad(x + 0j, ((0, 0), (1, 1)))[:, :8]])
    ),
    "where": lambda x: parts(jnp.where(x > 0, x + 1j * Y, x.sum(0) * 1j)),
    "read": lambda x: parts((x + 1j * Y).at[jnp.array([1, 9, -1])].get(mode="fill")),
    "angle": lambda x: jnp.angle(jnp.fft.fft(x) * jnp.array([1, 2j] * 4)),
    "in a loop": lambda x: lax.scan(
        lambda carry, row: (carry + jnp.abs(jnp.fft.fft(row)).sum(), jnp.fft.fft(row).real), 0.0, x
    ),
    "in a branch": lambda x: lax.cond(
        x.sum() > 9, lambda x: x, lambda x: jnp.abs(jnp.fft.fft(x)), x
    ),
    "numbers": lambda x: jnp.stack(
        [jnp.imag(lax.complex(x, np.float32(2))), jnp.real(lax.complex(np.float32(3), x))]
    ),
    "gradients of parts": lambda x: jax.grad(
        lambda x: (
            jnp.real((x + 1j) @ (x.T + 2j)).sum()
            + jnp.imag(jnp.cumsum(x * 1j, 0).T).sum()
            + jnp.real((x + 1j)[jnp.array([0, 2])] * (2 - 1j)).sum()
            + jnp.real(jnp.fft.fft(x * 1j)).sum()
        )
    )(x),
    "mapped": jax.vmap(lambda row: jnp.fft.fft(row).imag),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    ours, theirs = (jax.tree.leaves(made(FUNCTIONS[name])(X)) for made in (jit, jax.jit))
    for a, e in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=2e-6 * max(1, np.abs(e).max()))


@pytest.mark.parametrize("length", [1, 2, 3, 30, 64, 100, 512])
def test_lengths(length):
    x = np.random.default_rng(2).normal(size=(2, length))
    with jax.enable_x64(True):
        found = jit(lambda x: (parts(jnp.fft.fft(x)), parts(jnp.fft.rfft(x))))(x)
    for ours, theirs in zip(found, (np.fft.fft(x), np.fft.rfft(x)), strict=True):
        expected = np.stack([theirs.real, theirs.imag])
        np.testing.assert_allclose(ours, expected, atol=1e-14 * max(1, np.abs(expected).max()) * 9)


def test_numbers_that_are_not_finite():
    """XLA's own, all but for what it fuses."""
    numbers = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    a, b, c, d = np.array(list(itertools.product(numbers, repeat=4)), "float32").T

    def f(a, b, c, d):
        x, y = lax.complex(a, b), lax.complex(c, d)
        return parts(x / y), parts(x * y), parts(jnp.exp(x)), jnp.abs(x), parts(jnp.sign(x)), x == y

    for ours, theirs in zip(jit(f)(a, b, c, d), jax.jit(f)(a, b, c, d), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("length", [1024, 59 * 61, 3 * 1 << 12])
def test_long_ones(length):
    """What files have instead of calls."""
    x = np.random.default_rng(2).normal(size=(2, length)) * (1 + 2j)
    assert fourier.is_native([length])
    with jax.enable_x64(True):
        pair = jnp.asarray(x.real), jnp.asarray(x.imag)
        for kind, theirs in (("FFT", np.fft.fft(x)), ("IFFT", np.fft.ifft(x))):
            real, imaginary = fourier.transform(kind, [length], pair)
            expected = np.abs(theirs).max()
            np.testing.assert_allclose(real, theirs.real, atol=1e-13 * expected)
            np.testing.assert_allclose(imaginary, theirs.imag, atol=1e-13 * expected)


def test_a_file_needs_no_framework():
    assert "stablehlo" not in import_step(lambda x: jnp.abs(jnp.fft.fft(x)), (X,)).text
