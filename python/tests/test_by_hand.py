# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""benchmarks/splitting/halves.py cuts batches in the models' source: the same step in JAX."""

import importlib.util
import pathlib

import jax
import numpy as np
import pytest

from baechi import init
from baechi.models import configuration

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("halves", ROOT / "benchmarks/splitting/halves.py")
assert spec and spec.loader
halves = importlib.util.module_from_spec(spec)
spec.loader.exec_module(halves)


@pytest.mark.parametrize("model", ["mlp", "lstm"])
def test_mean_of_halves_is_the_whole_step(model):
    # Of two rows those of a half would be broadcast where a state has one.
    whole, args, _ = configuration.training_step(model, "tiny", {"batch": 4})
    cut, _, _ = halves.step(model, batch=4)
    args = jax.tree.map(lambda x: x.value(), args, is_leaf=lambda x: isinstance(x, init.Init))
    expected, found = (jax.jit(each)(*args) for each in (whole, cut))
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-6)
    for e, f in zip(jax.tree.leaves(expected.params), jax.tree.leaves(found.params), strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-3, atol=1e-5)


def test_a_batch_that_has_no_equal_parts_is_told():
    with pytest.raises(ValueError, match="a batch of 5 has no 2 equal parts"):
        halves.step("mlp", batch=5)


def test_statistics_of_a_batch_are_not_cut():
    with pytest.raises(ValueError, match="resnet: not a mean over parts"):
        halves.step("resnet")
