# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse data with known answers, from a seed: what loops are tried with where data sets are not
at hand. The same seed gives the same numbers.

Popularities are power laws as in MovieLens (users (i + 10)^-0.6, items (i + 10)^-0.9) and text
(Zipf, 1.07); the graph is R-MAT's (Chakrabarti et al., SDM 2004).
"""

from __future__ import annotations

import numpy as np

from baechi.loops.entries import Entries

Floats = np.ndarray


def _draw(
    random: np.random.Generator, size: int, power: float, count: int, order: np.ndarray
) -> np.ndarray:
    """Numbers below `size` of popularity about (i + 10)^power, the power law of real numbers
    rounded down, then as `order` has them."""
    low, high = 10.0 ** (power + 1), (size + 10.0) ** (power + 1)
    drawn = ((low + (high - low) * random.random(count)) ** (1 / (power + 1)) - 10).astype(int)
    return order[np.clip(drawn, 0, size - 1)]


def _distinct(
    random: np.random.Generator, count: int, keys: list[tuple[int, float]]
) -> list[np.ndarray]:
    """Columns of distinct keys, in random order."""
    sizes = [size for size, _ in keys]
    if count > 0.5 * float(np.prod([float(size) for size in sizes])):
        raise ValueError(f"{count} entries are more than half of all {sizes}: ask for fewer")
    orders = [random.permutation(size).astype(np.int32) for size in sizes]
    found = np.empty(0, np.int64)
    while len(found) < count:
        missing = count - len(found)
        wanted = int(1.3 * missing) if len(found) == 0 else 3 * missing + 100
        drawn = np.zeros(wanted, np.int64)
        for (size, power), order in zip(keys, orders, strict=True):
            drawn = drawn * size + _draw(random, size, power, wanted, order)
        found = np.concatenate([found, drawn])
        found.sort()
        found = found[np.concatenate([[True], found[1:] != found[:-1]])]
    flat = random.permutation(found)[:count]
    return [column.astype(np.int32) for column in np.unravel_index(flat, sizes)]


def ratings(
    count: int, users: int, items: int, rank: int = 16, noise: float = 0.3, seed: int = 0
) -> Entries:
    """(user, item) -> stars of planted factors; the noise is the least error there is."""
    return _of_factors(count, [(users, -0.6), (items, -0.9)], rank, noise, seed)


def tensor(
    count: int, extents: tuple[int, int, int], rank: int = 8, noise: float = 0.1, seed: int = 0
) -> Entries:
    """(i, j, k) -> a sum of products of planted factors, with noise."""
    return _of_factors(count, [(extent, -0.5) for extent in extents], rank, noise, seed)


def _of_factors(
    count: int, keys: list[tuple[int, float]], rank: int, noise: float, seed: int
) -> Entries:
    random = np.random.default_rng(seed)
    columns = _distinct(random, count, keys)
    scale = rank ** (-0.5 / len(keys))  # the sum's variance is 1
    planted = [random.standard_normal((size, rank), np.float32) * scale for size, _ in keys]
    values = noise * random.standard_normal(count, np.float32)
    for first in range(0, count, 1 << 20):  # as much at once as caches and memory like
        part = slice(first, first + (1 << 20))
        product = planted[0][columns[0][part]]
        for factors, column in zip(planted[1:], columns[1:], strict=True):
            product *= factors[column[part]]
        values[part] += product.sum(1)
    return Entries(columns, values, [size for size, _ in keys])


def tokens(
    documents: int, words: int, topics: int, length: float = 100, seed: int = 0
) -> tuple[Entries, Floats]:
    """(document, word) -> (topic at random, state of random numbers), and the planted topics:
    a row of words' chances each. Documents have log-normal lengths."""
    random = np.random.default_rng(seed)
    base = 1.0 / (np.arange(words) + 2.7) ** 1.07
    planted = random.dirichlet(0.01 * words * base / base.sum() + 1e-4, topics)
    sums = np.cumsum(planted, axis=1)
    lengths = np.maximum(random.lognormal(np.log(length) - 0.125, 0.5, documents).astype(int), 1)
    document = np.repeat(np.arange(documents, dtype=np.int32), lengths)
    mixed = np.cumsum(random.dirichlet([0.1] * topics, documents), axis=1)
    chosen = (random.random(len(document))[:, None] > mixed[document]).sum(1)
    word = np.empty(len(document), np.int32)
    for topic in range(topics):
        mine = np.flatnonzero(chosen == topic)
        word[mine] = np.searchsorted(sums[topic], random.random(len(mine)) * sums[topic, -1])
    order = random.permutation(len(word))
    values = {
        "topic": random.integers(0, topics, len(word)).astype(np.int32),
        "state": random.integers(1, 2**32, len(word), dtype=np.uint32),
    }
    word = random.permutation(words).astype(np.int32)[np.minimum(word, words - 1)]
    keys = document[order], word[order]
    return Entries(keys, values, (documents, words), ["document", "word"]), planted


def samples(
    count: int, features: int, nonzeros: int = 16, flips: float = 0.1, seed: int = 0
) -> tuple[Entries, Floats]:
    """sample -> its features' numbers, their values and a label of 0 or 1, of which `flips` are
    wrong (half, where the weights say nothing); and the planted weights, three of ten not 0."""
    random = np.random.default_rng(seed)
    order = random.permutation(features).astype(np.int32)
    numbers = _draw(random, features, -1.1, count * nonzeros, order).reshape(count, nonzeros)
    values = random.standard_normal((count, nonzeros), np.float32)
    weights = random.standard_normal(features, np.float32) * (random.random(features) < 0.3)
    margin = (values * weights[numbers]).sum(1)
    label = (margin > 0) ^ (random.random(count) < np.where(margin == 0, 0.5, flips))
    given = numbers.astype(np.int32), values, label.astype(np.float32)
    return Entries((np.arange(count),), given, (count,)), weights


def edges(scale: int, count: int, seed: int = 0) -> Entries:
    """(source, target) of R-MAT's graph of 2^scale vertices, a b c d = 0.57 0.19 0.19 0.05; the
    value is 1 over the source's edges."""
    random = np.random.default_rng(seed)
    source, target = np.zeros(count, np.int32), np.zeros(count, np.int32)
    for _ in range(scale):
        quarter = np.searchsorted([0.57, 0.76, 0.95], random.random(count, np.float32))
        source = 2 * source + (quarter >> 1).astype(np.int32)
        target = 2 * target + (quarter & 1).astype(np.int32)
    shuffled = random.permutation(1 << scale).astype(np.int32)
    source, target = shuffled[source], shuffled[target]
    share = 1 / np.bincount(source, minlength=1 << scale)[source].astype(np.float32)
    bounds = (1 << scale, 1 << scale)
    return Entries((source, target), share, bounds, ["source", "target"])


def binned(
    count: int, features: int, bins: int = 32, planted: int = 8, depth: int = 3, seed: int = 0
) -> tuple[Entries, Floats]:
    """sample -> the bin of each of its features, and targets: a sum of planted trees with values
    of N(0, 1) at their leaves, and noise of a tenth of its deviation."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, bins, (count, features)).astype(np.uint8)
    targets = np.zeros(count, np.float32)
    for _ in range(planted):
        node = np.zeros(count, np.int64)
        for level in range(depth):
            feature = random.integers(0, features, 1 << level)
            last = random.integers(bins // 4, bins - bins // 4, 1 << level)
            node = 2 * node + (drawn[np.arange(count), feature[node]] > last[node])
        targets += random.standard_normal(1 << depth, np.float32)[node]
    targets += np.float32(0.1) * targets.std() * random.standard_normal(count, np.float32)
    return Entries((np.arange(count),), drawn, (count,)), targets
