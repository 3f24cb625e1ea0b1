# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that entries set to one number, at any positions."""

import jax
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
    with pytest.raises(baechi.LoopError, match="'seen' is set to one number .* leave staleness"):
        loop(entries(), np.zeros(50, bool), np.ones(50, np.float32))
