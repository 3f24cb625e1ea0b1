# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as users write them, each beside the same words on NumPy's arrays, one entry after the
other; and what else bodies may say."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from loop_examples import Values

STEP, SHRINK = np.float32(0.05), np.float32(0.01)
COUNT, USERS, ITEMS, RANK = 300, 30, 20, 4


def serially(body, entries, arrays, order):
    """The new values and the arrays after NumPy's run."""
    arrays = [np.array(array) for array in arrays]
    views = [Values(array) for array in arrays]
    leaves = [leaf.copy() for leaf in entries.leaves]
    for n in order:
        keys = tuple(int(column[n]) for column in entries.keys)
        value = jax.tree.unflatten(entries.tree, [leaf[n] for leaf in leaves]) if leaves else None
        new = body(keys if len(keys) > 1 else keys[0], value, *views)
        for leaf, one in zip(leaves, jax.tree.leaves(new), strict=False):
            leaf[n] = one
    return leaves, arrays


def programs(xp):
    """By name a body that takes its functions from `xp`."""

    def factorise_with_biases(key, rating, mean, of_users, of_items, users, items):
        i, j = key
        error = rating - (mean + of_users[i] + of_items[j] + users[i] @ items[j])
        of_users[i] += STEP * (error - SHRINK * of_users[i])
        of_items[j] += STEP * (error - SHRINK * of_items[j])
        u = users[i]
        users[i] += STEP * (error * items[j] - SHRINK * u)
        items[j] += STEP * (error * u - SHRINK * items[j])

    def factorise_by_adagrad(key, rating, users, items, user_sums, item_sums):
        i, j = key
        u, v = users[i], items[j]
        error = rating - u @ v
        user_sums[i] += (error * v) ** 2
        item_sums[j] += (error * u) ** 2
        users[i] += STEP * error * v / xp.sqrt(user_sums[i] + np.float32(1e-6))
        items[j] += STEP * error * u / xp.sqrt(item_sums[j] + np.float32(1e-6))

    def regress(n, sample, weights, bias):
        numbers, values, label = sample
        margin = weights[numbers] @ values + bias[0]
        step = STEP * (label - 1 / (1 + xp.exp(-margin)))
        weights[numbers] += step * values
        bias[0] += step

    def sample_topics(key, token, documents, words, totals):
        d, w = key
        topic, drawn = token
        documents[d, topic] -= 1
        words[w, topic] -= 1
        totals[topic] -= 1
        smooth = np.float32(0.1)
        chances = (documents[d] + smooth) * (words[w] + smooth) / (totals + smooth * ITEMS)
        sums = xp.cumsum(chances)
        topic = (sums < drawn * sums[-1]).sum().astype(np.int32)
        documents[d, topic] += 1
        words[w, topic] += 1
        totals[topic] += 1
        return topic, drawn

    def rank_pages(key, _, old, degrees, new):
        source, target = key
        new[target] += np.float32(0.85) * old[source] / degrees[source]

    def cluster(n, point, centres, sums, counts):
        nearest = xp.argmin(((centres - point) ** 2).sum(axis=1))
        sums[nearest] += point
        counts[nearest] += 1

    def factorise_tensor(key, value, a, b, c):
        i, j, k = key
        x, y, z = a[i], b[j], c[k]
        error = value - (x * y * z).sum()
        a[i] += STEP * error * y * z
        b[j] += STEP * error * x * z
        c[k] += STEP * error * x * y

    def count_bins(n, sample, histograms):
        bins, gradient, node = sample
        for feature in range(4):
            histograms[node, feature, bins[feature]] += gradient

    def relax(key, source, u):
        i, j = key
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        u[i, j] = np.float32(0.25) * (around - source)

    def embed(key, others, inner, outer):
        centre, word = key
        v = inner[centre]
        change = 0
        for at, label in [(word, 1), *((others[n], 0) for n in range(3))]:
            step = STEP * (label - 1 / (1 + xp.exp(-(v @ outer[at]))))
            change = change + step * outer[at]
            outer[at] += step * v
        inner[centre] += change

    return {name: body for name, body in locals().items() if name != "xp"}


def case(name):
    """Entries, arrays and options of a program."""
    random = np.random.default_rng(len(name))

    def floats(*shape):
        return np.float32(0.3) * random.standard_normal(shape, np.float32)

    pairs = random.integers(0, USERS, COUNT), random.integers(0, ITEMS, COUNT)
    bounds = USERS, ITEMS
    numbers = (np.arange(COUNT),)
    factors = [floats(USERS, RANK), floats(ITEMS, RANK)]
    if name == "factorise_with_biases":
        biases = [np.float32(0.1), np.zeros(USERS, np.float32), np.zeros(ITEMS, np.float32)]
        return baechi.Entries(pairs, floats(COUNT), bounds), [*biases, *factors], {}
    if name == "factorise_by_adagrad":
        arrays = [*factors, *map(np.zeros_like, factors)]
        return baechi.Entries(pairs, floats(COUNT), bounds), arrays, {}
    if name == "regress":
        given = random.integers(-50, 50, (COUNT, 6)), floats(COUNT, 6), floats(COUNT) > 0
        entries = baechi.Entries(numbers, (*given[:2], given[2].astype(np.float32)))
        arrays = [np.zeros(50, np.float32), np.zeros(1, np.float32)]
        return entries, arrays, {"buffered": ["weights", "bias"]}
    if name == "sample_topics":
        topics = random.integers(0, 5, COUNT).astype(np.int32)
        counts = [np.zeros((size, 5), np.float32) for size in bounds]
        for of, key in zip(counts, pairs, strict=True):
            np.add.at(of, (key, topics), 1)
        entries = baechi.Entries(pairs, (topics, random.random(COUNT, np.float32)), bounds)
        return entries, [*counts, counts[0].sum(0)], {"buffered": ["totals"]}
    if name == "rank_pages":
        degrees = np.maximum(np.bincount(pairs[0], minlength=USERS), 1).astype(np.float32)
        return baechi.Entries(pairs, None, bounds), [floats(USERS), degrees, floats(ITEMS)], {}
    if name == "cluster":
        arrays = [floats(4, 3), np.zeros((4, 3), np.float32), np.zeros(4, np.int32)]
        return baechi.Entries(numbers, floats(COUNT, 3)), arrays, {"reassociate": True}
    if name == "factorise_tensor":
        entries = baechi.Entries((*pairs, random.integers(0, 9, COUNT)), floats(COUNT))
        return entries, [*factors, floats(9, RANK)], {}
    if name == "count_bins":
        bins = random.integers(0, 8, (COUNT, 4)).astype(np.uint8)
        entries = baechi.Entries(numbers, (bins, floats(COUNT), random.integers(0, 3, COUNT)))
        return entries, [np.zeros((3, 4, 8), np.float32)], {"reassociate": True}
    if name == "relax":
        grid = np.indices((14, 18)).reshape(2, -1) + 1
        return baechi.Entries(tuple(grid), floats(14 * 18)), [floats(16, 20)], {"ordered": True}
    assert name == "embed"
    others = random.integers(0, ITEMS, (COUNT, 3))
    return baechi.Entries(pairs, others, bounds), factors, {"buffered": ["outer"]}


SCHEMES = {
    "factorise_with_biases": "2D over i and j",
    "factorise_by_adagrad": "2D over i and j",
    "regress": "independent",
    "sample_topics": "2D over i and j",
    "rank_pages": "1D over j",
    "cluster": "independent with sums of 'sums' and 'counts'",
    "factorise_tensor": "3D over i, j and k",
    "count_bins": "independent with sums of 'histograms'",
    "relax": "wavefront over j and i",
    "embed": "1D over i",
}
# In these no two operations are one with a rounding less, and none is another's exp or sum.
EXACT = ("rank_pages", "cluster", "count_bins", "relax", "sample_topics")


def in_order(entries, order):
    values = jax.tree.unflatten(entries.tree, [leaf[order] for leaf in entries.leaves])
    return baechi.Entries([key[order] for key in entries.keys], values, entries.bounds)


@pytest.mark.parametrize("name", SCHEMES)
def test_is_numpys_serial_run(name):
    """In the order of the blocks, by a loop of one block."""
    entries, arrays, options = case(name)
    loop = baechi.foreach(programs(jnp)[name], workers=3, **options)
    assert loop.analyse(entries, *arrays).text == SCHEMES[name]
    order = loop.order(entries, *arrays)
    entries = in_order(entries, order)
    serial = baechi.foreach(programs(jnp)[name], workers=1, fallback="serial", machine="host:1")
    made = jax.tree.leaves(serial(entries, *arrays))
    leaves, expected = serially(programs(np)[name], entries, arrays, range(len(order)))
    written = [x for x, was in zip(expected, arrays, strict=True) if (x != was).any()]
    expected = [*leaves, *written] if name == "sample_topics" else written
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        if name in EXACT:
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SCHEMES)
def test_blocks_are_the_serial_run(name):
    """Bit for bit: on two devices, simulated, and, where nothing is seen late or summed up by
    blocks, as one block in their order."""
    entries, arrays, options = case(name)
    loop = baechi.foreach(programs(jnp)[name], machine="host:2", workers=3, **options)
    made = jax.tree.leaves(loop(entries, *arrays))
    results = [jax.tree.leaves(loop.simulate(entries, *arrays))]
    if not options or "ordered" in options:
        serial = baechi.foreach(programs(jnp)[name], workers=1, fallback="serial", machine="host:1")
        order = loop.order(entries, *arrays)
        results.append(jax.tree.leaves(serial(in_order(entries, order), *arrays)))
    for other in results:
        for one, two in zip(made, other, strict=True):
            assert one.tobytes() == two.tobytes()
