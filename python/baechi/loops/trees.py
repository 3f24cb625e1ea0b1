# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradient boosted trees: the loop over samples is `grow`, splits are chosen between its passes.

    loop = baechi.foreach(trees.grow)
    forest, predictions = trees.boost(loop, samples, targets)

Sources: boosting, Friedman, Annals of Statistics 2001; gains and values of leaves, XGBoost (Chen
and Guestrin, KDD 2016, section 2.2); histograms, LightGBM (Ke et al., NeurIPS 2017); gradients as
integers, whose sums are the same in any order, Shi et al., NeurIPS 2022.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from baechi.loops.entries import Entries

BINS = 32


def grow(i: Any, bins: Any, nodes: Any, gradients: Any, splits: Any, sums: Any) -> None:
    """A level of a tree. A sample goes to a child of its node, the second where its bin of the
    split's feature is above the split's, and adds its gradient and 1 to the child's sums, by
    feature and bin."""
    split = splits[nodes[i]]
    node = 2 * nodes[i] + (bins[split[0]] > split[1])
    nodes[i] = node
    for feature in range(bins.shape[0]):
        sums[feature, node * BINS + bins[feature]] += gradients[i]


@dataclasses.dataclass(frozen=True)
class Tree:
    """splits: for each level, by node (feature, last bin of the first child). values: of leaves."""

    splits: list[np.ndarray]
    values: np.ndarray

    def predict(self, bins: np.ndarray) -> np.ndarray:
        node = np.zeros(len(bins), np.int32)
        for splits in self.splits:
            feature, last = splits[node].T
            node = 2 * node + (bins[np.arange(len(bins)), feature] > last)
        return self.values[node]


def boost(
    loop: Callable[..., Any],
    samples: Entries,
    targets: np.ndarray,
    trees: int = 20,
    depth: int = 4,
    rate: float = 0.3,
    ridge: float = 1.0,
) -> tuple[list[Tree], np.ndarray]:
    """Trees for squared errors, and what they predict. loop: `grow` over the samples."""
    (bins,) = samples.leaves
    predictions = np.zeros(len(samples), np.float32)
    forest = []
    for _ in range(trees):
        gradients, scale = as_integers(predictions - targets)
        nodes = np.zeros(len(samples), np.int32)
        none = np.array([0, BINS], np.int32)  # all go to the first child
        splits = np.tile(none, (1 << depth, 1))
        levels: list[np.ndarray] = []
        for level in range(depth + 1):
            sums = np.zeros((bins.shape[1], BINS << depth, 2), np.int32)
            nodes, sums = loop(samples, nodes, gradients, splits, sums)
            by_node = sums.reshape(bins.shape[1], 1 << depth, BINS, 2)
            if level < depth:
                splits = best_splits(by_node, scale, ridge)
                levels.append(splits)
        gradient, count = by_node[0].sum(1).T
        values = (-rate * gradient / scale / (count + ridge)).astype(np.float32)
        forest.append(Tree(levels, values))
        predictions = predictions + values[nodes]
    return forest, predictions


def as_integers(gradients: np.ndarray) -> tuple[np.ndarray, float]:
    """Multiples of 1 / scale, of which no sum is beyond 32 bits, each with a 1 to be counted."""
    scale = 2.0**30 / len(gradients) / max(float(np.abs(gradients).max()), 1e-30)
    numbers = np.rint(gradients.astype(np.float64) * scale).astype(np.int32)
    return np.stack([numbers, np.ones_like(numbers)], 1), scale


def best_splits(sums: np.ndarray, scale: float, ridge: float) -> np.ndarray:
    """By node (feature, last bin of the first child); sums: by feature, node, bin."""
    left = np.cumsum(sums, axis=2, dtype=np.int64)[:, :, :-1]
    all_of = sums.sum(2, dtype=np.int64)[:, :, None]

    def score(part: np.ndarray) -> np.ndarray:
        return (part[..., 0] / scale) ** 2 / (part[..., 1] + ridge)

    gains = score(left) + score(all_of - left) - score(all_of)
    features, nodes, bins = gains.shape
    by_node = gains.transpose(1, 0, 2).reshape(nodes, features * bins)
    best = by_node.argmax(1)
    splits = np.stack([best // bins, best % bins], 1)
    splits[by_node[np.arange(nodes), best] <= 0] = 0, BINS
    return splits.astype(np.int32)
