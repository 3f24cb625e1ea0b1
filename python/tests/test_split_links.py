# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps in pieces whose devices share no memory (docs/splitting.md, over links): small sums are
computed for each piece, and steps equal those of `jax.jit`."""

import json

import numpy as np
import pytest

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

import baechi

QUICK = {"costs": "roofline", "budget": "0"}


def normalised(params, x):
    """Layers with the statistics of the whole batch."""
    for weights in params:
        x = x @ weights
        mean = x.mean(0)
        variance = ((x - mean) ** 2).mean(0)
        x = jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-4))
    return x


def train(params, x, y):
    loss, gradients = jax.value_and_grad(lambda p: ((normalised(p, x) - y) ** 2).mean())(params)
    norm = jnp.sqrt(sum((g**2).sum() for g in gradients))
    return [p - 0.1 * g / jnp.maximum(norm, 1) for p, g in zip(params, gradients)], loss


def on_links(devices, latency_ns, folder):
    """The file of a machine of hosts that send each other everything."""
    machine = {
        "format": "baechi-machine",
        "version": 1,
        "devices": [
            {"name": f"host{i}", "kind": "host", "memory": 1 << 30} for i in range(devices)
        ],
        "link_model": "duplex",
        "link_default": {"latency_ns": latency_ns, "bytes_per_us": 20000},
    }
    (folder / "machine.json").write_text(json.dumps(machine))
    return str(folder / "machine.json")


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_small_sums_are_computed_for_each_piece(devices, tmp_path):
    machine = on_links(devices, 1000, tmp_path)
    rng = np.random.default_rng(0)
    params = [(rng.normal(size=(192, 192)) / 12).astype(np.float32) for _ in range(3)]
    x, y = (rng.normal(size=(6144, 192)).astype(np.float32) for _ in range(2))
    step = baechi.jit(train, machine=machine, splits="any", donate_argnums=0, **QUICK)
    ours, theirs = list(params), list(params)
    for _ in range(3):
        ours, loss = step(ours, x, y)
        theirs, expected = jax.jit(train)(theirs, x, y)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for mine, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(mine), right, rtol=1e-4, atol=1e-5)
    # Of fewer, kernels have the names of what their sums are fused with.
    assert devices < 4 or any(".sum.piece" in name for name in step.placement), step.report()
    pieces = {device for name, device in step.placement.items() if ".piece" in name}
    assert len(pieces) == devices, step.report()


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_means_and_variances_are_one_message(devices, tmp_path):
    """Of values that are large beside what they differ by, in pieces of unlike sizes."""
    machine = on_links(devices, 1000, tmp_path)
    rng = np.random.default_rng(2)
    x = (1000 + rng.normal(size=(4097, 64)) * np.arange(1, 65)).astype(np.float32)
    x += np.linspace(0, 50, 4097, dtype=np.float32)[:, None]  # pieces' means differ

    def statistics(x):
        mean = x.mean(0)
        variance = ((x - mean) ** 2).mean(0)
        return (x - mean) * jax.lax.rsqrt(variance), variance

    step = baechi.jit(statistics, machine=machine, splits="any", split={"x": (0, devices)}, **QUICK)
    scaled, variance = (np.asarray(each) for each in step(x))
    exact = x.astype(np.float64)
    right = ((exact - exact.mean(0)) ** 2).mean(0)
    np.testing.assert_allclose(variance, right, rtol=2e-5)
    np.testing.assert_allclose(scaled, (exact - exact.mean(0)) / np.sqrt(right), atol=2e-3)
    theirs = np.asarray(jax.jit(statistics)(x)[1])
    np.testing.assert_allclose(variance, theirs, rtol=2e-5)
    same = (
        baechi.jit(statistics, machine=each, splits="canonical:3", **QUICK)
        for each in ("host:1", machine)
    )
    np.testing.assert_array_equal(*(np.asarray(each(x)[1]) for each in same))


@pytest.mark.parametrize("devices", [2, 3])
def test_infinite_sums_stay_infinite(devices, tmp_path):
    """Of a piece or of all, where JAX's are: not NaN."""
    x = np.random.default_rng(3).normal(size=(4097, 8)).astype(np.float32)
    x[1, 1], x[4000, 2], x[7, 3] = np.inf, -np.inf, np.nan
    x[:2000, 4], x[:, 5], x[::2, 6] = 1e36, 1e37, -1e37

    def statistics(x):
        mean = x.mean(0)
        return mean, ((x - mean) ** 2).mean(0), x - mean

    machine = on_links(devices, 1000, tmp_path)
    step = baechi.jit(statistics, machine=machine, splits="any", split={"x": (0, devices)}, **QUICK)
    expected = jax.jit(statistics)(x)
    assert np.isinf(expected[0]).sum() == 5 and np.isinf(expected[1]).sum() == 3
    for ours, theirs in zip(step(x), expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-5, atol=1e-6)
    assert len({device for name, device in step.placement.items() if ".piece" in name}) == devices


def test_layers_that_gain_are_in_pieces_and_others_whole(tmp_path):
    """A wide layer, and narrow ones whose statistics take longer than they do."""
    machine = on_links(2, 200_000, tmp_path)
    rng = np.random.default_rng(1)
    sizes = [2048, 8, 8, 8, 8]
    params = [
        (rng.normal(size=(inputs, outputs)) / np.sqrt(inputs)).astype(np.float32)
        for inputs, outputs in zip(sizes, sizes[1:], strict=False)
    ]
    x = rng.normal(size=(16384, 2048)).astype(np.float32)
    step = baechi.jit(normalised, machine=machine, splits="any", **QUICK)
    np.testing.assert_allclose(
        np.asarray(step(params, x)), jax.jit(normalised)(params, x), rtol=1e-3, atol=1e-4
    )
    pieces = {device for name, device in step.placement.items() if ".piece" in name}
    assert len(pieces) == 2, step.report()
    assert "1 operation cut along 1 class of dimensions" in step.report()


def test_what_runs_at_once_stays_whole_beside_pieces(tmp_path):
    """Two chains, a device each, and a product after them: pieces of the chains' layers would save
    time alone, and here only exchange their features."""

    def chains(params, head, a, b):
        for left, right in params:
            a, b = jnp.tanh(a @ left), jnp.tanh(b @ right)
        return jnp.concatenate([a, b], 1) @ head

    machine = on_links(2, 150_000, tmp_path)
    rng = np.random.default_rng(4)

    def weights(*shape):
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = [(weights(1024, 1024), weights(1024, 1024)) for _ in range(6)]
    inputs = params, weights(2048, 8192), weights(1, 1024), weights(1, 1024)
    step = baechi.jit(chains, machine=machine, splits="any", **QUICK)
    np.testing.assert_allclose(np.asarray(step(*inputs)), jax.jit(chains)(*inputs), atol=1e-5)
    assert "cut along 1 class of dimensions" in step.report(), step.report()
    assert "dimension 1 of head: 2 pieces of 4096" in step.report()


def test_biases_of_all_time_steps_are_joined_once(tmp_path):
    """Their gradients, summed up over the batch and then over a dimension of one element."""

    def loss(params, x):
        state = jnp.zeros_like(x[0])
        for step in x:
            state = jnp.tanh(step @ params["w"] + state @ params["u"] + params["b"])
        return (state**2).mean()

    def recurrent(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return {name: params[name] - 0.1 * gradients[name] for name in params}, value

    rng = np.random.default_rng(5)
    params = {
        "w": (rng.normal(size=(64, 64)) / 8).astype(np.float32),
        "u": (rng.normal(size=(64, 64)) / 8).astype(np.float32),
        "b": rng.normal(size=64).astype(np.float32),
    }
    x = rng.normal(size=(4, 4096, 64)).astype(np.float32)
    linked, alone = (
        baechi.jit(recurrent, machine=each, splits="canonical:2", split={"x": (1, 2)}, **QUICK)
        for each in (on_links(2, 1000, tmp_path), "host:1")
    )
    results = (jax.tree.leaves(step(params, x)) for step in (linked, alone, jax.jit(recurrent)))
    for mine, same, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(same))
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-4, atol=1e-6)
