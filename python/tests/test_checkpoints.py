# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of `jax.checkpoint`, undone and kept: the results are those of `jax.jit`, and the same bits
whatever becomes of the checkpoints."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402

import baechi  # noqa: E402
from test_fit_memory import BATCH, QUICK, WEIGHTS, arena, step_of  # noqa: E402

POLICIES = jax.checkpoint_policies


def layer(w, x):
    return jnp.tanh(jnp.exp(x @ w))


def named(w, x):
    return jnp.tanh(checkpoint_name(jnp.exp(x @ w), "kept"))


def each(of=layer, **options):
    """A checkpoint around every layer."""

    def loss(weights, x):
        for w in weights:
            x = jax.checkpoint(of, **options)(w, x)
        return (x**2).mean()

    return loss


def nested(weights, x):
    """Checkpoints within checkpoints, three deep."""

    def two(a, b, x):
        return jax.checkpoint(layer)(b, jax.checkpoint(layer)(a, x))

    def four(a, b, c, d, x):
        return jax.checkpoint(two)(c, d, jax.checkpoint(two)(a, b, x))

    for first in range(0, len(weights), 4):
        x = jax.checkpoint(four)(*weights[first : first + 4], x)
    return (x**2).mean()


def nested_policies(weights, x):
    """The outer one keeps products, the inner one nothing."""

    def two(a, b, x):
        return jax.checkpoint(layer)(b, jax.checkpoint(layer)(a, x))

    for a, b in zip(weights[::2], weights[1::2], strict=True):
        x = jax.checkpoint(two, policy=POLICIES.dots_saveable)(a, b, x)
    return (x**2).mean()


def dropout(weights, x):
    key = jax.random.key(3)

    def drop(number, w, x):
        mask = jax.random.bernoulli(jax.random.fold_in(key, number), 0.9, x.shape)
        return jnp.where(mask, jnp.tanh(x @ w), 0)

    for number, w in enumerate(weights):
        x = jax.checkpoint(drop, static_argnums=0)(number, w, x)
    return (x**2).mean()


def within_scan(weights, x):
    def cell(x, w):
        return jax.checkpoint(layer)(w, x), ()

    return (jax.lax.scan(cell, x, jnp.stack(weights))[0] ** 2).mean()


def around_scan(weights, x):
    def all_of(weights, x):
        return jax.lax.scan(lambda x, w: (layer(w, x), ()), x, weights)[0]

    return (jax.checkpoint(all_of)(jnp.stack(weights), x) ** 2).mean()


def within_unrolled_scan(weights, x):
    def cell(x, w):
        return jax.checkpoint(layer)(w, x), ()

    scanned = jax.lax.scan(cell, x, jnp.stack(weights), unroll=True)[0]
    return (scanned**2).mean()


def within_vmap(weights, x):
    def row(x):
        for w in weights:
            x = jax.checkpoint(layer)(w, x)
        return (x**2).mean()

    return jax.vmap(row)(x).mean()


#: The loss, and how many operators are computed once that the program computes twice, at least;
#: without barriers, or where all but the names is kept, it computes nothing twice.
CASES = {
    "nested": (nested, 8),
    "nested_policies": (nested_policies, 8),
    "dropout": (dropout, 8),
    "without_barriers": (each(prevent_cse=False), 0),
    "dots_saveable": (each(policy=POLICIES.dots_saveable), 8),
    "names": (each(named, policy=POLICIES.save_only_these_names("kept")), 8),
    "all_but_names": (each(named, policy=POLICIES.save_anything_except_these_names("kept")), 0),
    "within_unrolled_scan": (within_unrolled_scan, 8),
    "within_vmap": (within_vmap, 8),
    "within_scan": (within_scan, None),
    "around_scan": (around_scan, None),
}


def run(loss, machine, **options):
    compiled = baechi.jit(step_of(loss), machine=machine, **{**QUICK, **options})
    weights, value = compiled(WEIGHTS, BATCH)
    return compiled, [np.asarray(each) for each in (*weights, value)]


def undone(compiled):
    found = re.search(r"jax.checkpoint: (\d+) operators?: kept (\d+)", compiled.report())
    return int(found[1]) - int(found[2]) if found else 0


@pytest.mark.parametrize("name", CASES)
def test_all_forms_give_what_jax_gives(name, monkeypatch):
    loss, least = CASES[name]
    compiled, found = run(loss, "host:1")
    weights, value = jax.jit(step_of(loss))(WEIGHTS, BATCH)
    for mine, theirs in zip(found, (*weights, value), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)
    # The same without checkpoints.
    monkeypatch.setattr(jax, "checkpoint", lambda f, **options: f)
    bare = CASES[name][0] if name.startswith(("nested", "dropout", "within")) else each()
    plain, same = run(bare, "host:1")
    assert undone(plain) == 0
    if least is not None:
        assert undone(compiled) >= least
        assert arena(compiled) <= arena(plain)
        for mine, theirs in zip(found, same, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", CASES)
def test_with_less_memory_the_bits_are_the_same(name):
    loss, least = CASES[name]
    ample, expected = run(loss, "host:1")
    # Nothing of a loop is computed again to save memory.
    limit = arena(ample) * (100 if least is None else 75) // 100 // 64 * 64
    for fit_memory in ("auto", "never"):
        try:
            _, found = run(loss, f"host:1@{limit}", fit_memory=fit_memory)
        except baechi.CompileError as error:
            # As it is written it may need as much.
            assert fit_memory == "never" and "memories" in str(error)
            continue
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
