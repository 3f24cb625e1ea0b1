# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of unordered loops go in tiles whose rows stay in the cache."""

import numpy as np
import pytest

import baechi

RANK = 64  # 1,024 rows in a tile


def factorise(key, star, users, items):
    i, j = key
    user, item = users[i], items[j]
    wrong = star - (user * item).sum()
    users[i] = user + 0.125 * wrong * item
    items[j] = item + 0.125 * wrong * user


def data(users, items, count=4000):
    random = np.random.default_rng(3)
    pairs = random.permutation(users * items)[:count]
    keys = pairs // items, pairs % items
    entries = baechi.Entries(keys, random.normal(size=count).astype(np.float32), (users, items))
    arrays = [random.integers(-1, 2, (n, RANK)).astype(np.float32) / 64 for n in (users, items)]
    return entries, arrays


def tiles_in_turn(order, entries, width):
    """The tiles that follow each other in an order."""
    tiles = [tuple(int(column[n]) // width for column in entries.keys) for n in order]
    return [tile for n, tile in enumerate(tiles) if n == 0 or tiles[n - 1] != tile]


def test_a_block_goes_tile_by_tile():
    entries, arrays = data(3 * 1024, 2 * 1024)
    loop = baechi.foreach(factorise, workers=1)
    order = loop.order(entries, *arrays)
    assert sorted(order) == list(range(len(entries)))
    turns = tiles_in_turn(order, entries, 1024)
    assert turns == [(i, j) for i in range(3) for j in range(2)]
    for tile in turns:  # as they were given
        mine = [n for n in order if tuple(c[n] // 1024 for c in entries.keys) == tile]
        assert mine == sorted(mine)


def test_rows_that_fit_leave_the_order():
    entries, arrays = data(1024, 512)
    loop = baechi.foreach(factorise, workers=1)
    assert list(loop.order(entries, *arrays)) == list(range(len(entries)))


def test_ordered_loops_keep_theirs():
    entries, arrays = data(3 * 1024, 2 * 1024)
    loop = baechi.foreach(factorise, workers=1, ordered=True)
    order = loop.order(entries, *arrays)
    assert list(order) == list(np.lexsort(entries.keys[::-1]))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("devices", [1, 2])
def test_results_are_of_the_serial_run_in_that_order(workers, devices):
    entries, arrays = data(3 * 1024, 2 * 1024)
    loop = baechi.foreach(factorise, machine=f"host:{devices}", workers=workers)
    users, items = loop(entries, *arrays)
    expected = [array.copy() for array in arrays]
    for n in loop.order(entries, *arrays):
        i, j = (int(column[n]) for column in entries.keys)
        user, item = expected[0][i].copy(), expected[1][j].copy()
        wrong = np.float32(entries.leaves[0][n]) - (user * item).sum(dtype=np.float32)
        expected[0][i] = user + np.float32(0.125) * wrong * item
        expected[1][j] = item + np.float32(0.125) * wrong * user
    np.testing.assert_allclose(users, expected[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(items, expected[1], rtol=0, atol=1e-6)
    simulated = loop.simulate(entries, *arrays)
    assert all((a == b).all() for a, b in zip((users, items), simulated, strict=True))
