# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradient boosted trees on two devices: a loop over samples makes each level's histograms, NumPy
chooses the splits (docs/loops.md; baechi.loops.trees has more of it)."""

import numpy as np

import baechi
from baechi.loops import data

BINS, DEPTH, RATE = 32, 3, 0.3


@baechi.foreach(machine="host:2", workers=2)
def grow(i, bins, nodes, gradients, splits, sums):
    split = splits[nodes[i]]
    node = 2 * nodes[i] + (bins[split[0]] > split[1])
    nodes[i] = node
    for feature in range(bins.shape[0]):
        sums[feature, node * BINS + bins[feature]] += gradients[i]


def choose(sums):
    """By node (feature, last bin of the first child): the greatest gain in squared error."""
    left = np.cumsum(sums, axis=2)[:, :, :-1]
    total = sums.sum(2)[:, :, None]
    parts = [p[..., 0] ** 2 / (p[..., 1] + 1) for p in (left, total - left)]
    gains = (parts[0] + parts[1]).transpose(1, 0, 2).reshape(sums.shape[1], -1)
    return np.stack(np.divmod(gains.argmax(1), BINS - 1), 1).astype(np.int32)


samples, targets = data.binned(20_000, features=6, planted=4)
predictions = np.zeros_like(targets)
shape = 6, BINS << DEPTH, 2
for tree in range(20):
    # Of integers, whose sums are the same in any order, on any number of devices.
    scale = 2**30 / len(targets) / np.abs(predictions - targets).max()
    errors = np.rint((predictions - targets) * scale)
    gradients = np.stack([errors, np.ones_like(errors)], 1).astype(np.int32)
    nodes = np.zeros(len(targets), np.int32)
    splits = np.tile(np.array([0, BINS], np.int32), (1 << DEPTH, 1))  # all go to the first child
    for _ in range(DEPTH + 1):
        nodes, sums = grow(samples, nodes, gradients, splits, np.zeros(shape, np.int32))
        by_node = sums.reshape(6, 1 << DEPTH, BINS, 2) / [scale, 1]
        splits = choose(by_node)
    gradient, count = by_node[0].sum(1).T
    predictions -= (RATE * gradient / (count + 1)).astype(np.float32)[nodes]
    if tree % 5 == 4:
        error = np.sqrt(np.mean((targets - predictions) ** 2)) / targets.std()
        print(f"{tree + 1} trees: error {error:.3f} of the targets' deviation")
