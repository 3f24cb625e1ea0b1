# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of `baechi.jit` share."""

from __future__ import annotations

import jax
import numpy as np

import baechi


def jit(step, **options):
    return baechi.jit(step, **{"costs": "roofline", "budget": "0", **options})


def assert_close(actual, expected):
    assert jax.tree.structure(jax.tree.map(np.asarray, actual)) == jax.tree.structure(
        jax.tree.map(np.asarray, expected)
    )
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype and a.shape == e.shape
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-5, atol=1e-6)


def loss(params, x, y):
    hidden = jax.numpy.tanh(x @ params["in"] + params["bias"])
    return ((hidden @ params["out"] - y) ** 2).mean()


def train(params, batch, rate=0.1):
    """One step of gradient descent."""
    value, gradients = jax.value_and_grad(loss)(params, *batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value


def starting_values():
    """Of `train`: parameters, and a batch."""
    keys = jax.random.split(jax.random.key(0), 4)
    params = {
        "in": 0.3 * jax.random.normal(keys[0], (16, 32)),
        "bias": jax.numpy.zeros(32),
        "out": 0.3 * jax.random.normal(keys[1], (32, 4)),
    }
    return params, (jax.random.normal(keys[2], (8, 16)), jax.random.normal(keys[3], (8, 4)))
