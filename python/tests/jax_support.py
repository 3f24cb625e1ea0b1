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
