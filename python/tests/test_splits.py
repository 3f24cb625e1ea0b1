# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps whose operators are cut into pieces, compared with `jax.jit` and with themselves."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402

DRAWN = np.random.default_rng(0)
QUICK = {"costs": "roofline", "budget": "0"}


def drawn(*shape):
    return DRAWN.standard_normal(shape).astype(np.float32)


def batch_norm(w, g, x):
    y = x @ w
    y = (y - y.mean(0)) / jnp.sqrt(y.var(0) + 1e-5)
    return (jnp.tanh(y * g) ** 2).mean()


def attention(w, x):
    q, k, v = (x @ each for each in w)
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k), -1)
    return (jnp.einsum("bqk,bkd->bqd", scores, v) ** 2).mean()


def contrastive(w, x):
    return jax.nn.logsumexp((x @ w) @ (x @ w).T, axis=1).mean()


def embedding(table, tokens, labels):
    scores = jax.nn.log_softmax(table[tokens].mean(1) @ table.T)
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


def dropout(w, x, key):
    hidden = jax.nn.relu(x @ w)
    return jnp.where(jax.random.bernoulli(key, 0.5, hidden.shape), hidden / 0.5, 0).sum()


def scanned(w, x):
    def cell(state, element):
        state = jnp.tanh(state @ w + element)
        return state, state

    return (jax.lax.scan(cell, jnp.zeros(x.shape[1:]), x)[1] ** 2).mean()


def convolution(w, x):
    y = jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return (y.reshape(y.shape[0], -1) ** 2).mean()


def clipped(w, x):
    gradients = jax.grad(lambda w: (jnp.tanh(x @ w["a"]) @ w["b"]).var())(w)
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda g: g * jnp.minimum(1, 1 / norm), gradients)


def positions(x):
    return x * jnp.arange(x.shape[0])[:, None], jnp.argmax(x, 0), jnp.cumsum(x, 0), x.max(0)


def integers(x):
    return x.sum(0), x.min(0), (x @ x.T)[::2], x[3:20], jnp.pad(x, ((1, 0), (0, 2)))


def kinds(x, b):
    return (
        x.sum(0) + x.max(0),
        x.max(0) * x.prod(0) + x.min(0),
        jnp.maximum(x.sum(0), x.max(0)),
        b.any(0) | b.all(0),
        b.all(0) & b.any(0),
    )


CASES = {
    "batch_norm": (
        jax.value_and_grad(batch_norm, (0, 1)),
        (drawn(32, 64), drawn(64), drawn(48, 32)),
    ),
    "attention": (
        jax.value_and_grad(attention),
        (tuple(drawn(32, 32) * 0.1 for _ in range(3)), drawn(6, 20, 32)),
    ),
    "contrastive": (jax.value_and_grad(contrastive), (drawn(32, 16) * 0.1, drawn(24, 32))),
    "embedding": (
        jax.value_and_grad(embedding),
        (drawn(50, 32), DRAWN.integers(0, 50, (24, 7)), DRAWN.integers(0, 50, 24)),
    ),
    "dropout": (
        jax.value_and_grad(dropout),
        (drawn(32, 64), drawn(40, 32), np.array([0, 3], np.uint32)),
    ),
    "scan": (jax.value_and_grad(scanned), (drawn(32, 32) * 0.1, drawn(9, 12, 32))),
    "convolution": (jax.value_and_grad(convolution), (drawn(3, 3, 4, 8), drawn(10, 12, 12, 4))),
    "clipped": (clipped, ({"a": drawn(20, 30), "b": drawn(30, 5)}, drawn(64, 20))),
    "positions": (positions, (drawn(31, 17),)),
    "integers": (integers, (DRAWN.integers(-9, 9, (33, 20)),)),
    "kinds": (kinds, (drawn(12, 40), DRAWN.integers(0, 9, (12, 40)) > 0)),
    "empty": (lambda x: (jnp.diff(x[:, :1]), jnp.tanh(x)), (drawn(8, 3),)),
}


@pytest.mark.parametrize("pieces", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_whatever_can_be_cut_gives_jaxs_results(name, pieces):
    step, arguments = CASES[name]
    split = baechi.jit(step, splits=f"forced:{pieces}", **QUICK)(*arguments)
    expected = jax.jit(step)(*arguments)
    for found, wanted in zip(jax.tree.leaves(split), jax.tree.leaves(expected), strict=True):
        scale = float(np.max(np.abs(np.asarray(wanted, np.float64)), initial=0))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * scale)


def layers(w, x):
    for each in w:
        x = jnp.tanh(x @ each)
    return (x**2).mean()


LAYERS = ([drawn(256, 256) * 0.1 for _ in range(3)], drawn(192, 256))


def test_canonical_pieces_give_the_same_bits_on_any_number_of_devices():
    step = jax.value_and_grad(layers)
    results = [
        baechi.jit(step, machine=f"host:{devices}", splits="canonical:3", **QUICK)(*LAYERS)
        for devices in (1, 2, 3)
    ]
    first = jax.tree.leaves(results[0])
    for other in results[1:]:
        for a, b in zip(first, jax.tree.leaves(other), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def predicted_ms(step):
    return float(re.search(r"step +predicted ([\d.]+) ms", step.report())[1])


def test_any_is_predicted_no_slower_than_none():
    chain = jax.value_and_grad(layers)
    whole = baechi.jit(chain, splits="none", **QUICK)
    split = baechi.jit(chain, splits="any", **QUICK)
    for a, b in zip(jax.tree.leaves(whole(*LAYERS)), jax.tree.leaves(split(*LAYERS)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    # A chain has nothing for a second device but pieces.
    assert predicted_ms(whole) > predicted_ms(split)
    assert "pieces" not in whole.report()
    told = split.report()
    cut = re.search(r"^pieces +\d+ operations cut along (\d+) class", told, re.MULTILINE)
    assert cut and int(cut[1]) >= 1
    assert re.search(r"dimension \d of .*: 2 pieces of \d+, \d+ operations", told)
    saved = re.search(r"predicted ([\d.]+) ms, the whole step ([\d.]+) ms: saves", told)
    assert saved and float(saved[1]) == predicted_ms(split)
    assert float(saved[2]) == predicted_ms(whole)

    # What is too small for two devices stays whole, and has the same bits.
    tiny = ([drawn(4, 4)], drawn(4, 4))
    a, b = whole(*tiny), split(*tiny)
    assert re.search(r"^pieces +none", split.report(), re.MULTILINE)
    assert np.asarray(a[0]).tobytes() == np.asarray(b[0]).tobytes()


@pytest.mark.parametrize("word", ["some", "canonical:1", "canonical:65", "canonical:x", 2, None])
def test_other_words_are_errors(word):
    with pytest.raises(
        ValueError, match=r"splits is .*give 'auto', 'none', 'any'.*'canonical:N'.*'forced:N'"
    ):
        baechi.jit(layers, splits=word)


def two_layers(p, x):
    with jax.named_scope("mlp"):
        h = jnp.tanh(x @ p["first"])
    with jax.named_scope("head"):
        return jax.nn.softmax(h @ p["second"])


@pytest.mark.parametrize(
    "split, mlp, head",
    [
        ({"x": (0, 3)}, 3, 3),
        ({"x": (0, 2), "head/*": "whole"}, 2, 0),
        ({"mlp/dot*": (1, 2)}, 2, 0),
        ({"mlp/*": (0, 2)}, 2, 2),  # weights that it names are not meant
    ],
)
def test_a_person_cuts_by_patterns(split, mlp, head):
    p, x = {"first": drawn(8, 8), "second": drawn(8, 4)}, drawn(7, 8)
    step = baechi.jit(two_layers, machine="host:2", split=split, **QUICK)
    np.testing.assert_allclose(step(p, x), jax.jit(two_layers)(p, x), rtol=1e-5)
    names = set(step.placement)
    for scope, wanted in (("mlp", mlp), ("head", head)):
        found = {
            number
            for name in names
            for number in re.findall(r"\.piece(\d+)", name)
            if name.startswith(scope)
        }
        assert len(found) == wanted, (scope, names)


def test_sums_over_other_numbers_of_pieces_meet():
    def step(x, y):
        return x.sum(0) + y.sum(0), jnp.maximum(x.max(0), y.max(0))

    x, y = drawn(12, 5), drawn(12, 5)
    expected = jax.jit(step)(x, y)
    for splits, split in (
        ("any", {"x": (0, 2), "y": (0, 3)}),
        ("any", {"x": (0, 3), "y": (0, 2)}),
        ("canonical:3", {"x": (0, 2)}),
        ("forced:2", {"x": (0, 3)}),
    ):
        found = baechi.jit(step, machine="host:2", splits=splits, split=split, **QUICK)(x, y)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "split, error, words",
    [
        (
            {"y": (0, 2)},
            baechi.CompileError,
            "no operator is called 'y'.*; there are 'p/first', 'p/second', 'x', ",
        ),
        ({"x": (2, 2)}, baechi.CompileError, "has no dimension 2"),
        ({"x": (0, 8)}, baechi.CompileError, "7 elements along dimension 0, too few for 8"),
        ({"x": (0, 2), "*dot*": (0, 3)}, baechi.CompileError, "follows another"),
        ({"x": (0, 2), "*first*": (1, 2)}, baechi.CompileError, "nothing that reads it can be"),
        ({"x": "0:2"}, TypeError, r"split has 'x': '0:2': give a dictionary"),
        ({"x": (0, 1)}, TypeError, "give a dictionary"),
        ("any", TypeError, "splits='any'"),
    ],
)
def test_cuts_that_cannot_be_are_errors(split, error, words):
    p, x = {"first": drawn(8, 8), "second": drawn(8, 4)}, drawn(7, 8)
    with pytest.raises(error, match=words):
        baechi.jit(two_layers, machine="host:2", split=split, **QUICK)(p, x)
