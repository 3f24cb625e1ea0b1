# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of loops over the data of `baechi.loops.data`, and what tells how well they do.

    loop = baechi.foreach(applications.topics, buffered=["totals"])

Sources: AdaGrad, Duchi et al., JMLR 2011; collapsed Gibbs sampling of LDA, Griffiths and Steyvers,
PNAS 2004; random numbers, Marsaglia, "Xorshift RNGs", 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from baechi.loops.entries import Entries

STEP = np.float32(0.02)
ADAGRAD_STEP = np.float32(0.08)  # Orion's
ALPHA = BETA = np.float32(0.1)
DAMPING = np.float32(0.85)


def factorisation(step: float) -> Callable[..., None]:
    """Matrix factorisation by stochastic gradient descent."""

    def factorise(key: Any, rating: Any, users: Any, items: Any) -> None:
        i, j = key
        u, v = users[i], items[j]
        error = rating - u @ v
        users[i] += np.float32(step) * error * v
        items[j] += np.float32(step) * error * u

    return factorise


factorise = factorisation(0.02)


def factorise_adagrad(
    key: Any, rating: Any, users: Any, items: Any, user_sums: Any, item_sums: Any
) -> None:
    """The same, with AdaGrad's steps: each number's shrink with the squares of its gradients."""
    i, j = key
    u, v = users[i], items[j]
    error = rating - u @ v
    for array, at, gradient, sums in (
        (users, i, error * v, user_sums),
        (items, j, error * u, item_sums),
    ):
        sums[at] += gradient * gradient
        array[at] += ADAGRAD_STEP * gradient / jnp.sqrt(sums[at] + 1e-6)


def factorise_tensor(key: Any, value: Any, a: Any, b: Any, c: Any) -> None:
    """CP factorisation of a tensor of three dimensions."""
    i, j, k = key
    x, y, z = a[i], b[j], c[k]
    step = STEP * (value - (x * y * z).sum())
    a[i] += step * y * z
    b[j] += step * x * z
    c[k] += step * x * y


def topics(key: Any, token: Any, documents: Any, words: Any, totals: Any) -> Any:
    """LDA: a token's topic given all others', from counts of float32 (exact to 2^24)."""
    d, w = key
    old, state = token["topic"], token["state"]
    state ^= state << np.uint32(13)
    state ^= state >> np.uint32(17)
    state ^= state << np.uint32(5)
    numbers = jnp.arange(totals.shape[0])
    gone = (numbers == old).astype(jnp.float32)
    in_document, of_word, of_all = documents[d] - gone, words[w] - gone, totals[:] - gone
    smooth = BETA * np.float32(words.shape[0])
    chances = (in_document + ALPHA) * (of_word + BETA) / (of_all + smooth)
    sums = jnp.cumsum(chances)
    drawn = sums[-1] * (state >> np.uint32(8)).astype(jnp.float32) * np.float32(2**-24)
    new = jnp.minimum((sums <= drawn).sum(), totals.shape[0] - 1).astype(jnp.int32)
    come = (numbers == new).astype(jnp.float32)
    documents[d] = in_document + come
    words[w] = of_word + come
    totals[:] = of_all + come
    return {"topic": new, "state": state}


def regress(key: Any, sample: Any, weights: Any) -> None:
    """Sparse logistic regression. Weights are at positions that data tell: buffer them."""
    numbers, values, label = sample
    seen = [weights[numbers[n]] for n in range(numbers.shape[0])]
    margin = sum(value * weight for value, weight in zip(values, seen, strict=True))
    step = np.float32(0.05) * (label - 1 / (1 + jnp.exp(-margin)))
    for n, weight in enumerate(seen):
        weights[numbers[n]] = weight + step * values[n]


def rank_pages(key: Any, share: Any, old: Any, new: Any) -> None:
    """A pass over the edges is a step of PageRank, from ranks `old` to `new`, which begins with
    (1 - DAMPING) / vertices."""
    source, target = key
    new[target] += DAMPING * share * old[source]


def factors(entries: Entries, rank: int, seed: int = 1) -> list[np.ndarray]:
    """Where factorisations begin: N(0, 0.1) for each key."""
    random = np.random.default_rng(seed)
    sizes = [end for _, end in entries.bounds]
    return [np.float32(0.1) * random.standard_normal((n, rank), np.float32) for n in sizes]


def error(entries: Entries, *factors: np.ndarray) -> float:
    """The root mean squared error of factors."""
    total = 0.0
    for first in range(0, len(entries), 1 << 20):
        part = slice(first, first + (1 << 20))
        product = factors[0][entries.keys[0][part]]
        for each, column in zip(factors[1:], entries.keys[1:], strict=True):
            product = product * each[column[part]]
        missed = (entries.leaves[0][part] - product.sum(1)).astype(np.float64)
        total += float(missed @ missed)
    return float(np.sqrt(total / len(entries)))


def counts(entries: Entries, number: int) -> list[np.ndarray]:
    """What `topics` begins with: topics by document, by word and in all."""
    topic = entries.leaves[1]  # of state, topic
    made = []
    for column, (_, end) in zip(entries.keys, entries.bounds, strict=True):
        flat = np.bincount(column.astype(np.int64) * number + topic, minlength=end * number)
        made.append(flat.reshape(end, number).astype(np.float32))
    return [*made, made[0].sum(0)]


def likelihood(entries: Entries, documents: np.ndarray, words: np.ndarray) -> float:
    """Of a token, the mean logarithm."""
    topic_of = (documents + ALPHA) / (documents + ALPHA).sum(1, keepdims=True)
    word_of = (words + BETA) / (words + BETA).sum(0)
    total = 0.0
    for first in range(0, len(entries), 1 << 18):
        part = slice(first, first + (1 << 18))
        chance = (topic_of[entries.keys[0][part]] * word_of[entries.keys[1][part]]).sum(1)
        total += float(np.log(chance.astype(np.float64)).sum())
    return total / len(entries)
