# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bodies of loops may say, beside NumPy, and what they are told where they may not."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from test_loop_programs import serially

ENTRIES = baechi.Entries(
    (np.arange(12) % 5, np.arange(12) % 4),
    (np.arange(12) * 5 % 6, np.arange(36).reshape(12, 3) * 7 % 11 % 6 - 6 * (np.arange(3) == 1)),
    (5, 4),
)
PLACES = [
    lambda i, j, p, q: (i, j),
    lambda i, j, p, q: (j, 1),
    lambda i, j, p, q: i + 1,
    lambda i, j, p, q: (slice(j, j + 3), 2),
    lambda i, j, p, q: (slice(j + 1, j + 3), slice(1, 4)),
    lambda i, j, p, q: (slice(None), j),
    lambda i, j, p, q: ...,
    lambda i, j, p, q: (slice(2, 5), slice(0, 2)),
    lambda i, j, p, q: p,
    lambda i, j, p, q: (i, p),
    lambda i, j, p, q: (p, slice(1, 3)),
    lambda i, j, p, q: q,
    lambda i, j, p, q: (q, j),
    lambda i, j, p, q: (i, q),
    lambda i, j, p, q: (slice(None), q),
    lambda i, j, p, q: (q, q),
    lambda i, j, p, q: (p, q),
    lambda i, j, p, q: (jnp.clip(p, 0, 3) + np.arange(2), j),
    lambda i, j, p, q: [2, 0],
]


def random_body(seed):
    """Reads and writes of one array at places of many forms, which meet in many ways."""
    random = np.random.default_rng(seed)
    plan = [(PLACES[random.integers(len(PLACES))], random.integers(3)) for _ in range(7)]

    def body(key, value, x):
        (i, j), (p, q) = key, value
        seen = 0
        for number, (place, kind) in enumerate(plan):
            at = place(i, j, p, q)
            if kind == 0:
                x[at] = seen + number
            elif kind == 1:
                x[at] += number + 1
            else:
                seen = (seen + 3 * x[at].sum() + x[at].reshape(-1)[-1]).astype(np.int32) % 997
        x[0, 0] = seen

    return body


@pytest.mark.parametrize("seed", range(40))
def test_random_bodies(seed):
    body, x = random_body(seed), np.arange(36, dtype=np.int32).reshape(6, 6)
    loop = baechi.foreach(body, fallback="serial", machine="host:1", workers=1)
    order = loop.order(ENTRIES, x)
    _, (expected,) = serially(body, ENTRIES, [x], order)
    np.testing.assert_array_equal(loop(ENTRIES, x), expected)


def test_whole_arrays_and_defaults():
    """Operators and methods take all of an array; what has a default is no array of the loop."""

    def body(i, value, x, y, scale, rate=2):
        x[i] = scale * x[i] + rate * (2 - y).sum() + y.max() * np.float64(3) + np.int64(2) * i
        y += value
        y *= scale

    entries = baechi.Entries((np.arange(6),), np.arange(6, dtype=np.int32))
    arrays = [np.arange(6, dtype=np.float32), np.arange(3, dtype=np.float32), np.float32(0.5)]
    loop = baechi.foreach(body, fallback="serial")
    _, expected = serially(body, entries, arrays, range(6))
    for made, one in zip(loop(entries, *arrays), expected, strict=False):
        np.testing.assert_array_equal(made, one)


def test_reads_of_what_is_differentiated():
    def body(key, rating, users, items):
        i, j = key
        users[i] -= 0.1 * jax.grad(lambda u: (rating - u @ items[j]) ** 2)(users[i])

    entries = baechi.Entries(ENTRIES.keys, np.ones(12, np.float32), (5, 4))
    arrays = np.ones((5, 3), np.float32), np.full((4, 3), 2, np.float32)
    loop = baechi.foreach(body, workers=2)
    assert loop.analyse(entries, *arrays).text == "1D over i"
    made, order = loop(entries, *arrays), loop.order(entries, *arrays)
    expected = arrays[0].copy()
    for n in order:
        i, j = (key[n] for key in entries.keys)
        expected[i] += 0.2 * (1 - expected[i] @ arrays[1][j]) * arrays[1][j]
    np.testing.assert_allclose(made, expected, rtol=1e-5)


def changes_a_view(key, r, u, v):
    a, b = u[key[0]], v[key[1]]
    a += b
    v[key[1]] = b


def changes_an_element_of_a_view(key, r, u, v):
    u[key[0]][0] = 1


def of_math(key, r, u, v):
    u[key[0]] += math.exp(r)


def of_numpy(key, r, u, v):
    u[key[0]] += np.dot(u[key[0]], v[key[1]])


def counts_to_a_key(key, r, u, v):
    for k in range(key[0]):
        u[key[0], k] = 0


def lists(key, r, u, v):
    u[key[0]] += [1, 2, 3, 4, 5][key[0]]


def within_a_loop_of_jax(key, r, u, v):
    u[key[0]] += jax.lax.fori_loop(0, 3, lambda k, s: s + v[key[1], k], 0.0)


def within_a_branch(key, r, u, v):
    def reset():
        u[key[0]] = 0
        return 0

    jax.lax.cond(r > 0, reset, lambda: 0)


def masks(key, r, u, v):
    u[key[0], u[key[0]] > 0] = 0


def slices_by_data(key, r, u, v):
    first = (r > 0).astype(int)
    u[key[0]] = v[key[1], first : first + 2].sum()


def adds_dimensions(key, r, u, v):
    u[key[0]] = v[key[1], None]


def two_lengths(key, r, u, v):
    u[jnp.arange(2), jnp.arange(3)] = 0


def beyond_a_slice(key, r, u, w):
    w[:, key[0], :, jnp.arange(2)] = 0


def another_number_of_keys(key, r, u, v):
    i, j, k = key
    u[i] = 0


def shapes(key, r, u, v):
    u[key[0]] += u[key[0]] @ v


def unknown_methods(key, r, u, v):
    u[key[0]] += v.foo


def other_results(key, r, u, v):
    return r, r


def other_types(key, r, u, v):
    return r + 1j


def other_shapes(key, r, u, v):
    return u[key[0]]


def other_arguments(key, r, u):
    u[key[0]] = r


def by_a_word(key, r, u, v):
    u["users"] = r


WRONG = {
    by_a_word: r"dimension 0 of 'u' is indexed with a str: give a key, a sum of keys",
    changes_a_view: r"'a' is changed in place, which was read of 'u': .* write u\[key\[0\]\] \+= ",
    changes_an_element_of_a_view: r"cannot be changed in place: write to the array, x\[i, k\] = v",
    of_math: r"made a number of Python's: use jnp, not np or math",
    of_numpy: r"given to a function that cannot take it: .* use jnp, not np",
    counts_to_a_key: r"used as a number of Python's, as range and lists take it",
    lists: r"used as a number of Python's, .* or give the list as an array",
    within_a_loop_of_jax: r"'v' is read within a function that JAX traces by itself, .* before",
    within_a_branch: r"'u' is written within a function that JAX traces by itself, for cond",
    masks: r"is indexed with bool of shape \(3,\): .* by a mask choose values",
    slices_by_data: r"dimension 1 of 'v' is indexed with a slice that data tell: give its pos",
    adds_dimensions: r"dimension 1 of 'v' is indexed with None: add dimensions to what is read",
    two_lengths: r"'u' is indexed with vectors of 2 and 3 integers: give as many for each",
    beyond_a_slice: r"'w' is indexed with a vector and, beyond a slice, with another position",
    another_number_of_keys: r"taken apart into another number of parts .*expected 3, got 2",
    shapes: r"dot_general requires contracting dimensions",
    unknown_methods: r"'v' has no 'foo': take it of v\[...\]",
    other_results: r"the body returns .*, and an entry's value is .*: return the entry's new value",
    other_types: r"the body returns a value of complex64, and an entry's is of float32: return",
    other_shapes: r"the body returns a value of shape \(3,\), and an entry's has \(\)",
    other_arguments: r"the body takes key, r, u, and the loop is called with entries and 2 arrays",
}


@pytest.mark.parametrize("body", WRONG, ids=lambda body: body.__name__)
def test_errors_have_a_line_and_a_mend(body):
    entries = baechi.Entries(ENTRIES.keys, np.ones(12, np.float32), (5, 4))
    arrays = [np.ones((5, 3), np.float32), np.ones((4, 3), np.float32)]
    if body is beyond_a_slice:
        arrays[1] = np.ones((2, 5, 3, 2), np.float32)
    with pytest.raises(baechi.LoopError, match=r"^test_loop_bodies.py:\d+: .*" + WRONG[body]):
        baechi.foreach(body).analyse(entries, *arrays)
