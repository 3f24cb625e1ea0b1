# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces that have the bits of the whole step, whatever is cut (docs/splitting.md)."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402
import native  # noqa: E402
import needs  # noqa: E402
import random_models  # noqa: E402
from baechi.compiling import tools  # noqa: E402
from frameworks.of_jax import batch, generate  # noqa: E402
from test_splits import CASES, LAYERS, drawn, layers, predicted_ms  # noqa: E402

QUICK = {"costs": "roofline", "budget": "0"}


def assert_same_bits(found, wanted):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        a, b = np.array(a), np.array(b)
        assert a.dtype == b.dtype
        # Whatever a NaN says beside that it is none.
        np.testing.assert_array_equal(a != a, b != b)
        a[a != a], b[b != b] = 0, 0
        assert a.tobytes() == b.tobytes(), f"{np.count_nonzero(a != b)} of {a.size} differ"


def normed(w, g, x):
    """A layer with a bias and a layer normalisation, long rows and odd sizes."""
    h = x @ w["a"] + w["c"]
    h = (h - h.mean(-1, keepdims=True)) * jax.lax.rsqrt(h.var(-1, keepdims=True) + 1e-5) * g
    return -(jax.nn.log_softmax(jax.nn.gelu(h) @ w["b"]) ** 2).mean()


def several(x, y, z):
    """Products of all shapes: of batches, transposed, over two dimensions, of vectors."""
    return (
        jnp.einsum("bik,bjk->bij", x, y),
        jnp.einsum("bik,bjk->ij", x, y),
        jnp.einsum("bik,kl->bil", x, z),
        jnp.einsum("bik,bik->bi", x, y[:, : x.shape[1]]),
        jnp.einsum("bik,bil->kl", x, x),
        x[0] @ z[:, 0],
        jnp.outer(x[0, 0], z[0]),
        x.sum((0, 2)),
        x.sum((1, 2)) + y.mean((1, 2)),
        jnp.cumsum(x, -1)[..., ::2],
    )


def halves(x, y):
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return (
        x @ y,
        x.sum(0),
        x.sum(1),
        jnp.einsum("ij,jk->ik", x, y, preferred_element_type="float32"),
    )


def multiplied(x, y):
    """Sums of what is multiplied, which are fused where nothing is cut between them."""
    return (
        (x * y).sum(),
        (x * y).sum(0),
        (x * y).sum(1),
        (x * y * x).mean(),
        (x[:, :3] * 2.0).sum(0),
    )


MORE = {
    "multiplied": (multiplied, (drawn(24, 24), drawn(24, 24))),
    "long": (multiplied, (drawn(1300, 7), drawn(1300, 7))),
    "normed": (
        jax.value_and_grad(normed, (0, 1)),
        ({"a": drawn(37, 71), "b": drawn(71, 29), "c": drawn(71)}, drawn(71), drawn(45, 37)),
    ),
    "several": (several, (drawn(3, 17, 67), drawn(3, 23, 67), drawn(67, 21))),
    "halves": (halves, (drawn(19, 65), drawn(65, 27))),
}


@pytest.mark.parametrize("pieces", [2, 3])
@pytest.mark.parametrize("name", CASES | MORE)
def test_pieces_have_the_bits_of_the_whole(name, pieces):
    step, arguments = (CASES | MORE)[name]
    whole = baechi.jit(step, machine="host:1", splits="exact", **QUICK)(*arguments)
    cut = baechi.jit(step, machine="host:2", splits=f"exact-forced:{pieces}", **QUICK)
    assert_same_bits(cut(*arguments), whole)


@pytest.mark.parametrize("first", [0, pytest.param(16, marks=pytest.mark.nightly)])
def test_random_jax_programs_in_pieces(first):
    programs = [generate.generate(seed) for seed in range(first, first + 16)]
    step, states, inputs = batch._step(programs), batch._states(programs), batch._inputs(programs)
    results = [
        batch._calls(baechi.jit(step, machine=machine, splits=splits, **QUICK), states, inputs)
        for machine, splits in (("host:1", "exact"), ("host:2", "exact-forced:3"))
    ]
    assert_same_bits(results[1], results[0])


@needs.tool("baechi-run")
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(8, 24))]
)
def test_random_linalg_programs_in_pieces(seed, tmp_path):
    (tmp_path / "model.mlir").write_text(random_models.model(seed))
    results = []
    for machine, splits in (("host:1", "exact"), ("host:2", f"exact-forced:{2 + seed % 3}")):
        outputs = tmp_path / f"{splits.split(':')[0]}.npz"
        options = [f"--machine={machine}", f"--splits={splits}", f"--outputs={outputs}"]
        native.run(
            tools.find("baechi-run"),
            tmp_path / "model.mlir",
            "--costs=roofline",
            "--steps=2",
            *options,
        )
        arrays = np.load(outputs)
        results.append([arrays[f"out{i}"] for i in range(len(arrays.files))])
    assert_same_bits(results[1], results[0])


def test_exact_is_predicted_no_slower_than_its_whole_and_has_its_bits():
    step = jax.value_and_grad(layers)
    one = baechi.jit(step, machine="host:1", splits="exact", **QUICK)
    two = baechi.jit(step, machine="host:2", splits="exact", **QUICK)
    three = baechi.jit(step, machine="host:3", splits="exact", **QUICK)
    whole = one(*LAYERS)
    assert_same_bits(two(*LAYERS), whole)
    assert_same_bits(three(*LAYERS), whole)
    # Weights' gradients are cut along features, the rest along the batch.
    assert predicted_ms(two) < predicted_ms(one)
    assert "summed up" not in two.report()
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(jax.jit(step)(*LAYERS)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def attention(w, x):
    """Heads, of which the weights' columns are made by reshapes."""
    heads = [(x @ w[name]).reshape(9, 8, 16).swapaxes(0, 1) for name in "qkv"]
    scores = jax.nn.softmax(heads[0] @ heads[1].swapaxes(1, 2), -1)
    return jnp.tanh((scores @ heads[2]).swapaxes(0, 1).reshape(9, 128) @ w["o"])


def test_columns_that_are_heads_are_followed_through_reshapes():
    w = {**{name: drawn(40, 128) for name in "qkv"}, "o": drawn(128, 40)}
    arguments = jax.tree.map(lambda x: x / 8, w), drawn(9, 40)
    whole = baechi.jit(attention, machine="host:1", splits="exact", **QUICK)(*arguments)
    wish = {f"w/{name}": (1, 2) for name in "qkv"}
    cut = baechi.jit(attention, machine="host:2", splits="exact", split=wish, **QUICK)
    assert_same_bits(cut(*arguments), whole)
    # The whole of it but for what adds up all heads: one class.
    assert "2 pieces of 64" in cut.report()
    assert "reshapes the dimension" not in cut.report()
    np.testing.assert_allclose(whole, jax.jit(attention)(*arguments), rtol=1e-4, atol=1e-5)


def long_sums(x, w, dy, a, b, c):
    """Sums of more terms than one block has: of windows, strides and dilations, of vectors, and of
    what is multiplied before."""
    dims = ("NHWC", "HWIO", "NHWC")

    def plain(w):
        return (
            jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims) * dy
        ).sum()

    def strided(w):
        image = jax.lax.conv_general_dilated(
            x, w, (2, 2), "VALID", rhs_dilation=(2, 1), dimension_numbers=dims
        )
        return (image**2).sum()

    def widened(w):
        return (
            jax.lax.conv_transpose(x[:8], w, (3, 2), "VALID", dimension_numbers=dims) ** 2
        ).sum()

    return (
        jax.grad(plain)(w),
        jax.grad(strided)(w),
        jax.grad(widened)(w),
        a.T @ b,
        jnp.tanh(a.T @ b + 1.0),
        a.T @ c,
        (a * a).T @ b,
        jnp.einsum("kmi,kmj->ij", a.reshape(400, -1, 8), b.reshape(400, -1, 8)),
    )


@pytest.mark.parametrize("machine, pieces", [("host:2", 2), ("host:1", 8), ("host:3", 5)])
def test_long_sums_have_the_bits_of_the_whole(machine, pieces):
    arguments = (
        drawn(40, 60, 61, 3),
        drawn(3, 3, 3, 8),
        drawn(40, 60, 61, 8),
        drawn(40000, 8),
        drawn(40000, 8),
        drawn(40000),
    )
    whole = baechi.jit(long_sums, machine="host:1", **QUICK)(*arguments)
    cut = baechi.jit(long_sums, machine=machine, splits=f"exact-forced:{pieces}", **QUICK)
    assert_same_bits(cut(*arguments), whole)
    for found, wanted in zip(whole, jax.jit(long_sums)(*arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
