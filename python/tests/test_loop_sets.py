# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that entries set to one number, or to minima and maxima, at any positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi

PLACES = np.random.default_rng(0).integers(0, 40, (300, 2)).astype(np.int32)


def entries(values=PLACES):
    return baechi.Entries((np.arange(len(values)),), values)


@pytest.mark.parametrize(
    "start, number",
    [
        (np.zeros(50, bool), True),
        (np.arange(50, dtype=np.int8), 7),
        (np.arange(50, dtype=np.int64), np.int32(-3)),
        (np.linspace(-1, 1, 50).astype(np.float32), np.float64(0.1)),
        (np.zeros(50, np.float16), -0.0),
        (np.full(50, -0.0, np.float32), 0.0),
        (np.full(50, np.nan), np.inf),
        (np.full(50, 1.5, np.float32), float("nan")),
        (np.full(50, 2.5, np.float32), 2.5),
    ],
)
@pytest.mark.parametrize("machine, options", [("host:1", {}), ("host:2", {"ordered": True})])
def test_as_the_serial_run(start, number, machine, options):
    """Bit for bit: where what was there is equal, and has other bits, too."""

    def mark(i, places, seen):
        seen[places[0]] = number
        seen[places[1]] = number

    want = start.copy()
    want[PLACES.ravel()] = number
    with jax.enable_x64(start.dtype.itemsize == 8):
        loop = baechi.foreach(mark, machine=machine, **options)
        assert loop.analyse(entries(), start).text == "independent with copies of 'seen'"
        assert loop(entries(), start, passes=2).tobytes() == want.tobytes()
        assert loop.simulate(entries(), start).tobytes() == want.tobytes()


def test_rows_and_sums_beside():
    def mark(i, places, rows, counts):
        rows[places[0]] = 1
        counts[places[1]] += 1

    rows, counts = np.zeros((40, 3), np.float32), np.zeros(40, np.int32)
    loop = baechi.foreach(mark)
    found = loop.analyse(entries(), rows, counts).text
    assert found == "independent with sums of 'counts' and copies of 'rows'"
    made = loop(entries(), rows, counts)
    rows[PLACES[:, 0]] = 1
    assert (made[0] == rows).all()
    assert (made[1] == np.bincount(PLACES[:, 1], minlength=40)).all()


def test_ranks():
    def mark(i, places, seen):
        seen[places[0]] = True

    seen = np.zeros(50, bool)
    one, two = (
        baechi.foreach(mark, machine="host:2", ranks=ranks)(entries(), seen) for ranks in (1, 2)
    )
    assert one.tobytes() == two.tobytes() and one.sum() == len(set(PLACES[:, 0]))


def test_others_are_refused():
    """What is read, or set to several numbers, or to one that data tell."""

    def reads(i, places, seen, out):
        out[i] = seen[places[1]]
        seen[places[0]] = 1

    def several(i, places, seen, out):
        seen[places[0]] = 1
        seen[places[1]] = 2

    def told(i, places, seen, out):
        seen[places[0]] = places[1]

    for body in (reads, several, told):
        arrays = np.zeros(50, np.int32), np.zeros(300, np.int32)
        with pytest.raises(baechi.LoopError, match=r"'seen'|seen\[.*is written"):
            baechi.foreach(body)(entries(), *arrays)


def test_not_at_their_own_pace():
    def mark(i, places, seen, sums):
        seen[places[0]] = True
        sums[places[1]] += 0.5 * sums[places[0]]

    loop = baechi.foreach(mark, buffered=["sums"], staleness=1)
    with pytest.raises(baechi.LoopError, match="'seen' is set to one number.* leave staleness"):
        loop(entries(), np.zeros(50, bool), np.ones(50, np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minima_and_maxima(dtype, name):
    """Two of an entry, at places that may be the same."""
    with jax.enable_x64(True):

        def update(i, value, x):
            where, least = value
            x[where[0]] = getattr(jnp, name)(x[where[0]], least)
            x[where[1]] = getattr(jnp, name)(least + 1, x[where[1]])

        random = np.random.default_rng(3)
        limits = np.iinfo(dtype)
        least = random.integers(limits.min, limits.max, len(PLACES), dtype=dtype)
        start = random.integers(limits.min, limits.max, 50, dtype=dtype, endpoint=True)
        want = start.copy()
        for (a, b), number in zip(PLACES, least, strict=True):
            want[a] = getattr(np, name)(want[a], number)
            want[b] = getattr(np, name)(want[b], number + dtype(1))
        both = baechi.Entries((np.arange(len(PLACES)),), (PLACES, least))
        loop = baechi.foreach(update)
        assert loop.analyse(both, start).text == "independent with copies of 'x'"
        assert loop(both, start, passes=2).tobytes() == want.tobytes()
        assert loop.simulate(both, start).tobytes() == want.tobytes()


def test_other_minima_are_refused():
    """Of floats, of which two that are no numbers have an order; and what is also added to, read,
    or set."""

    def floats(i, places, x):
        x[places[0]] = jnp.minimum(x[places[0]], 0.5)

    def adds(i, places, x):
        x[places[0]] = jnp.minimum(x[places[0]], 2)
        x[places[1]] += 1

    def reads(i, places, x):
        x[places[0]] = jnp.minimum(x[places[0]], x[places[1]])

    def sets(i, places, x):
        x[places[0]] = jnp.minimum(x[places[0]], 2)
        x[places[1]] = 1

    def both(i, places, x):
        x[places[0]] = jnp.minimum(x[places[0]], 2)
        x[places[1]] = jnp.maximum(x[places[1]], 1)

    for body in (floats, adds, reads, sets, both):
        start = np.zeros(50, np.float32 if body is floats else np.int32)
        with pytest.raises(baechi.LoopError, match=r"serial, no more: x\[\?\]"):
            baechi.foreach(body)(entries(), start)
