# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which scheme a loop runs by, of those that it has: unittests/Loops/ChoiceTest.cpp has the
simulation itself."""

import numpy as np

import baechi
from baechi.loops import applications, data


def grid(extent):
    i, j = np.meshgrid(np.arange(1, extent), np.arange(1, extent), indexing="ij")
    keys = i.ravel(), j.ravel()
    bounds = ((1, extent), (1, extent))
    return baechi.Entries(keys, np.ones(i.size, np.float32), bounds=bounds)


def wave(key, value, a):
    i, j = key
    a[i, j] = 0.5 * a[i - 1, j] + 0.25 * a[i, j - 1] + value


def count(key, value, totals):
    _, j = key
    totals[j] += value


def test_the_larger_array_stays():
    for users, items, first in ((2000, 100, "i and j"), (100, 2000, "j and i")):
        ratings = data.ratings(3000, users, items)
        loop = baechi.foreach(applications.factorise)
        found = loop.analyse(ratings, *applications.factors(ratings, 8))
        assert found.text == f"2D over {first}"
        assert found.plans[0].startswith(f"2D over {first} in 4 x 4 parts: ")
        other = first[::-1].replace("dna", "and")
        assert any(plan.startswith(f"2D over {other}") for plan in found.plans[1:])


def test_a_key_with_work_for_all():
    """Blocks along a key of three values are three, whatever lies with them."""
    i, j = (each.ravel() for each in np.meshgrid(np.arange(3), np.arange(4000), indexing="ij"))

    def add(key, value, a):
        i, j = key
        a[i, j] += value

    entries = baechi.Entries((i, j), np.ones(len(i), np.float32))
    loop = baechi.foreach(add, workers=8)
    arrays = [np.zeros((3, 4000), np.float32)]
    assert loop.analyse(entries, *arrays).plans[0].startswith("independent along j in 8 parts")
    assert len(loop.layout(entries, *arrays).blocks) == 8


def test_sums_where_one_key_has_most_entries():
    random = np.random.default_rng(0)
    even, values = random.integers(0, 50, 20_000), np.ones(20_000, np.int32)
    skewed = np.where(random.random(20_000) < 0.9, 0, even)
    schemes = []
    for j in (even, skewed):
        entries = baechi.Entries((np.arange(20_000), j), values, bounds=(20_000, 50))
        loop = baechi.foreach(count, machine="host:1")
        totals = np.zeros(50, np.int32)
        schemes.append(loop.analyse(entries, totals).text)
        assert (loop(entries, totals) == np.bincount(j, minlength=50)).all()
    assert schemes == ["1D over j", "independent with sums of 'totals'"]


def test_more_blocks_of_a_wavefront_change_no_bit():
    large = grid(400)
    start = np.random.default_rng(1).random((400, 400)).astype(np.float32)
    loop = baechi.foreach(wave, ordered=True, workers=2)
    blocks = loop.layout(large, start).blocks
    assert len(blocks) > 4
    serial = baechi.foreach(wave, ordered=True, workers=1, machine="host:1")
    assert loop(large, start).tobytes() == serial(large, start).tobytes()
    # Where there is little to do, what beginning a block takes counts.
    assert len(loop.layout(grid(10), start[:10, :10]).blocks) == 4


def test_the_report_says_what_was_compared():
    ratings = data.ratings(3000, 200, 100)
    loop = baechi.foreach(applications.factorise, machine="host:1", workers=2)
    loop(ratings, *applications.factors(ratings, 4))
    said = loop.report().partition("Schemes of the loop, simulated:\n")[2].splitlines()
    assert said[0].startswith("runs by 2D over i and j in 2 x 2 parts: ")
    assert said[1].startswith("  rather than 2D over ")


def test_devices_change_no_choice():
    """Nor does asking again."""
    ratings = data.ratings(3000, 200, 100)
    arrays = applications.factors(ratings, 4)
    plans = [
        baechi.foreach(applications.factorise, machine=machine).analyse(ratings, *arrays).plans
        for machine in ("host:1", "host:2", "host:4", "host:4")
    ]
    assert plans[0] and all(each == plans[0] for each in plans)
