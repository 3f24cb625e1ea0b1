# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What loops report: blocks are measured with the entries that they have."""

import re

import numpy as np
import pytest

import baechi
from baechi.loops import applications, data


def factorise(count):
    """A loop that has run, and its entries and arrays."""
    ratings = data.ratings(count, 2000, 500)
    loop = baechi.foreach(applications.factorise, machine="host:1", workers=2)
    arrays = applications.factors(ratings, 8)
    loop(ratings, *arrays, passes=3)
    return loop, ratings, arrays


def predicted_ns(loop):
    number, unit = re.search(r"predicted ([\d.]+) (ms|us)", loop.report()).groups()
    return float(number) * {"ms": 1e6, "us": 1e3}[unit]


def test_blocks_are_measured_with_their_entries():
    """A hundred times the entries are predicted to take far longer: no estimate knows how many
    there are."""
    few, many = factorise(2_000)[0], factorise(200_000)[0]
    assert "kernels measured, 0 estimated" in many.report()
    assert "measured" in many.report().split("predicted")[1]
    assert predicted_ns(many) > 5 * predicted_ns(few)


def test_asking_changes_no_bit():
    loop, ratings, arrays = factorise(2_000)
    before = loop(ratings, *arrays, passes=2)
    loop.report()
    for one, two in zip(before, loop(ratings, *arrays, passes=2), strict=True):
        assert one.tobytes() == two.tobytes()


def test_timelines_are_drawn():
    loop, *_ = factorise(2_000)
    picture = loop.picture()
    assert picture.step_ns > 0
    figure = baechi.plot_timeline(loop)
    assert figure.axes


def test_reports_are_of_the_last_call():
    loop, ratings, arrays = factorise(2_000)
    other = data.ratings(50, 2000, 500)
    loop(other, *arrays)
    assert "median of 1" in loop.report()
    loop(ratings, *arrays)
    assert "median of 3" in loop.report()


def test_nothing_to_tell_yet():
    loop = baechi.foreach(applications.factorise)
    with pytest.raises(RuntimeError, match="call it first"):
        loop.report()
    with pytest.raises(RuntimeError, match="no plan to draw: call the loop first"):
        loop.picture()
    late = baechi.foreach(applications.regress, buffered=["weights"], staleness=1)
    samples, _ = data.samples(100, 20, 4)
    late(samples, np.zeros(20, np.float32))
    with pytest.raises(RuntimeError, match="no plan to draw: workers with a staleness"):
        late.picture()


@pytest.mark.parametrize("option", ["workers", "exchanges"])
@pytest.mark.parametrize("number", [True, 0, 1.5, "2"])
def test_numbers_are_numbers(option, number):
    with pytest.raises(ValueError, match=f"{option} is .*: give a number of at least 1"):
        baechi.foreach(applications.regress, buffered=["weights"], **{option: number})


def test_keys_say_what_they_are(capsys):
    def body(i, value, x):
        print(2 * i + 1)
        x[i] = value

    entries = baechi.Entries((np.arange(5),), np.ones(5, np.float32))
    baechi.foreach(body).analyse(entries, np.zeros(5, np.float32))
    assert "<a key of 1 to 9>" in capsys.readouterr().out
