# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that read beside what they write: wavefronts, stencils and diagonals, beside NumPy."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import baechi
from baechi.loops.pieces import Pieces, Shear


def grid(*ends, first=1, keep=1.0, seed=0):
    """The keys of a box from `first` on, in an order of their own, with numbers."""
    random = np.random.default_rng(seed)
    keys = np.stack(np.meshgrid(*(np.arange(first, end) for end in ends)), -1)
    keys = random.permutation(keys.reshape(-1, len(ends)))
    keys = keys[: max(1, int(len(keys) * keep))]
    values = random.integers(-9, 9, len(keys)).astype(np.int32)
    return baechi.Entries(list(keys.T), values, bounds=[(first, end) for end in ends])


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).integers(0, 1000, shape).astype(np.int32)


def serially(body, entries, arrays, order):
    """The body on NumPy's arrays, one entry after the other."""
    arrays = [array.copy() for array in arrays]
    for n in order:
        keys = tuple(int(column[n]) for column in entries.keys)
        with np.errstate(over="ignore"):
            body(keys if len(keys) > 1 else keys[0], entries.leaves[0][n], *arrays)
    return arrays


def by_keys(entries):
    return np.lexsort(entries.keys[::-1])


def longest(key, x, a):
    i, j = key
    a[i, j] = a[i - 1, j] * 3 + a[i, j - 1] * 5 + a[i - 1, j - 1] + x


def from_left_and_above(key, x, a):
    i, j = key
    a[i, j] = a[i - 1, j] * 3 + a[i, j - 1] + x


def from_above(key, x, a):
    i, j = key
    a[i, j] = a[i - 1, j - 1] * 3 + a[i - 1, j] * 5 + a[i - 1, j + 1] + x


def from_diagonal(key, x, a):
    i, j = key
    a[i, j] = a[i - 1, j - 1] * 3 + x


def from_other_diagonal(key, x, a):
    i, j = key
    a[i, j] = a[i - 1, j + 1] * 3 + x


def twice(key, x, a):
    """Cut along j: in i a neighbour's entries write, too."""
    i, j = key
    a[i, j] = x
    a[i + 1, j] = x + a[i, j - 1]


SCHEMES = {
    twice: "one after the other in i + j, those of one value at once",
    longest: "one after the other in i + j, those of one value at once",
    from_left_and_above: "wavefront over i and j",
    from_above: "one after the other in i, those of one value at once",
    from_diagonal: "1D over i - j",
    from_other_diagonal: "1D over i + j",
}


class TestOrdered:
    @pytest.mark.parametrize("body", SCHEMES)
    def test_is_the_serial_run(self, body):
        """Sparse keys, on one, two and three devices, of two to five workers."""
        array = numbers(24, 20)
        for workers, machine, keep in (
            (2, "host:1", 1),
            (3, "host:2", 0.6),
            (4, "host:3", 1),
            (5, "host:2", 1),
        ):
            entries = grid(23, 19, keep=keep)
            loop = baechi.foreach(body, machine=machine, workers=workers, ordered=True)
            assert loop.analyse(entries, array).text == SCHEMES[body]
            expected = array
            for _ in range(2):
                (expected,) = serially(body, entries, [expected], by_keys(entries))
            found = loop(entries, array, passes=2)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(loop.simulate(entries, array, passes=2), expected)

    def test_floats_to_the_bit(self):
        def smooth(key, x, a):
            i, j = key
            a[i, j] = 0.3 * a[i - 1, j] + 0.7 * a[i, j - 1] + x

        entries = grid(17, 14)
        array = np.random.default_rng(2).normal(size=(17, 14)).astype(np.float32)
        serial = baechi.foreach(smooth, machine="host:1", workers=1, ordered=True)(entries, array)
        for machine, workers in (("host:1", 3), ("host:2", 4), ("host:3", 5)):
            loop = baechi.foreach(smooth, machine=machine, workers=workers, ordered=True)
            assert loop(entries, array).tobytes() == serial.tobytes()
            assert loop.simulate(entries, array).tobytes() == serial.tobytes()

    def test_blocks_run_at_once_and_strips_travel(self):
        entries, array = grid(33, 33), numbers(33, 33)
        loop = baechi.foreach(from_left_and_above, workers=4, ordered=True)
        clocks = [block.clock for block in loop.layout(entries, array).blocks]
        assert len(clocks) == 16 and max(clocks) == 6
        (pieces,) = loop.layout(entries, array).pieces
        assert (pieces.below, pieces.above, pieces.bounds) == (1, 0, (0, 9, 17, 25, 33))
        loop(entries, array)
        devices = re.findall(r"^host\d(?: +[\d.]+){3} +([\d.]+)", loop.report(), re.M)
        sent = 2**20 * sum(map(float, devices))
        assert len(devices) == 2 and 0.5 < sent / (12 * 33 * 4) < 2  # a row for each of 12 blocks


class TestUnordered:
    @pytest.mark.parametrize("body", SCHEMES)
    def test_is_the_run_of_its_blocks(self, body):
        entries, array = grid(18, 15, keep=0.7), numbers(19, 16)
        loop = baechi.foreach(body, machine="host:2", workers=3)
        expected = serially(body, entries, [array], loop.order(entries, array))
        np.testing.assert_array_equal(loop(entries, array), expected[0])
        np.testing.assert_array_equal(loop.simulate(entries, array), expected[0])

    def test_stencil(self):
        """Of what nobody writes, and of what the pass before has written."""

        def blur(i, x, old, new):
            new[i] = old[i - 1] + 2 * old[i] + old[i + 1] + x

        entries = grid(40)
        old, new = numbers(41), numbers(41, seed=2)
        loop = baechi.foreach(blur, machine="host:3", workers=4)
        layout = loop.layout(entries, old, new)
        assert [(p.below, p.above) for p in layout.pieces] == [(0, 2), (0, 0)]
        assert max(len(p) for p in layout.pieces[0].cut(old)) < 20
        expected = old, new
        for _ in range(3):
            new = loop(entries, old, new)
            expected = expected[0], serially(blur, entries, expected, by_keys(entries))[1]
            np.testing.assert_array_equal(new, expected[1])
            old, new, expected = new, old, expected[::-1]

    def test_pieces_thinner_than_halos(self):
        def far(key, x, a, b):
            i, j = key
            a[i, j] += x + a[i - 3, j] % 7 + b[i - 3 : i + 4].sum()

        entries = grid(9, 14, first=3)
        arrays = numbers(9, 14), numbers(12)
        for ordered in (False, True):
            loop = baechi.foreach(far, machine="host:2", workers=5, ordered=ordered)
            expected = serially(far, entries, arrays, loop.order(entries, *arrays))
            np.testing.assert_array_equal(loop(entries, *arrays), expected[0])

    def test_beside_buffers_and_new_values(self):
        """Halos are taken anew in each part of a block between two exchanges."""

        def walk(key, x, a, totals):
            i, j = key
            a[i, j] = a[i, j - 1] + a[i - 1, j] + x + totals[0]
            totals[0] += x
            return x + 1

        entries, arrays = grid(12, 14, keep=0.8), (numbers(12, 14), numbers(1))
        options = {"buffered": ["totals"], "exchanges": 3}
        loop = baechi.foreach(walk, machine="host:2", workers=3, **options)
        found = loop(entries, *arrays, passes=2)
        for a, b in zip(found, loop.simulate(entries, *arrays, passes=2), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(found[0], entries.leaves[0] + 2)

    def test_writes_of_one_block_at_several_positions(self):
        def pairs(i, x, a):
            a[2 * i] = a[2 * i + 1] + x
            a[2 * i + 1] = x

        entries, array = grid(10, first=0), numbers(20)
        loop = baechi.foreach(pairs, workers=3)
        expected = serially(pairs, entries, [array], by_keys(entries))
        np.testing.assert_array_equal(loop(entries, array), expected[0])


class TestRandom:
    @pytest.mark.parametrize("seed", range(8))
    def test_bodies(self, seed):
        """Random offsets, keys, workers, devices; what is refused runs serially."""
        random = np.random.default_rng(100 + seed)
        ordered = bool(random.integers(2))
        offsets = random.integers(-2, 3, (random.integers(1, 4), 2))
        offsets[0] = -np.abs(offsets[0])
        stencil = random.integers(-2, 3, 2)

        def body(key, x, a, b, c):
            i, j = key
            total = x + c[i + int(stencil[0]), 1] + b[j + int(stencil[1])]
            for p, q in offsets:
                total = total * 3 + a[i + int(p), j + int(q)]
            a[i, j] = total
            c[i, 0] += total if ordered else x

        ends = [int(end) for end in random.integers(6, 14, 2)]
        entries = grid(*ends, first=2, keep=random.uniform(0.5, 1), seed=seed)
        arrays = numbers(ends[0] + 2, ends[1] + 2), numbers(ends[1] + 2), numbers(ends[0] + 2, 2)
        loop = baechi.foreach(
            body,
            machine=f"host:{random.integers(1, 4)}",
            workers=int(random.integers(2, 6)),
            ordered=ordered,
            fallback="serial",
        )
        order = by_keys(entries) if ordered else loop.order(entries, *arrays)
        expected = serially(body, entries, arrays, order)
        for ran in (loop, loop.simulate):
            for a, b in zip(ran(entries, *arrays), (expected[0], expected[2]), strict=True):
                np.testing.assert_array_equal(a, b)


class TestPieces:
    @pytest.mark.parametrize("multiple", [-2, -1, 1, 2])
    def test_sheared_arrays_are_joined_again(self, multiple):
        array = numbers(5, 3, 4)
        shear = Shear(2, multiple, max(0, -multiple) * 3)
        extent = 5 + abs(multiple) * 3
        pieces = Pieces(0, 0, (0, 4, 7, extent), below=1, above=2, shear=shear)
        np.testing.assert_array_equal(pieces.join(pieces.cut(array)), array)

    def test_halos_are_the_neighbours(self):
        pieces = Pieces(0, 0, (0, 4, 5, 9), below=2, above=3)
        found = {part: list(pieces.halos(part)) for part in range(3)}
        assert found == {
            0: [(1, 4, 5), (2, 5, 7)],
            1: [(0, 2, 4), (2, 5, 8)],
            2: [(0, 3, 4), (1, 4, 5)],
        }
        cut = pieces.cut(np.arange(9))
        for part, other in itertools.permutations(range(3), 2):
            for neighbour, first, end in pieces.halos(part):
                if neighbour == other:
                    mine = cut[part][first - pieces.first(part) : end - pieces.first(part)]
                    np.testing.assert_array_equal(mine, np.arange(first, end))


class TestRefused:
    def check(self, body, message, *arrays, **options):
        with pytest.raises(baechi.LoopError, match=message):
            baechi.foreach(body, **options)(grid(9, 9), *arrays)

    def test_whole_rows_of_the_time_before(self):
        def rows(key, x, a):
            i, j = key
            a[i, j] = a[i - 1].sum() + x

        message = r"one after the other in i, .*blocks need a second sum of keys .*'serial'"
        self.check(rows, message, numbers(9, 9), ordered=True)

    def test_writes_beside_the_block(self):
        def beside(key, x, a):
            i, j = key
            a[i, j] = x
            a[i + 1, j + 1] = x + a[i, j - 1]

        message = r"cannot cut 'a': a\[i, j\] is written .*, a\[i \+ 1, j \+ 1\] is written"
        self.check(beside, message, numbers(10, 10), ordered=True)

    def test_arrays_without_the_keys_of_blocks(self):
        def sweep(key, x, a):
            t, j = key
            a[j] = a[j - 1] + a[j + 1] + x

        self.check(sweep, "blocks cannot cut 'a'", numbers(10), ordered=True)
