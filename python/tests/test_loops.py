# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.foreach`: verdicts, errors and results, beside the same body on NumPy's arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi

STEP = np.float32(0.05)


def factorise(key, rating, users, items):
    i, j = key
    u, v = users[i], items[j]
    error = rating - (u * v).sum()
    users[i] += STEP * error * v
    items[j] += STEP * error * u


def ratings(count=400, users=(0, 60), items=(0, 30), seed=0):
    random = np.random.default_rng(seed)
    columns = random.integers(*users, count), random.integers(*items, count)
    values = random.normal(size=count).astype(np.float32)
    return baechi.Entries(columns, values, bounds=(users, items))


def factors(users=60, items=30, rank=8, seed=1):
    random = np.random.default_rng(seed)
    return [random.normal(size=(n, rank)).astype(np.float32) * 0.1 for n in (users, items)]


def serially(body, entries, arrays, order):
    """The body on NumPy's arrays, one entry after the other."""
    arrays = [array.copy() for array in arrays]
    views = [Values(array) for array in arrays]
    for n in order:
        keys = tuple(int(column[n]) for column in entries.keys)
        value = entries.leaves[0][n] if entries.leaves else None
        body(keys if len(keys) > 1 else keys[0], value, *views)
    return arrays


class Values(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of NumPy's of which what is read is a value, as in a loop."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, index):
        return np.array(self._array[index])

    def __setitem__(self, index, value):
        self._array[index] = value

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        taken = [each._array.copy() if isinstance(each, Values) else each for each in inputs]
        out = options.pop("out", None)
        made = getattr(ufunc, method)(*taken, **options)
        if out is None:
            return made
        self._array[...] = made  # x += 1
        return self

    def __getattr__(self, name):
        return getattr(self._array, name)


class TestVerdicts:
    def test_factorisation(self):
        found = baechi.foreach(factorise).analyse(ratings(), *factors())
        assert found.text == "2D over i and j"
        assert any("users[i, :] is read (test_loops.py:20)" in e for e, _, _ in found.dependences)
        assert {distances for _, _, distances in found.dependences} == {"(0, >=1)", "(>=1, 0)"}

    def test_edges_of_a_graph(self):
        def rank(key, _, old, new):
            source, target = key
            new[target] += old[source]

        loop = baechi.foreach(rank)
        vectors = np.zeros(60, np.float32), np.zeros(30, np.float32)
        assert loop.analyse(ratings(), *vectors).text == "1D over j"

    def test_sums_are_asked_for(self):
        def squares(key, rating, users, total):
            users[key[0], 0] += rating
            total[()] += rating * rating

        arrays = factors()[0], np.zeros((), np.float32)
        with pytest.raises(baechi.LoopError, match=r"total is added to .*reassociate"):
            baechi.foreach(squares)(ratings(), *arrays)
        found = baechi.foreach(squares, reassociate=True).analyse(ratings(), *arrays)
        assert found.text == "1D over i with sums of 'total'"
        # Those of integers are the same in any order.
        counts = np.zeros((), np.int32)

        def count(key, rating, users, counts):
            users[key[0], 0] += rating
            counts[()] += 3

        loop = baechi.foreach(count, machine="host:2", workers=2)
        assert loop.analyse(ratings(), arrays[0], counts).text == "1D over i with sums of 'counts'"
        assert int(loop(ratings(), arrays[0], counts)[1]) == 3 * 400

    def test_positions_that_data_tell(self):
        def regress(key, feature, weights):
            weights[feature] = weights[feature] * 0.5

        entries = baechi.Entries((np.arange(8),), np.arange(8)[::-1].copy())
        with pytest.raises(baechi.LoopError) as raised:
            baechi.foreach(regress)(entries, np.ones(8, np.float32))
        assert "weights[?] is written (test_loops.py:" in str(raised.value)
        assert "`weights[feature]`)" in str(raised.value)
        assert "depend on data; buffer 'weights'" in str(raised.value)

    def test_keys_have_values(self):
        def clamped(i, _, x, y):
            y[i] = x[jnp.maximum(i.value - 1, 0)]

        def given(i, _, x, y):
            y[i] = x[jnp.maximum(i - 1, 0)]

        entries = baechi.Entries((np.arange(6),))
        x = np.arange(6, dtype=np.float32)
        y = baechi.foreach(clamped)(entries, x, np.zeros(6, np.float32))
        assert np.array_equal(y, x[np.maximum(np.arange(6) - 1, 0)])
        with pytest.raises(baechi.LoopError, match=r"test_loops.py:\d+: .*key's value \(i.value\)"):
            baechi.foreach(given)(entries, x, np.zeros(6, np.float32))

        def of_numpy(i, _, x, y):
            y[i] = np.float32(i)

        with pytest.raises(baechi.LoopError, match="use jnp, not np"):
            baechi.foreach(of_numpy)(entries, x, np.zeros(6, np.float32))

    def test_derived_positions(self):
        def shift(i, _, a):
            a[2 * i] = a[2 * i + 1] + 1

        entries = baechi.Entries((np.arange(10),))
        array = np.zeros(20, np.float32)
        assert baechi.foreach(shift).analyse(entries, array).text == "independent"

        def mirror(i, _, a):
            a[9 - i] = a[i]

        assert baechi.foreach(mirror).analyse(entries, array[:10]).text == "serial"


class TestErrors:
    def check(self, body, message, arrays=None, entries=None, **options):
        with pytest.raises(baechi.LoopError, match=message):
            baechi.foreach(body, **options).analyse(
                entries or ratings(), *(factors() if arrays is None else arrays)
            )

    def test_extents(self):
        message = r"users\[i, :\] is read \(test_loops.py:20\).*from 0 to 59.*has 10 elements"
        self.check(factorise, message, [f[:10] for f in factors()])

    def test_bodies(self):
        def returns_arrays(key, rating, users, items):
            return users.at[key[0]].set(0)

        self.check(returns_arrays, "changed with .at, which makes another array: write users")

        def wrong_shape(key, rating, users, items):
            users[key[0]] = jnp.ones(3)

        self.check(wrong_shape, r"has shape \(3,\), its place \(8,\)")

        def of_floats(key, rating, users, items):
            users[rating] = 0

        self.check(of_floats, "dimension 0 of 'users' is indexed with float32")

        def branches(key, rating, users, items):
            if rating > 0:
                users[key[0]] = 0

        self.check(branches, "branches on a value that is known when it runs: use jnp.where")

        def nothing(key, rating, users, items):
            users[key[0]] * 2

        with pytest.raises(baechi.LoopError, match="'nothing' writes nothing"):
            baechi.foreach(nothing)(ratings(), *factors())
        self.check(factorise, "the loop is called with entries and 1 arrays", factors()[:1])
        self.check(factorise, "buffered has 'w', and the body's arrays are", buffered=["w"])
        self.check(factorise, "ordered loop has buffered arrays", buffered=["users"], ordered=True)

    def test_entries(self):
        with pytest.raises(ValueError, match="key 'j' of entry 1 is 7, out of its bounds 0 to 4"):
            baechi.Entries(([0, 1], [0, 7]), bounds=(2, 5))
        with pytest.raises(ValueError, match="there are no entries"):
            baechi.Entries((np.zeros(0, int),))
        with pytest.raises(TypeError, match="key 'i' is of float64: keys are integers"):
            baechi.Entries(([0.5],))
        with pytest.raises(ValueError, match=r"values of shape \(3,\) are not one for each of 2"):
            baechi.Entries(([0, 1],), np.zeros(3))
        with pytest.raises(TypeError, match="a loop is over entries, not a list"):
            baechi.foreach(factorise)([1, 2], *factors())

    def test_options(self):
        with pytest.raises(ValueError, match="fallback is 'guess'"):
            baechi.foreach(factorise, fallback="guess")
        with pytest.raises(ValueError, match="loops run on host devices"):
            baechi.foreach(factorise, machine="gpu.json")


class TestInput:
    """What is given is what is computed with, or it is refused."""

    @pytest.mark.parametrize("fallback", ["refuse", "serial"])
    def test_positions_outside(self, fallback):
        def add(i, feature, weights):
            weights[feature] += 1

        buffered = ["weights"] if fallback == "refuse" else []
        loop = baechi.foreach(add, buffered=buffered, fallback=fallback)
        features = np.array([2, -1, 0, -4, 3, 3])
        made = loop(baechi.Entries((np.arange(6) + 5,), features), np.zeros(4, np.int32))
        np.testing.assert_array_equal(made, np.bincount(features % 4))
        for wrong in (4, -5, 2**31 - 1):
            features[4] = wrong
            entries = baechi.Entries((np.arange(6) + 5,), features)
            with pytest.raises(baechi.LoopError) as raised:
                loop(entries, np.zeros(4, np.int32))
            assert "of 'weights' is read at" in str(raised.value)
            assert f"at {wrong} by entry 4 (i = 9), and has 4 elements, -4 to 3" in str(
                raised.value
            )

    def test_positions_outside_of_narrow_and_wide_types(self):
        def pick(i, at, table, out):
            out[i] = table[at]

        table, out = np.arange(300, dtype=np.float32), np.zeros(2, np.float32)
        narrow = baechi.Entries((np.arange(2),), np.array([255, 3], np.uint8))
        np.testing.assert_array_equal(baechi.foreach(pick)(narrow, table, out), [255, 3])
        wide = baechi.Entries((np.arange(2),), np.array([2**32 - 1, 3], np.uint32))
        with pytest.raises(baechi.LoopError, match="'table' is read at 2147483647 by entry 0"):
            baechi.foreach(pick)(wide, table, out)

    def test_positions_of_vectors_and_beside_keys(self):
        """The first that is outside, in the order of the body."""

        def pick(i, given, table, rows, out):
            at, column = given
            out[i] = table[at].sum() + rows[i, column]
            table[at] += 1

        places, columns = np.arange(6).reshape(3, 2), np.array([0, -2, 1])
        arrays = np.ones(6, np.float32), np.ones((3, 2), np.float32), np.zeros(3, np.float32)
        loop = baechi.foreach(pick, fallback="serial")
        loop(baechi.Entries((np.arange(3),), (places, columns)), *arrays)
        places[1, 1] = 6
        with pytest.raises(baechi.LoopError, match=r"of 'table' is read at 6 by entry 1 \(i = 1\)"):
            loop(baechi.Entries((np.arange(3),), (places, columns)), *arrays)
        places[1, 1], columns[2] = -6, 2
        with pytest.raises(baechi.LoopError, match=r"1 of 'rows' is read at 2 by entry 2"):
            loop(baechi.Entries((np.arange(3),), (places, columns)), *arrays)

    def test_positions_that_become_wrong(self):
        """In the second pass."""

        def walk(i, at, table, out):
            out[i] = table[at]
            return at + 2

        loop = baechi.foreach(walk)
        entries = baechi.Entries((np.arange(3),), np.array([0, 1, 2]))
        arrays = np.arange(4, dtype=np.float32), np.zeros(3, np.float32)
        with pytest.raises(baechi.LoopError, match=r"at 4 by entry 2 \(i = 2\)"):
            loop(entries, *arrays, passes=2)
        np.testing.assert_array_equal(loop(entries, *arrays)[1], [0, 1, 2])

    def test_wide_integers(self):
        def add(i, x, y):
            y[i] += x

        entries = baechi.Entries((np.arange(2),), np.array([1, 2]))
        with pytest.raises(ValueError, match=r"values has 4294967297 at \[1\], which int32 cannot"):
            baechi.Entries((np.arange(2),), np.array([1, 2**32 + 1]))
        with pytest.raises(ValueError, match=r"'y' has 4294967297 at \[0\], .*jax_enable_x64"):
            baechi.foreach(add)(entries, np.full(2, 2**32 + 1))
        with pytest.raises(ValueError, match="key 'i' is beyond 32 bits"):
            baechi.Entries((np.array([0, 2**31]),))
        with jax.enable_x64(True):
            wide = baechi.Entries((np.arange(2),), np.array([1, 2**32 + 1]))
            made = baechi.foreach(add)(wide, np.full(2, 2**32 + 1))
        np.testing.assert_array_equal(made, np.array([2**32 + 2, 2**33 + 2]))

        def beyond(i, x, y):
            y[i] = x + 2**40

        with pytest.raises(baechi.LoopError, match=r"test_loops.py:\d+: a number is beyond the 32"):
            baechi.foreach(beyond)(entries, np.zeros(2, np.int32))

    def test_passes(self):
        def add(i, x, y):
            y[i] += x

        entries, y = baechi.Entries((np.arange(2),), np.ones(2, np.float32)), np.zeros(2)
        for wrong in (-1, 1.5, True):
            with pytest.raises(ValueError, match=f"passes is {wrong}: give a number of at least 0"):
                baechi.foreach(add)(entries, y, passes=wrong)
        np.testing.assert_array_equal(baechi.foreach(add)(entries, y, passes=0), y)

    def test_entries_are_copies(self):
        def add(i, x, y):
            y[i] += x

        keys, values = np.arange(3), np.ones(3, np.float32)
        entries = baechi.Entries((keys,), values)
        keys[:], values[:] = 0, 7
        np.testing.assert_array_equal(baechi.foreach(add)(entries, np.zeros(3)), np.ones(3))
        with pytest.raises(ValueError, match="read-only"):
            entries.leaves[0][0] = 2

    def test_what_is_no_array(self):
        def add(i, x, y):
            y[i] += x

        numbers = np.ones(2, np.float32)
        entries = baechi.Entries((np.arange(2),), numbers)
        with pytest.raises(TypeError, match=r"'y' is a memoryview, .* np.asarray\(view\)"):
            baechi.foreach(add)(entries, memoryview(numbers))
        with pytest.raises(TypeError, match="values is a memoryview"):
            baechi.Entries((np.arange(2),), memoryview(numbers))
        with pytest.raises(TypeError, match="column of keys is a memoryview"):
            baechi.Entries((memoryview(np.arange(2)),))
        with pytest.raises(TypeError, match="'y' is of object: give an array of numbers"):
            baechi.foreach(add)(entries, np.array([None, None]))

    def test_arrays_that_blocks_cannot_cut(self):
        entries = baechi.Entries((np.arange(10),), np.ones(10, np.float32))

        def mirror(i, x, a, b):
            b[9 - i] = a[i] + x

        def pairs(i, x, a, b):
            a[i] = a[2 * i + 10] + x

        arrays = np.zeros(29, np.float32), np.zeros(10, np.float32)
        with pytest.raises(baechi.LoopError) as raised:
            baechi.foreach(mirror)(entries, *arrays)
        assert "b[-i + 9] is written (test_loops.py:" in str(raised.value)
        assert "falls as the key grows; turn 'b' round (b[::-1])" in str(raised.value)
        with pytest.raises(baechi.LoopError) as raised:
            baechi.foreach(pairs)(entries, *arrays)
        assert "a[2 * i + 10] is read (test_loops.py:" in str(raised.value)
        assert "a[i] is written (test_loops.py:" in str(raised.value)
        assert "give 'a' in parts, an array for each such sum" in str(raised.value)


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
