# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps whose tensors wait in a pool, compared with `jax.jit` and, bit for bit, with
themselves without a limit."""

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


def mlp(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


def attention(weights, x):
    for q, k, v, o in zip(*[iter(weights)] * 4):
        scores = jax.nn.softmax((x @ q) @ (x @ k).T / 8)
        x = x + (scores @ (x @ v)) @ o
    return (x**2).mean()


def recurrent(weights, x):
    state = jnp.zeros((32, 64), jnp.float32)
    cell = state
    for part in x.reshape(4, 32, 64):
        gates = [part @ weights[i] + state @ weights[i + 4] for i in range(4)]
        cell = jax.nn.sigmoid(gates[0]) * cell + jax.nn.sigmoid(gates[1]) * jnp.tanh(gates[2])
        state = jax.nn.sigmoid(gates[3]) * jnp.tanh(cell)
    return (state**2).mean()


def convolutions(weights, x):
    image = x.reshape(2, 64, 64, 1)
    for w in weights[:4]:
        kernel = w[:3, :3].reshape(3, 3, 1, 1)
        image = jnp.tanh(
            jax.lax.conv_general_dilated(
                image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        )
    return (image**2).mean() + sum((w**2).mean() for w in weights)


def adam(loss):
    def step(weights, means, squares, x):
        value, gradients = jax.value_and_grad(loss)(weights, x)
        means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients)]
        squares = [0.99 * s + 0.01 * g * g for s, g in zip(squares, gradients)]
        weights = [w - 0.01 * m / (jnp.sqrt(s) + 1e-4) for w, m, s in zip(weights, means, squares)]
        return weights, means, squares, value

    return step


WEIGHTS = [drawn(64, 64) for _ in range(8)]
ZEROS = [np.zeros((64, 64), np.float32) for _ in range(8)]
BATCH = drawn(128, 64)


def run(loss, machine, donate=(0, 1, 2), **options):
    compiled = baechi.jit(
        adam(loss), machine=machine, donate_argnums=donate, **{**QUICK, **options}
    )
    state = WEIGHTS, ZEROS, ZEROS
    losses = []
    for _ in range(3):
        *state, value = compiled(*state, BATCH)
        losses.append(np.asarray(value))
    return compiled, losses, [np.asarray(w) for w in jax.tree.leaves(state)]


def arena(compiled, device="host0"):
    return compiled.memory()[device].arena_bytes


@pytest.mark.parametrize("loss", [mlp, attention, recurrent, convolutions])
@pytest.mark.parametrize("donate", [(), (0, 1, 2)])
def test_tensors_wait_and_the_bits_are_the_same(loss, donate):
    free, losses, state = run(loss, "host:1", donate)
    expected = jax.jit(adam(loss))(WEIGHTS, ZEROS, ZEROS, BATCH)[-1]
    np.testing.assert_allclose(losses[0], expected, rtol=1e-5)
    spilled = 0
    for percent in (80, 60, 45):
        limit = arena(free) * percent // 100 // 64 * 64
        compiled, again, updated = run(loss, f"host:1@{limit}+pool:64MiB", donate)
        assert np.array_equal(losses, again)
        assert all(np.array_equal(a, b) for a, b in zip(state, updated))
        assert arena(compiled) <= limit
        spilled += "in 'pool0'" in compiled.report()
    assert spilled > 0


def test_a_step_runs_in_less_than_its_parameters():
    free, losses, state = run(mlp, "host:1")
    resident = free.memory()["host0"].resident_bytes
    compiled, again, updated = run(mlp, "host:1", memory=resident // 2, spill_to="pool:64MiB")
    assert np.array_equal(losses, again)
    assert all(np.array_equal(a, b) for a, b in zip(state, updated))
    assert arena(compiled) <= resident // 2
    assert "of arguments live in 'pool0'" in compiled.report()


def test_less_memory_is_never_predicted_faster_with_a_pool():
    free, _, _ = run(mlp, "host:1")
    predicted = []
    for percent in range(90, 30, -10):
        compiled, _, _ = run(mlp, f"host:1@{arena(free) * percent // 100}+pool:64MiB")
        found = re.search(r"step +predicted ([\d.]+) (ms|us|µs)", compiled.report())
        predicted.append(float(found[1]) * (1 if found[2] == "ms" else 1e-3))
    assert predicted == sorted(predicted)
    assert predicted[-1] > predicted[0]


def test_tensors_wait_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("BAECHI_DISK", str(tmp_path))
    free, losses, state = run(mlp, "host:1")
    limit = arena(free) * 45 // 100 // 64 * 64
    compiled, again, updated = run(mlp, "host:1", memory=f"{limit}B", spill_to="disk:64MiB")
    assert np.array_equal(losses, again)
    assert all(np.array_equal(a, b) for a, b in zip(state, updated))
    assert arena(compiled) <= limit
    assert "in 'disk0'" in compiled.report()
    assert arena(compiled, "disk0") > 0
    assert not list(tmp_path.iterdir())


def test_what_a_pool_has_no_room_for_waits_on_disk():
    free, losses, state = run(mlp, "host:1")
    limit = arena(free) * 30 // 100 // 64 * 64
    compiled, again, updated = run(mlp, f"host:1@{limit}+pool:64KiB+disk:64MiB")
    assert np.array_equal(losses, again)
    assert all(np.array_equal(a, b) for a, b in zip(state, updated))
    assert arena(compiled, "pool0") == 0
    assert arena(compiled, "disk0") > 0


def test_a_folder_that_is_none_is_an_error_and_another_is_not(tmp_path, monkeypatch):
    free, losses, _ = run(mlp, "host:1")
    machine = f"host:1@{arena(free) * 45 // 100 // 64 * 64}+disk:64MiB"
    monkeypatch.setenv("BAECHI_DISK", str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match="disk0.*cannot make a file .* BAECHI_DISK names"):
        run(mlp, machine)
    monkeypatch.setenv("BAECHI_DISK", str(tmp_path))
    assert np.array_equal(run(mlp, machine)[1], losses)


def test_what_fits_moves_nothing():
    compiled, _, _ = run(mlp, "host:1+pool:64MiB")
    assert arena(compiled, "pool0") == 0
    assert "does not fit" not in compiled.report()


@pytest.mark.parametrize("loss", [mlp, attention])
def test_several_devices_share_a_pool(loss):
    free, losses, state = run(loss, "host:1")
    expected = jax.jit(adam(loss))(WEIGHTS, ZEROS, ZEROS, BATCH)[-1]
    np.testing.assert_allclose(losses[0], expected, rtol=1e-5)
    spilled = both = 0
    for percent in (40, 25):
        limit = arena(free) * percent // 100 // 64 * 64
        compiled, again, updated = run(loss, f"host:2@{limit}+pool:64MiB")
        assert np.array_equal(losses, again)
        assert all(np.array_equal(a, b) for a, b in zip(state, updated))
        assert max(arena(compiled, "host0"), arena(compiled, "host1")) <= limit
        spilled += "in 'pool0'" in compiled.report()
        both += min(arena(compiled, "host0"), arena(compiled, "host1")) > 0
    assert spilled > 0
    assert both > 0


def test_refusals_say_what_is_missing():
    begin = "^error: the step does not fit 'host0', which has .* with 'pool0' beside it: "
    with pytest.raises(baechi.CompileError, match=begin + "'.*' by itself needs .* of operands"):
        run(mlp, "host:1@20KiB+pool:64MiB")
    pool = "'pool0' has 64.00 KiB, what would wait there is"
    with pytest.raises(baechi.CompileError, match=begin + pool):
        run(mlp, "host:1@200KiB+pool:64KiB")


def test_a_loop_is_told_to_be_written_out():
    def step(w, xs, unroll):
        def cell(h, x):
            h = jnp.tanh(x @ w + h @ w)
            return h, h

        return jax.lax.scan(cell, jnp.zeros((32, 64)), xs, unroll=unroll)[1].sum()

    def compiled(machine, unroll):
        made = baechi.jit(
            lambda w, xs: jax.grad(step)(w, xs, unroll), machine=machine, unroll="never", **QUICK
        )
        return made, np.asarray(made(WEIGHTS[0], np.stack([BATCH[:32]] * 12)))

    free, expected = compiled("host:1", True)
    machine = f"host:1@{arena(free) * 75 // 100}+pool:64MiB"
    words = "has a loop, .* written out .*--unroll=always"
    with pytest.raises(baechi.CompileError, match=words):
        compiled(machine, 1)
    fits, found = compiled(machine, True)
    assert "in 'pool0'" in fits.report()
    assert np.array_equal(found, expected)


def test_wrong_words():
    with pytest.raises(ValueError, match="give 'pool:SIZE'"):
        baechi.jit(adam(mlp), spill_to="disk")
    with pytest.raises(ValueError, match="another machine names its own"):
        baechi.jit(adam(mlp), machine="machine.json", spill_to="pool:1GiB")
    with pytest.raises(ValueError, match="give what each device has"):
        baechi.jit(adam(mlp), memory="much")
    with pytest.raises(ValueError, match="says itself what its devices have"):
        baechi.jit(adam(mlp), machine="host:1@1MiB", memory="2MiB")
    with pytest.raises(baechi.CompileError, match="is no memory beside devices"):
        run(mlp, "host:1+pool")
    with pytest.raises(baechi.CompileError, match="stands behind another memory"):
        run(mlp, "host:1+disk:1GiB+pool:1GiB")
