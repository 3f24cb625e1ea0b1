# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that do not fit their memories and compute values again, compared with `jax.jit`
and, bit for bit, with themselves without a limit."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402

DRAWN = np.random.default_rng(0)
# Cuts would be shorter (test_priced_cuts.py).
QUICK = {"costs": "roofline", "budget": "0", "fit_memory": "whole"}


def drawn(*shape):
    return DRAWN.standard_normal(shape).astype(np.float32) / 8


def deep(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


def residual(weights, x):
    for w in weights:
        x = x + jax.nn.gelu(x @ w)
    return (x**2).mean()


def dropout(weights, x):
    key = jax.random.key(3)
    for number, w in enumerate(weights):
        x = jnp.tanh(x @ w)
        x = jnp.where(jax.random.bernoulli(jax.random.fold_in(key, number), 0.9, x.shape), x, 0)
    return (x**2).mean()


def scanned(weights, x):
    def cell(state, element):
        state = jnp.tanh(state @ weights[0] + element)
        return state, jnp.tanh(state @ weights[1])

    return (jax.lax.scan(cell, x[:64], jnp.stack([x[:64]] * 4))[1] ** 2).mean()


def step_of(loss):
    def step(weights, x):
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return [w - 0.1 * g for w, g in zip(weights, gradients)], value

    return step


WEIGHTS = [drawn(64, 64) for _ in range(8)]
BATCH = drawn(512, 64)


def run(loss, machine, donate=(), **options):
    compiled = baechi.jit(
        step_of(loss), machine=machine, donate_argnums=donate, **{**QUICK, **options}
    )
    weights = WEIGHTS
    losses = []
    for _ in range(3):
        weights, value = compiled(weights, BATCH)
        losses.append(np.asarray(value))
    return compiled, losses, [np.asarray(w) for w in weights]


@pytest.mark.parametrize("loss", [deep, residual, dropout])
@pytest.mark.parametrize("donate", [(), (0,)])
def test_less_memory_the_same_bits(loss, donate):
    _, losses, weights = run(loss, "host:1", donate)
    limit = 1100 * 1024
    with pytest.raises(baechi.CompileError, match="memories"):
        run(loss, f"host:1@{limit}", donate, fit_memory="never")
    compiled, again, updated = run(loss, f"host:1@{limit}", donate)
    assert np.array_equal(losses, again)
    assert all(np.array_equal(a, b) for a, b in zip(weights, updated))
    assert "memory     the step as it is does not fit" in compiled.report()
    expected = jax.jit(step_of(loss))(WEIGHTS, BATCH)[1]
    np.testing.assert_allclose(again[0], expected, rtol=1e-5)


@pytest.mark.parametrize("loss", [deep, residual])
def test_a_plan_that_fits_is_not_refused(loss):
    compiled, losses, _ = run(loss, "host:1", (0,))
    held = compiled.memory()["host0"].arena_bytes
    again, same, _ = run(loss, f"host:1@{held}", (0,), fit_memory="never")
    assert again.memory()["host0"].arena_bytes <= held
    assert np.array_equal(losses, same)
    assert again.least_memory().impossible_bytes < held


def test_less_memory_is_never_predicted_faster():
    predicted = []
    for kib in (1400, 1250, 1100, 1000, 900):
        compiled, _, _ = run(residual, f"host:1@{kib * 1024}", (0,))
        (ns,) = re.findall(r"step +predicted ([\d.]+) ms", compiled.report())
        predicted.append(float(ns))
    assert predicted == sorted(predicted)
    assert predicted[-1] > predicted[0]


def test_two_devices_that_are_too_small_together():
    _, losses, weights = run(deep, "host:1")
    compiled, again, updated = run(deep, f"host:2@{640 * 1024}")
    assert np.array_equal(losses, again)
    assert all(np.array_equal(a, b) for a, b in zip(weights, updated))


def test_what_runs_again_is_explained():
    compiled, _, _ = run(deep, f"host:1@{900 * 1024}")
    again = [name for name in compiled.placement if name.startswith("tanh")]
    said = compiled.explain("tanh*")
    assert "does not fit" in compiled.report()
    assert again and all(f"'{name}' is on host0" in said for name in again)


def test_what_fits_is_not_rewritten():
    compiled, _, _ = run(deep, "host:1")
    assert "does not fit" not in compiled.report()


def test_a_refusal_names_the_operator():
    with pytest.raises(baechi.CompileError, match="by itself needs .* of arguments"):
        run(deep, f"host:1@{400 * 1024}")


def test_an_unknown_word():
    with pytest.raises(ValueError, match="fit_memory is 'always': known: auto, whole, never"):
        baechi.jit(step_of(deep), fit_memory="always")


def checkpointed(weights, x):
    def layer(w, x):
        return jnp.tanh(jnp.exp(x @ w))

    for w in weights:
        x = jax.checkpoint(layer)(w, x)
    return (x**2).mean()


def plain(weights, x):
    for w in weights:
        x = jnp.tanh(jnp.exp(x @ w))
    return (x**2).mean()


def arena(compiled):
    return compiled.memory()["host0"].arena_bytes


def told_of_checkpoints(compiled):
    found = re.search(
        r"jax.checkpoint: (\d+) operators: kept (\d+)[^,]*, undone (\d+)", compiled.report()
    )
    return tuple(int(number) for number in found.groups())


def test_checkpoints_are_undone_where_there_is_memory():
    compiled, losses, weights = run(checkpointed, "host:1")
    all_of_them, kept, undone = told_of_checkpoints(compiled)
    assert (kept, undone) == (0, all_of_them) and undone >= len(WEIGHTS)
    without, same, as_well = run(plain, "host:1")
    assert "jax.checkpoint" not in without.report()
    assert arena(compiled) == arena(without)
    for a, b in zip([*losses, *weights], [*same, *as_well], strict=True):
        np.testing.assert_array_equal(a, b)
    expected = jax.jit(step_of(checkpointed))(WEIGHTS, BATCH)[1]
    np.testing.assert_allclose(losses[0], expected, rtol=1e-5)


@pytest.mark.parametrize("fit_memory", ["whole", "never"])
def test_with_less_memory_the_shorter_step_says_whether_checkpoints_are_kept(fit_memory):
    ample, losses, weights = run(checkpointed, "host:1")
    limit = arena(ample) * 7 // 10 // 64 * 64
    compiled, tight, updated = run(checkpointed, f"host:1@{limit}", fit_memory=fit_memory)
    all_of_them, kept, undone = told_of_checkpoints(compiled)
    assert kept + undone == all_of_them
    if fit_memory == "never":  # with some of them it fits
        assert kept > 0
    elif undone:
        assert "runs again" in compiled.report() or "run again" in compiled.report()
    for a, b in zip([*losses, *weights], [*tight, *updated], strict=True):
        np.testing.assert_array_equal(a, b)


def test_as_few_checkpoints_are_kept_as_make_it_fit():
    ample, losses, weights = run(checkpointed, "host:1")
    shares, some = [], False
    for percent in (95, 90, 85, 80, 75):
        limit = arena(ample) * percent // 100 // 64 * 64
        try:
            compiled, tight, updated = run(checkpointed, f"host:1@{limit}", fit_memory="never")
        except baechi.CompileError:
            break
        all_of_them, kept, undone = told_of_checkpoints(compiled)
        assert kept + undone == all_of_them
        shares.append(kept / all_of_them)
        if 0 < kept < all_of_them:
            some = True
            assert re.search(r"; of \d+ regions \d+ (is|are) kept", compiled.report())
        for a, b in zip([*losses, *weights], [*tight, *updated], strict=True):
            np.testing.assert_array_equal(a, b)
    assert some, shares


@pytest.mark.parametrize(
    "given, told",
    [
        ({"memory": "much"}, "memory is 'much'"),
        ({"memory": "40MiB", "machine": "host:2@1GiB"}, "each device of KIND:N has it"),
        ({"spill_to": "ram:1GiB"}, "spill_to is 'ram:1GiB'"),
        ({"spill_to": "pool:1GiB", "machine": "machine.json"}, "a pool is added to KIND:N"),
        ({"memory": "40Foo"}, "'40Foo' is not a size"),
        ({"spill_to": "pool:big"}, "'pool:big' is no memory beside devices"),
        ({"machine": "hots:2"}, "unknown kind 'hots'"),
    ],
)
def test_a_memory_that_is_none_is_a_value_error(given, told):
    with pytest.raises(ValueError, match=told):
        baechi.jit(lambda x: x * 2, **{"machine": "host:2", **given})(jnp.ones(4))
