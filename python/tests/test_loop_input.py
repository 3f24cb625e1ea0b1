# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What loops are given: keys, their names, and types of arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi

COUNT = 40
RANDOM = np.random.default_rng(3)
F32 = np.float32


def add_products(key, value, rows, columns):
    i, j = key
    u, v = rows[i], columns[j]
    rows[i] += value * v
    columns[j] += value * u


def entries_of(rows, columns, names=None):
    keys = RANDOM.integers(0, rows, COUNT), RANDOM.integers(0, columns, COUNT)
    values = F32(0.1) * RANDOM.standard_normal(COUNT, F32)
    return baechi.Entries(keys, values, (rows, columns), names)


def arrays_of(*rows):
    return [RANDOM.standard_normal((n, 4), F32) for n in rows]


def one_by_one(entries, arrays, order):
    """The same on NumPy's arrays."""
    rows, columns = (array.copy() for array in arrays)
    for n in order:
        i, j = (int(key[n]) for key in entries.keys)
        u, v = rows[i].copy(), columns[j].copy()
        rows[i] += entries.leaves[0][n] * v
        columns[j] += entries.leaves[0][n] * u
    return rows, columns


class TestKeysWithOneValue:
    """Blocks follow each other along it."""

    @pytest.mark.parametrize("ordered", [False, True])
    @pytest.mark.parametrize("rows, columns", [(6, 1), (1, 6), (1, 1)])
    def test_equal_numpy(self, rows, columns, ordered):
        entries, arrays = entries_of(rows, columns), arrays_of(rows, columns)
        loop = baechi.foreach(add_products, ordered=ordered, workers=3)
        order = loop.order(entries, *arrays)
        assert sorted(order) == list(range(COUNT))
        for made in (loop(entries, *arrays), loop.simulate(entries, *arrays)):
            for one, other in zip(made, one_by_one(entries, arrays, order), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    def test_schemes_are_those_of_several(self):
        loop = baechi.foreach(add_products)
        assert loop.analyse(entries_of(1, 6), *arrays_of(1, 6)).text == "2D over j and i"
        ordered = baechi.foreach(add_products, ordered=True)
        assert ordered.analyse(entries_of(6, 1), *arrays_of(6, 1)).text == "wavefront over i and j"

    def test_what_is_serial_says_why(self):
        def scan(key, value, x, total):
            i, j = key
            x[i] = x[i - 1] + value
            total[j] += x[i]

        keys = np.arange(1, 9), np.zeros(8, int)
        entries = baechi.Entries(keys, np.ones(8, F32))
        with pytest.raises(baechi.LoopError, match=r"x\[i - 1\] is read .*, x\[i\] is written"):
            baechi.foreach(scan)(entries, np.zeros(9, F32), np.zeros(1, F32))


class TestNames:
    @pytest.mark.parametrize("names", [['a "b"', "c\\d"], ["größe", "func"], ["new\nline", "%x"]])
    def test_of_keys_are_any(self, names):
        entries, arrays = entries_of(6, 5, names), arrays_of(6, 5)
        loop = baechi.foreach(add_products, workers=2)
        assert loop.analyse(entries, *arrays).text == f"2D over {names[0]} and {names[1]}"
        order = loop.order(entries, *arrays)
        for one, other in zip(
            loop(entries, *arrays), one_by_one(entries, arrays, order), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    def test_of_arrays_are_pythons(self):
        def smooth(key, value, größe, ranges, block, outside):
            i, place = key, value
            größe[i] = 0.5 * größe[i - 1] + größe[i]
            ranges[place] += 1
            block[i] = outside[i] + 1

        places = RANDOM.integers(0, 5, 30)
        entries = baechi.Entries((np.arange(1, 31),), places)
        x = RANDOM.standard_normal(32, F32)
        counts, y = np.zeros(5, np.int32), np.zeros(32, F32)
        loop = baechi.foreach(smooth, fallback="serial")
        size, ranges, block = loop(entries, x, counts, y, x)
        expected = x.copy()
        for i in range(1, 31):
            expected[i] = F32(0.5) * expected[i - 1] + expected[i]
        np.testing.assert_allclose(size, expected, rtol=1e-6)
        assert (ranges == np.bincount(places, minlength=5)).all()
        assert (block[1:31] == x[1:31] + 1).all()

        def cut(i, _, block, halo, ranges):
            block[i] = ranges[i - 1] + ranges[i + 1]
            halo[i] = block[i] * 2

        entries = baechi.Entries((np.arange(1, 31),))
        block, halo = baechi.foreach(cut, workers=3)(entries, y, y, x)
        assert (block[1:31] == x[:30] + x[2:]).all()
        assert (halo == 2 * block).all()

    def test_of_arrays_with_halos(self):
        def relax(key, _, größe):
            i, j = key
            größe[i, j] = F32(0.25) * (größe[i - 1, j] + größe[i, j - 1])

        grid = tuple(np.indices((6, 8)).reshape(2, -1) + 1)
        x = RANDOM.standard_normal((8, 10), F32)
        made = baechi.foreach(relax, ordered=True, workers=2)(baechi.Entries(grid), x)
        expected = x.copy()
        for i in range(1, 7):
            for j in range(1, 9):
                expected[i, j] = F32(0.25) * (expected[i - 1, j] + expected[i, j - 1])
        assert (made == expected).all()

    def test_wrong_ones_are_refused(self):
        keys = np.arange(3), np.arange(3)
        with pytest.raises(ValueError, match=r"2 keys have 3 names"):
            baechi.Entries(keys, names=["a", "b", "c"])
        with pytest.raises(ValueError, match=r"names are a, a: give each key another"):
            baechi.Entries(keys, names=["a", "a"])
        with pytest.raises(TypeError, match=r"names has 1: a key's name is a word, 'user'"):
            baechi.Entries(keys, names=["a", 1])


class TestTypes:
    @pytest.mark.parametrize("kind", [">f4", ">i4", ">f8", ">i8", ">u2"])
    def test_orders_of_bytes_are_the_machines(self, kind):
        def double(i, value, x):
            x[i] = x[i] + value

        numbers = np.arange(9).astype(kind)
        entries = baechi.Entries((np.arange(9).astype(">i8"),), numbers)
        made = baechi.foreach(double)(entries, numbers)
        assert made.dtype.isnative
        assert (made == 2 * np.arange(9)).all()

    @pytest.mark.parametrize("kind", [np.complex64, np.complex128])
    def test_complex_ones_are_refused(self, kind):
        entries, (rows, columns) = entries_of(6, 5), arrays_of(6, 5)
        with pytest.raises(TypeError, match=rf"'columns' is of {kind.__name__}, .*x\.real and"):
            baechi.foreach(add_products).analyse(entries, rows, columns.astype(kind))
        with pytest.raises(TypeError, match=rf"values is of {kind.__name__}, .*real and its imag"):
            baechi.Entries(entries.keys, np.zeros(COUNT, kind))

    @pytest.mark.parametrize("kind", [np.longdouble, "V4", jnp.float8_e4m3fn, jnp.int4])
    def test_others_are_refused(self, kind):
        entries, (rows, _) = entries_of(6, 5), arrays_of(6, 5)
        array = np.zeros((5, 4), kind)
        with pytest.raises(TypeError, match=r"'columns' is of .*, for which blocks have no code"):
            baechi.foreach(add_products).analyse(entries, rows, array)


class TestNumbers:
    def test_keys_as_numbers_are_held(self):
        def far(i, _, x):
            x[i] = i * 3_000_000 + 1

        def squared(i, _, x):
            x[i] = i * i

        entries = baechi.Entries((np.array([1, 2, 50_000]),))
        x = np.zeros(50_001, np.float64)
        for body, what in ((far, "sum"), (squared, "product")):
            with pytest.raises(
                baechi.LoopError,
                match=rf"test_loop_input.py:\d+: a {what} of keys is a number from .*, which 32 "
                "bits do not hold: call jax.config.update",
            ):
                baechi.foreach(body).analyse(entries, x)
        with jax.enable_x64(True):
            x = np.zeros(50_001, np.int64)
            made = baechi.foreach(far)(entries, x)
            assert (made[[1, 2, 50_000]] == np.array([1, 2, 50_000]) * 3_000_000 + 1).all()
            made = baechi.foreach(squared)(entries, x)
            assert (made[[1, 2, 50_000]] == np.array([1, 2, 50_000]) ** 2).all()

    def test_keys_beyond_32_bits_are_refused(self):
        for x64 in (False, True):
            with jax.enable_x64(x64), pytest.raises(ValueError, match="beyond 32 bits: number its"):
                baechi.Entries((np.array([1, 2**31]),))

    def test_positions_that_are_not_there(self):
        entries = baechi.Entries((np.arange(5),))
        x = np.zeros(5, F32)

        def number(i, _, x):
            x[i] = x[-7]

        def before(i, _, x):
            x[i] = x[i - 1]

        with pytest.raises(
            baechi.LoopError, match=r"dimension 0 of 'x' is indexed with -7, and has 5 .*, -5 to 4"
        ):
            baechi.foreach(number).analyse(entries, x)
        with pytest.raises(
            baechi.LoopError, match=r"from -1 to 3, .*add to the position, which does not count"
        ):
            baechi.foreach(before).analyse(entries, x)


class TestFunctions:
    def test_systems_of_equations(self):
        def least_squares(i, both, x):
            matrix, right = both
            x[i] = jnp.linalg.solve(matrix, right)

        def invert(i, both, x):
            x[i] = jnp.linalg.inv(both[0]) @ both[1] + 0 * jnp.linalg.det(both[0])

        matrices = RANDOM.standard_normal((COUNT, 4, 4), F32) + 4 * np.eye(4, dtype=F32)
        right = RANDOM.standard_normal((COUNT, 4), F32)
        entries = baechi.Entries((np.arange(COUNT),), (matrices, right))
        expected = np.linalg.solve(matrices, right[..., None])[..., 0]
        for body in (least_squares, invert):
            made = baechi.foreach(body)(entries, np.zeros((COUNT, 4), F32))
            np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-5)

    def test_what_has_no_code_says_where(self):
        def prints(i, value, x):
            x[i] = value
            jax.debug.print("{}", value)

        def values(i, value, x):
            x[i] = jnp.linalg.eigvalsh(value * jnp.ones((3, 3)))[0]

        entries = baechi.Entries((np.arange(3),), np.ones(3, F32))
        for body, what, mend in (
            (prints, "debug_print", "look at what the loop gives"),
            (values, "eigh", "compute it outside of the loop"),
        ):
            with pytest.raises(
                baechi.LoopError,
                match=rf"test_loop_input.py:\d+: '{what}' has no code within blocks.*{mend}",
            ):
                baechi.foreach(body)(entries, np.zeros(3, F32))


def test_other_values_compile_nothing():
    """A loop over the same keys is the same program; values of another form are another."""

    def body(i, value, x):
        x[i] += value
        return value + 1

    entries = baechi.Entries((np.arange(6) % 3,), np.zeros(6, np.float32))
    loop, x = baechi.foreach(body, workers=2), np.zeros(3, np.float32)
    for _ in range(3):
        values, x = loop(entries, x)
        loop.simulate(entries, x)
        entries = entries.with_values(values)
    assert (x == 6).all() and (values == 3).all()
    assert len(loop._known) == len(loop._simulated) == 1
    loop(entries.with_values(np.zeros(6, np.float16)), x.astype(np.float16))
    assert len(loop._known) == 2


def test_arrays_are_given_by_position():
    """By name an array would be none of the loop's."""

    def double(i, value, x):
        x[i] = 2 * x[i]

    entries = baechi.Entries((np.arange(3),), np.zeros(3, F32))
    loop = baechi.foreach(double)
    with pytest.raises(
        baechi.LoopError, match=r"test_loop_input\.py:\d+: .*with 'x' by name: give the entries and"
    ):
        loop(entries, x=np.ones(3, F32))
    assert loop(entries, np.ones(3, F32), passes=2).tolist() == [4, 4, 4]
