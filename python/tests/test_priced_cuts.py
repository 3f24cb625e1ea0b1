# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces, computing again and waiting in a pool are compared: the shortest step is taken, with the
bits of the step without a limit, and less memory is no faster."""

import json
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402

DRAWN = np.random.default_rng(5)
QUICK = {"costs": "roofline", "budget": "0", "verbose": False}
WEIGHTS = [(DRAWN.standard_normal((64, 64)) / 8).astype(np.float32) for _ in range(4)]
BATCH = DRAWN.standard_normal((1024, 64)).astype(np.float32)
# Of two steps the one that is this much shorter is taken, whatever else is said for the other.
CLEARLY = 1.02


def train(weights, x):
    def loss(weights):
        y = x
        for w in weights:
            y = jnp.tanh(y @ w)
        return (y**2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return [w - 0.1 * g for w, g in zip(weights, gradients)], value


def train_all(weights, x):
    """Every layer has a sum of its own, which pieces add up in another order."""

    def loss(weights):
        y, total = x, 0
        for w in weights:
            y = jnp.tanh(y @ w)
            total += (y**2).mean()
        return total

    value, gradients = jax.value_and_grad(loss)(weights)
    return [w - 0.1 * g for w, g in zip(weights, gradients)], value


def run(machine, step=train, **options):
    compiled = baechi.jit(step, donate_argnums=0, machine=machine, **{**QUICK, **options})
    weights = WEIGHTS
    for _ in range(2):
        weights, value = compiled(weights, BATCH)
    results = [np.asarray(leaf) for leaf in (*weights, value)]
    report = compiled.report()
    return report, results, float(re.search(r"step +predicted ([\d.]+) ms", report)[1])


@pytest.fixture(scope="module")
def ample():
    return run("host:1")


def test_pieces_are_taken_where_they_are_shorter(ample):
    _, expected, ample_ms = ample
    again, _, whole_ms = run("host:1@1536KiB", fit_memory="whole")
    assert "run again" in again or "runs again" in again
    report, results, pieces_ms = run("host:1@1536KiB")
    assert "whole, it fits and takes" in report and "cut, it is predicted to take" in report
    assert ample_ms <= pieces_ms < whole_ms / CLEARLY
    for mine, theirs in zip(results, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("pool", ["", "+pool:64MiB"])
def test_less_memory_is_never_faster_with_cuts(ample, pool):
    longest = 0
    for kib in (2048, 1792, 1536, 1280, 1088):
        try:
            _, results, ms = run(f"host:1@{kib}KiB{pool}")
        except baechi.CompileError:
            assert not pool
            break
        assert ms * CLEARLY >= longest
        longest = max(longest, ms)
        for mine, theirs in zip(results, ample[1], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert longest > ample[2]


def test_what_would_be_shorter_with_other_bits_is_told():
    _, expected, ample_ms = run("host:1", train_all)
    report, results, whole_ms = run("host:1@1280KiB", train_all)
    assert "run again" in report
    told = re.search(
        r"cut by .*micro:\d+.* it fits, but the pieces' result .* differs .*"
        r"; it is predicted to take ([\d.]+) ms instead of ([\d.]+) ms",
        report,
    )
    assert ample_ms <= float(told[1]) < float(told[2]) / CLEARLY
    assert float(told[2]) == whole_ms
    for mine, theirs in zip(results, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_runs_again_may_wait_too(ample, tmp_path):
    """A pool so slow that less time is lost where it takes less."""
    links = {"latency_ns": 2000, "bytes_per_us": 600}
    devices = [
        {"name": "host0", "kind": "host", "memory": 1280 << 10},
        {"name": "ram", "kind": "pool", "memory": 1 << 30},
    ]
    machine = {"format": "baechi-machine", "version": 1, "devices": devices}
    machine |= {"link_default": links, "link_model": "duplex"}
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(machine))
    _, _, again_ms = run("host:1@1280KiB", fit_memory="whole")
    report, results, both_ms = run(str(file), fit_memory="whole")
    assert "run again" in report and re.search("waits? in 'ram'", report)
    assert both_ms < again_ms
    for mine, theirs in zip(results, ample[1], strict=True):
        np.testing.assert_array_equal(mine, theirs)
