# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What slices of loops' bodies say that blocks read, beside what the entries have."""

from __future__ import annotations

import numpy as np
import pytest

import baechi
from baechi.loops import applications, data
from baechi.loops.prefetch import Link

LINK = Link(latency=100e-6, bytes_per_second=125e6)


def logistic(count=2000, features=5000, workers=4, exchanges=5):
    samples, _ = data.samples(count, features)
    loop = baechi.foreach(
        applications.regress, workers=workers, buffered=["weights"], exchanges=exchanges
    )
    return loop, samples, np.zeros(features, np.float32)


def test_blocks_read_what_the_slice_says():
    loop, samples, weights = logistic()
    found = loop.prefetch(samples, weights)
    layout = loop.layout(samples, weights)
    assert len(found.blocks) == len(layout.blocks) == 20
    assert (len(found.ahead), len(found.late)) == (16, 0)
    numbers = samples.leaves[0]
    for one in found.blocks:
        mine = layout.entries[one.block.worker][one.block.first : one.block.end]
        np.testing.assert_array_equal(one.rows["weights"][:, 0], np.unique(numbers[mine]))
        assert (one.reads, one.one_by_one) == (16 * len(mine), 0)


def test_reads_that_depend_on_reads_are_fetched_one_by_one():
    def follow(key, x, table, rows):
        row = rows[table[x]]
        table[x] = table[x] + row.sum().astype(np.int32)

    values = np.arange(40, dtype=np.int32) % 7
    entries = baechi.Entries((np.arange(40),), values, (40,))
    loop = baechi.foreach(follow, workers=2, buffered=["table"])
    table, rows = np.arange(7, dtype=np.int32), np.ones((9, 3), np.float32)
    found = loop.prefetch(entries, table, rows)
    assert {access.array for access in found.ahead} == {0}
    assert [access.array for access in found.late] == [1]
    assert [one.one_by_one for one in found.blocks] == [20, 20]
    assert all(one.one_by_one_bytes == 20 * 12 for one in found.blocks)
    np.testing.assert_array_equal(found.blocks[0].rows["table"][:, 0], np.arange(7))
    assert found.in_bulk(LINK, cached=True) > 20 * 2 * LINK.latency


def test_positions_of_expressions_and_slices_of_rows():
    def pick(key, x, table, out):
        i = key
        out[i] = table[(3 * i.value + x) % 11, 1:3].sum()

    entries = baechi.Entries((np.arange(30),), np.full(30, 5, np.int32), (30,))
    loop = baechi.foreach(pick, workers=3)
    found = loop.prefetch(entries, np.ones((11, 4), np.float32), np.zeros(30, np.float32))
    for one in found.blocks:
        mine = np.arange(one.block.worker * 10, one.block.worker * 10 + 10)
        np.testing.assert_array_equal(
            one.rows["table"], [[row, 1] for row in np.unique((3 * mine + 5) % 11)]
        )
        assert one.row_bytes["table"] == 8


def test_seconds_of_a_link():
    """By hand: two workers of one clock, so the slower one's."""
    loop, samples, weights = logistic(count=100, features=50, workers=2, exchanges=1)
    found = loop.prefetch(samples, weights)
    rows = max(len(one.rows["weights"]) for one in found.blocks)
    each = 2 * LINK.latency + 8 / LINK.bytes_per_second
    assert found.element_by_element(LINK) == pytest.approx(50 * 16 * each)
    cached = 2 * LINK.latency + 4 * rows / LINK.bytes_per_second
    assert found.in_bulk(LINK, cached=True) == pytest.approx(cached)
    assert found.in_bulk(LINK) > cached + 4 * rows / LINK.bytes_per_second


def test_in_bulk_is_much_less():
    loop, samples, weights = logistic()
    found = loop.prefetch(samples, weights)
    assert found.element_by_element(LINK) > 500 * found.in_bulk(LINK, cached=True)
