# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.foreach`: results, beside the same body on NumPy's arrays."""

from __future__ import annotations

import numpy as np
import pytest

import baechi
from loop_examples import factorise, factors, ratings, serially


class TestResults:
    @pytest.mark.parametrize("ordered", [False, True])
    def test_devices_change_no_bit(self, ordered):
        entries, arrays = ratings(), factors()
        results = []
        for machine in ("host:1", "host:2", "host:3"):
            loop = baechi.foreach(factorise, machine=machine, workers=3, ordered=ordered)
            results.append(loop(entries, *arrays, passes=2))
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                assert a.tobytes() == b.tobytes()
        expected = arrays
        for _ in range(2):
            expected = serially(factorise, entries, expected, loop.order(entries, *arrays))
        for a, b in zip(results[0], expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_blocks_are_a_serial_run(self):
        """Bit for bit: one block, in the order of the blocks, of the same code."""
        entries, arrays = ratings(), factors()
        loop = baechi.foreach(factorise, workers=4)
        order = loop.order(entries, *arrays)
        assert sorted(order) == list(range(len(entries)))
        in_order = baechi.Entries(
            [c[order] for c in entries.keys], entries.leaves[0][order], entries.bounds
        )
        serial = baechi.foreach(factorise, machine="host:1", workers=1)
        for a, b in zip(loop(entries, *arrays), serial(in_order, *arrays), strict=True):
            assert a.tobytes() == b.tobytes()

    def test_ordered_is_serial(self):
        entries, arrays = ratings(), factors()
        loop = baechi.foreach(factorise, workers=3, ordered=True)
        assert loop.analyse(entries, *arrays).text == "wavefront over i and j"
        by_keys = np.lexsort(entries.keys[::-1])
        in_order = baechi.Entries(
            [c[by_keys] for c in entries.keys], entries.leaves[0][by_keys], entries.bounds
        )
        serial = baechi.foreach(factorise, machine="host:1", workers=1)
        for a, b in zip(loop(entries, *arrays), serial(in_order, *arrays), strict=True):
            assert a.tobytes() == b.tobytes()

    def test_lower_bounds(self):
        entries = ratings(users=(10, 70), items=(5, 35))
        arrays = factors(users=70, items=40)
        loop = baechi.foreach(factorise, workers=2)
        expected = serially(factorise, entries, arrays, loop.order(entries, *arrays))
        for a, b in zip(loop(entries, *arrays), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_integers_are_equal(self):
        def count(key, value, rows, columns, total):
            i, j = key
            rows[i] += value
            columns[j + 1] += 2 * value
            total[()] += value

        entries = ratings().with_values(np.arange(400, dtype=np.int32))
        arrays = [np.zeros(60, np.int32), np.zeros(32, np.int32), np.zeros((), np.int32)]
        loop = baechi.foreach(count, workers=2, reassociate=True)
        expected = serially(count, entries, arrays, loop.order(entries, *arrays))
        for a, b in zip(loop(entries, *arrays), expected, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_serial_by_name(self):
        def scan(i, x, y):
            y[i] = y[i - 1] + x

        entries = baechi.Entries((np.arange(1, 50),), np.ones(49, np.float32), names=["time"])
        start = np.zeros(50, np.float32)
        with pytest.raises(baechi.LoopError, match=r"y\[time - 1\] is read .*fallback='serial'"):
            baechi.foreach(scan)(entries, start)
        y = baechi.foreach(scan, fallback="serial")(entries, start)
        np.testing.assert_array_equal(y, np.arange(50, dtype=np.float32))

    def test_new_values(self):
        def label(key, state, counts):
            changed = (state + key[0]) % 3
            counts[key[0], 0] += changed
            return changed

        entries = ratings().with_values(np.arange(400, dtype=np.int32))
        values, counts = baechi.foreach(label)(entries, np.zeros((60, 2), np.int32))
        expected = (np.arange(400) + entries.keys[0]) % 3
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(
            counts[:, 0], np.bincount(entries.keys[0], expected, 60).astype(np.int32)
        )

    def test_wide_types_are_jaxs(self):
        def double(i, x, y):
            y[i] += 2 * x

        entries = baechi.Entries((np.arange(-3, 3),), np.arange(6.0))
        y = baechi.foreach(double, workers=2)
        with pytest.raises(baechi.LoopError, match=r"y\[i\] is added to .* from -3 to 2"):
            y(entries, np.zeros(6))
        shifted = baechi.Entries((np.arange(6),), np.arange(6.0))
        made = y(shifted, np.zeros(6))
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made, 2 * np.arange(6))

    def test_random_positions(self):
        """Integers, so that each order of sums is the same; all kinds of positions."""
        random = np.random.default_rng(5)
        for factor, offset, first in ((1, 2, -2), (2, 0, 3), (-1, 40, 4)):

            def update(key, value, rows, table, other, factor=factor, offset=offset):
                i, j = key
                seen = table[0] + other[j, 1:3].sum()
                rows[factor * i + offset] += value + seen
                table[j + 1 : j + 3] = (value + i) % 5

            columns = random.integers(first, first + 9, 80), random.integers(0, 7, 80)
            entries = baechi.Entries(columns, random.integers(0, 9, 80).astype(np.int32))
            arrays = [random.integers(0, 9, s).astype(np.int32) for s in ((60, 2), (12,), (7, 3))]
            loop = baechi.foreach(
                lambda key, value, rows, table, other: update(key, value, rows, table, other),
                workers=2,
                fallback="serial",
            )
            order = loop.order(entries, *arrays)
            expected = serially(update, entries, arrays, order)
            for a, b in zip(loop(entries, *arrays), expected[:2], strict=True):
                np.testing.assert_array_equal(a, b)

    def test_buffers(self):
        def regress(key, feature, weights):
            weights[feature] += 1

        features = np.random.default_rng(3).integers(0, 8, 100).astype(np.int32)
        entries = baechi.Entries((np.arange(100),), features)
        loop = baechi.foreach(regress, buffered=["weights"])
        weights = loop(entries, np.zeros(8, np.float32))
        np.testing.assert_array_equal(weights, np.bincount(features, minlength=8))

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"ordered": True},
            {"buffered": ["users", "items"]},
            {"buffered": ["items"], "exchanges": 3},
        ],
    )
    def test_simulated(self, options):
        entries, arrays = ratings(), factors()
        loop = baechi.foreach(factorise, workers=3, **options)
        for a, b in zip(
            loop(entries, *arrays, passes=2),
            loop.simulate(entries, *arrays, passes=2),
            strict=True,
        ):
            assert a.tobytes() == b.tobytes()

    def test_simulated_sums_and_new_values(self):
        def count(key, value, rows, total):
            rows[key[0]] += value
            total[()] += value
            return value / 3

        arrays = np.zeros(60, np.float32), np.zeros((), np.float32)
        loop = baechi.foreach(count, workers=3, reassociate=True)
        for a, b in zip(
            loop(ratings(), *arrays, passes=2),
            loop.simulate(ratings(), *arrays, passes=2),
            strict=True,
        ):
            assert a.tobytes() == b.tobytes()

    def test_simulated_positions_outside(self):
        def add(i, feature, weights):
            weights[feature] += 1

        entries = baechi.Entries((np.arange(9),), np.array([0] * 7 + [5, 0]))
        with pytest.raises(baechi.LoopError, match=r"at 5 by entry 7 \(i = 7\)"):
            baechi.foreach(add, buffered=["weights"]).simulate(entries, np.zeros(4, np.int32))


class TestSums:
    """Of integers, which any order of entries leaves the same: no word is needed."""

    @pytest.mark.parametrize("ordered", [False, True])
    def test_of_several_statements(self, ordered):
        """At keys, at places of the data, at the same place twice; sums go beyond 32 bits."""
        random = np.random.default_rng(0)
        values = {
            "places": random.integers(0, 4, (300, 2)).astype(np.uint8),
            "x": random.integers(-(2**31), 2**31, 300).astype(np.int32),
        }

        def count(key, value, table, total):
            places, x = value["places"], value["x"]
            table[key] += x
            table[places[0]] += x
            table[places[1]] -= 3 * x + places[0]
            total[()] += x
            total[()] += places[1]

        entries = baechi.Entries((random.integers(0, 5, 300),), values, bounds=(5,))
        arrays = np.arange(5, dtype=np.int32), np.zeros((), np.int32)
        loop = baechi.foreach(count, machine="host:2", workers=3, ordered=ordered)
        assert loop.analyse(entries, *arrays).text == "independent with sums of 'table' and 'total'"
        expected = [array.copy() for array in arrays]
        for key, places, x in zip(entries.keys[0], *entries.leaves, strict=True):
            with np.errstate(over="ignore"):
                count(key, {"places": places, "x": x}, *expected)
        for ran in (loop, loop.simulate):
            for a, b in zip(ran(entries, *arrays), expected, strict=True):
                np.testing.assert_array_equal(a, b)

    def test_of_floats_are_asked_for(self):
        def count(key, pair, counts):
            counts[pair[0]] += 1
            counts[pair[1]] += 1

        pairs = np.random.default_rng(0).integers(0, 4, (50, 2)).astype(np.int32)
        entries = baechi.Entries((np.arange(50),), pairs)
        with pytest.raises(baechi.LoopError, match=r"counts\[\?\] is added to .*reassociate"):
            baechi.foreach(count)(entries, np.zeros(4, np.float32))
        for options in ({"reassociate": True}, {"fallback": "serial"}):
            found = baechi.foreach(count, **options)(entries, np.zeros(4, np.float32))
            np.testing.assert_array_equal(found, np.bincount(pairs.ravel(), minlength=4))

    def test_what_depends_on_a_sum_is_none(self):
        def seen(i, x, y, z):
            y[x] += 1
            z[i] = y[x]

        def doubled(i, x, y, z):
            y[x] += y[x]

        def other_place(i, x, y, z):
            y[x] = y[2] + 1

        def set_before(i, x, y, z):
            y[x] = 3
            y[x] += i.value

        def a_position(i, x, y, z):
            y[y[x] % 4] += 1
            z[i] = x

        entries = baechi.Entries((np.arange(9),), np.arange(9) % 4)
        arrays = np.arange(4), np.arange(9)
        for body in (seen, doubled, other_place, set_before, a_position):
            assert baechi.foreach(body).analyse(entries, *arrays).scheme == "serial"


class TestReadsAfterWrites:
    """An entry's reads see what it has written itself."""

    @pytest.mark.parametrize("rows", [False, True])
    @pytest.mark.parametrize("seed", range(6))
    def test_random_places(self, seed, rows):
        random = np.random.default_rng(seed)
        chosen = random.integers(0, 6, (4, 2))
        keys = random.integers(0, 4, 60), random.integers(0, 4, 60)
        entries = baechi.Entries(
            keys, random.integers(-5, 5, (60, 2)).astype(np.int32), bounds=(4, 4)
        )
        array = random.integers(0, 1000, (5, 3) if rows else 5).astype(np.int32)

        def body(key, p, counts):
            i, j = key
            places = [i, j, i + 1, 2, p[0], p[1]]
            total = np.int32(0)
            for n, (read, written) in enumerate(chosen):
                total = total * 3 + counts[places[read]]
                counts[places[written]] = total % 1000 + n

        (expected,) = serially(body, entries, [array], range(60))
        found = baechi.foreach(body, fallback="serial")(entries, array)
        np.testing.assert_array_equal(found, expected)

    def test_the_same_place_in_other_words(self):
        def body(key, value, x):
            x[key : key + 1] = x[key : key + 1] + value
            x[key] += x[key]

        entries = baechi.Entries((np.arange(6),), np.arange(6, dtype=np.float32))
        found = baechi.foreach(body)(entries, np.ones(6, np.float32))
        np.testing.assert_array_equal(found, 2 * (1 + np.arange(6)))
