# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces, computing again and waiting in a pool are compared: the shortest step is taken, with the
bits of the step without a limit, and less memory is no faster."""

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


def run(machine, **options):
    compiled = baechi.jit(train, donate_argnums=0, machine=machine, **{**QUICK, **options})
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
