# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradient boosted trees, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import baechi
from baechi.loops import data, trees


def grown(samples, nodes, gradients, splits, sums):
    """What `trees.grow` does, of whole columns."""
    (bins,) = samples.leaves
    feature, last = splits[nodes].T
    nodes = 2 * nodes + (bins[np.arange(len(bins)), feature] > last)
    sums = sums.copy()
    for f in range(bins.shape[1]):
        np.add.at(sums[f], nodes * trees.BINS + bins[:, f], gradients)
    return nodes.astype(np.int32), sums


def best_by_trying(bins, gradients, ridge):
    """(feature, last bin) of the greatest gain, by summing up both sides of each split."""
    best, found = 0.0, None
    total = gradients.sum() ** 2 / (len(gradients) + ridge)
    for feature in range(bins.shape[1]):
        for last in range(trees.BINS - 1):
            left = bins[:, feature] <= last
            parts = gradients[left], gradients[~left]
            gain = sum(part.sum() ** 2 / (len(part) + ridge) for part in parts) - total
            if gain > best + 1e-9:
                best, found = gain, (feature, last)
    return found


def same(some, others):
    for a, b in zip(some, others, strict=True):
        for x, y in zip(a.splits, b.splits, strict=True):
            np.testing.assert_array_equal(x, y)
        assert a.values.tobytes() == b.values.tobytes()


@pytest.mark.parametrize(("machine", "workers"), [("host:1", 1), ("host:2", 3), ("host:3", 4)])
def test_are_numpys(machine, workers):
    """On any number of devices and of workers, to the bit: sums are of integers."""
    samples, targets = data.binned(3000, features=4, planted=3)
    loop = baechi.foreach(trees.grow, machine=machine, workers=workers)
    forest, predictions = trees.boost(loop, samples, targets, trees=4, depth=3)
    expected, also = trees.boost(grown, samples, targets, trees=4, depth=3)
    same(forest, expected)
    assert predictions.tobytes() == also.tobytes()
    start = trees.as_integers(targets)[0], np.zeros((4, 256, 2), np.int32)
    arrays = np.zeros(3000, np.int32), start[0], np.zeros((8, 2), np.int32), start[1]
    assert loop.analyse(samples, *arrays).text == "independent with sums of 'sums'"


def test_splits_are_the_best():
    samples, targets = data.binned(2000, features=5, planted=2)
    (tree,), _ = trees.boost(grown, samples, targets, trees=1, depth=3)
    bins = samples.leaves[0]
    gradients = -targets.astype(np.float64)
    nodes = np.zeros(len(bins), int)
    for splits in tree.splits:
        for node in np.unique(nodes):
            mine = nodes == node
            assert tuple(splits[node]) == best_by_trying(bins[mine], gradients[mine], 1.0)
        feature, last = splits[nodes].T
        nodes = 2 * nodes + (bins[np.arange(len(bins)), feature] > last)


def test_planted_trees_are_learned():
    samples, targets = data.binned(8000, features=6, planted=4)
    forest, predictions = trees.boost(grown, samples, targets, trees=60, depth=3)
    bins = samples.leaves[0]
    np.testing.assert_allclose(sum(tree.predict(bins) for tree in forest), predictions, atol=1e-4)
    assert np.sqrt(np.mean((targets - predictions) ** 2)) < 0.3 * targets.std()
