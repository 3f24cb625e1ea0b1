# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ordinary bodies that were not taken for what they say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi

RANDOM = np.random.default_rng(5)
TABLES = np.roll(np.arange(12), 3), np.arange(12)[::-1].copy()


def looked_up(table):
    return jax.jit(lambda p: jnp.asarray(table)[p])


def moved(by):
    return jax.jit(lambda p, by=by: (p + by) % 12)


@pytest.mark.parametrize(
    "one, other",
    [
        (looked_up(TABLES[0]), looked_up(TABLES[1])),
        (moved(jnp.int32(1)), moved(jnp.int32(5))),
    ],
    ids=["tables", "numbers"],
)
def test_places_of_two_functions_are_two(one, other):
    def body(i, p, x):
        x[one(p)] = x[other(p)] + 1

    data = RANDOM.integers(0, 12, 50).astype(np.int32)
    entries, x = baechi.Entries((np.arange(50),), data), np.arange(12, dtype=np.int32)
    loop = baechi.foreach(body, fallback="serial")
    assert loop.analyse(entries, x).text == "serial"
    expected = x.copy()
    for p in data:
        expected[int(one(p))] = expected[int(other(p))] + 1
    assert (loop(entries, x) == expected).all()
    assert (loop.simulate(entries, x) == expected).all()


def test_a_place_of_one_function_is_one():
    place = looked_up(TABLES[0])

    def body(i, p, x):
        x[place(p)] += 1

    def written_out(i, p, x):
        x[jnp.clip(place(p), 0, 11)] = x[jnp.clip(place(p), 0, 11)] + 1

    data = RANDOM.integers(0, 12, 50).astype(np.int32)
    entries, x = baechi.Entries((np.arange(50),), data), np.zeros(12, np.int32)
    for each in (body, written_out):
        loop = baechi.foreach(each)
        assert loop.analyse(entries, x).text == "independent with sums of 'x'"
        assert (loop(entries, x) == np.bincount(TABLES[0][data], minlength=12)).all()


@pytest.mark.parametrize("reassociate, dtype", [(False, np.int32), (True, np.float32)])
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_sums_at_vectors_of_positions(machine, reassociate, dtype):
    def body(i, v, w):
        w[v] -= v * 2
        w[v] += 1

    data = RANDOM.integers(0, 20, (200, 5)).astype(np.int32)  # with repetitions
    entries, w = baechi.Entries((np.arange(200),), data), np.zeros(20, dtype)
    loop = baechi.foreach(body, machine=machine, reassociate=reassociate)
    assert loop.analyse(entries, w).text == "independent with sums of 'w'"
    expected = w.copy()
    for v in data:
        expected[v] -= (v * 2).astype(dtype)
        expected[v] += 1
    assert (loop(entries, w) == expected).all()
    assert (loop.simulate(entries, w) == expected).all()


def test_a_number_stays_one():
    def body(i, v, s):
        s[...] += v

    entries = baechi.Entries((np.arange(9),), np.arange(9, dtype=np.int32))
    loop = baechi.foreach(body, workers=2)
    for found in (loop(entries, np.int32(7)), loop.simulate(entries, np.int32(7))):
        assert np.shape(found) == () and found == 43


@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_what_is_infinite_and_not_written_stays(shape):
    def body(i, v, far):
        far[v] = 2.0

    entries = baechi.Entries((np.arange(8),), np.arange(8, dtype=np.int32) % 4)
    far = np.full(shape, np.inf, np.float32)
    far[:4], far[4], far[5] = 1.0, -np.inf, np.nan
    expected = far.copy()
    expected[:4] = 2.0
    loop = baechi.foreach(body, buffered=["far"], workers=1)
    np.testing.assert_array_equal(loop(entries, far), expected)
    np.testing.assert_array_equal(loop.simulate(entries, far), expected)


def test_booleans_cannot_be_buffered():
    def body(i, v, seen):
        seen[v] = True

    entries = baechi.Entries((np.arange(8),), np.arange(8, dtype=np.int32) % 4)
    loop = baechi.foreach(body, buffered=["seen"])
    with pytest.raises(baechi.LoopError, match=r"'seen', which is of bool.*astype\(np.int32\)"):
        loop(entries, np.zeros(4, bool))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int8, np.float16])
def test_numbers_of_python_are_of_the_arrays_type(dtype):
    def body(i, v, x):
        x[i, 0] = 1
        x[i, 1] = jnp.where(v > 3, 2, 0)

    entries = baechi.Entries((np.arange(6),), np.arange(6, dtype=np.int32))
    x = baechi.foreach(body)(entries, np.zeros((6, 2), dtype))
    assert x.dtype == dtype and (x == [[1, 2 * (v > 3)] for v in range(6)]).all()


def test_numbers_of_python_that_the_type_cannot_hold():
    def body(i, v, x):
        x[i] = -1

    entries = baechi.Entries((np.arange(6),))
    with pytest.raises(baechi.LoopError, match=r"'x' is of uint8, which cannot hold -1"):
        baechi.foreach(body)(entries, np.zeros(6, np.uint8))


def another_name(i, v, x, y):
    u = x[i]
    w = u
    w += v
    y[i] = w


def with_a_type(i, v, x, y):
    u: object = x[i]
    u += v
    y[i] = u


def in_a_list(i, v, x, y):
    [u, w] = x[i], x[i]
    u += v
    y[i] = u + w


def within_an_expression(i, v, x, y):
    (u := x[i])
    u += v
    y[i] = u


def in_another_shape(i, v, x, y):
    u = x[i].reshape(-1)
    u += v
    y[i] = u


def in_part(i, v, x, y):
    u = x[i]
    w = u[1:]
    w += v[1:]
    y[i, 1:] = w


VIEWS = [another_name, with_a_type, in_a_list, within_an_expression, in_another_shape, in_part]


@pytest.mark.parametrize("body", VIEWS, ids=lambda body: body.__name__)
def test_views_by_another_name_are_not_changed(body):
    entries = baechi.Entries((np.arange(4),), np.ones((4, 3), np.float32))
    x = np.zeros((4, 3), np.float32)
    with pytest.raises(baechi.LoopError, match=r"is changed in place, which was read of 'x'"):
        baechi.foreach(body)(entries, x, x.copy())


def test_values_of_their_own_are_changed():
    def body(i, v, x, y):
        u = x[i] + 0
        u += v
        w = x[i][0]
        w += 1
        k = x[i]
        k = k * 2
        k += w
        y[i] = u + k

    entries = baechi.Entries((np.arange(4),), np.ones((4, 3), np.float32))
    x = np.zeros((4, 3), np.float32)
    assert (baechi.foreach(body)(entries, x, x.copy())[...] == 2).all()


def test_what_is_no_body_is_told_with_its_place():
    def parts_of_a_key(i, v, x):
        x[i[0]] += v

    def fewer_elements(i, v, x):
        del x[i]

    async def awaits(i, v, x):
        x[i] += v

    def yields(i, v, x):
        x[i] += v
        yield v

    entries = baechi.Entries((np.arange(4),), np.ones(4, np.float32))
    for body, words in (
        (parts_of_a_key, "a key is a number and has no parts: of a loop with one key"),
        (fewer_elements, "'x' has elements that stay: write another value, x.i. = 0"),
        (awaits, "the body awaits or yields, and blocks compute it to its end"),
        (yields, "the body awaits or yields, and blocks compute it to its end"),
    ):
        with pytest.raises(baechi.LoopError, match=r"test_loop_words.py:\d+: " + words):
            baechi.foreach(body)(entries, np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="'p' is a dict: give its arrays one by one, each to a"):
        baechi.foreach(lambda i, v, p: None)(entries, {"w": np.zeros(4, np.float32)})
