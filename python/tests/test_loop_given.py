# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.foreach`: what loops may be given, and what of it is refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import baechi


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

        with pytest.raises(
            baechi.LoopError, match=r"test_loop_given.py:\d+: a number is beyond the 32"
        ):
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
        assert "b[-i + 9] is written (test_loop_given.py:" in str(raised.value)
        assert "falls as the key grows; turn 'b' round (b[::-1])" in str(raised.value)
        with pytest.raises(baechi.LoopError) as raised:
            baechi.foreach(pairs)(entries, *arrays)
        assert "a[2 * i + 10] is read (test_loop_given.py:" in str(raised.value)
        assert "a[i] is written (test_loop_given.py:" in str(raised.value)
        assert "give 'a' in parts, an array for each such sum" in str(raised.value)
