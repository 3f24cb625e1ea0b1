# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose buffered arrays are in the parameter store of replicas."""

import os
import signal

import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.loops import applications, data
from test_loop_programs import case, programs

COUNT, KINDS = 400, 7


def count_kinds(n, kind, counts):
    counts[kind] = counts[kind] + np.float32(1)


def kinds():
    chosen = np.random.default_rng(0).integers(0, KINDS, COUNT)
    entries = baechi.Entries((np.arange(COUNT),), chosen)
    return entries, np.zeros(KINDS, np.float32), np.bincount(chosen, minlength=KINDS)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("staleness", [0, 2])
def test_no_change_is_lost(ranks, staleness):
    """Sums of whole numbers are the same in any order; three calls, of which the ranks stay."""
    entries, counts, each = kinds()
    loop = baechi.foreach(
        count_kinds,
        workers=5,
        ranks=ranks,
        buffered=["counts"],
        exchanges=4,
        staleness=staleness,
    )
    for passes in (1, 3, 0):
        assert (loop(entries, counts, passes=passes) == passes * each).all()
    assert (counts == 0).all()
    assert f"staleness {staleness}" in loop.report()


@pytest.mark.parametrize("ranks", [1, 2])
def test_pieces_go_round(ranks):
    """Topics: documents and words go from worker to worker, totals are in the store, and entries
    have new values."""
    entries, _ = data.tokens(20, 30, 4, seed=3, length=25)
    start = applications.counts(entries, 4)
    loop = baechi.foreach(
        applications.topics, workers=3, ranks=ranks, buffered=["totals"], staleness=1
    )
    values, *arrays = loop(entries, *start, passes=3)
    assert (values["topic"] != entries.leaves[1]).any()
    told = entries.with_values(values)
    for found, expected in zip(arrays, applications.counts(told, 4), strict=True):
        assert (found == expected).all()


def test_sums_are_in_the_blocks_order():
    def body(n, value, seen, total):
        seen[value[1]] = seen[value[1]] + np.float32(1)
        total[0] += value[0]

    random = np.random.default_rng(2)
    values = random.normal(size=300).astype(np.float32), random.integers(0, 5, 300)
    entries = baechi.Entries((np.arange(300),), values)
    start = np.zeros(5, np.float32), np.full(1, 0.25, np.float32)
    same = {"workers": 3, "buffered": ["seen"], "reassociate": True}
    late = baechi.foreach(body, staleness=2, **same)(entries, *start, passes=2)
    waiting = baechi.foreach(body, **same)(entries, *start, passes=2)
    for one, two in zip(late, waiting, strict=True):
        assert one.tobytes() == two.tobytes()


def test_simulated_are_the_same_each_time():
    entries, arrays, _ = case("regress")
    loop = baechi.foreach(
        programs(jnp)["regress"],
        workers=24,
        buffered=["weights", "bias"],
        exchanges=2,
        staleness=3,
    )
    first, again = (loop.simulate(entries, *arrays, passes=2) for _ in range(2))
    for one, two in zip(first, again, strict=True):
        assert one.tobytes() == two.tobytes()


def loss(entries, weights):
    numbers, values, label = entries.leaves
    margin = (weights[numbers] * values).sum(1).astype(np.float64)
    return float(np.mean(np.log1p(np.exp(np.where(label > 0, -margin, margin)))))


@pytest.mark.parametrize("how", ["threads", "ranks", "simulated"])
def test_what_is_late_converges(how):
    """Sparse logistic regression, whose loss is near that of the serial run."""
    entries, _ = data.samples(3000, 500, 8, seed=1)
    start = np.zeros(500, np.float32)
    serial = baechi.foreach(applications.regress, machine="host:1", fallback="serial")
    best = loss(entries, serial(entries, start, passes=5))
    loop = baechi.foreach(
        applications.regress,
        workers=4,
        ranks=2 if how == "ranks" else 1,
        buffered=["weights"],
        exchanges=16,
        staleness=2,
    )
    run = loop.simulate if how == "simulated" else loop
    assert abs(loss(entries, run(entries, start, passes=5)) - best) < 0.02 * best


def test_errors():
    entries, counts, _ = kinds()
    with pytest.raises(ValueError, match="staleness is -1: give a number of at least 0"):
        baechi.foreach(count_kinds, buffered=["counts"], staleness=-1)
    with pytest.raises(ValueError, match="staleness is 1 and no array is buffered: name some"):
        baechi.foreach(count_kinds, staleness=1)
    with pytest.raises(ValueError, match="ranks is 2 and workers 1: .* as many workers at least"):
        baechi.foreach(count_kinds, ranks=2, workers=1, buffered=["counts"], staleness=1)

    def keep_last(n, kind, counts):
        counts[kind] = kind

    late = baechi.foreach(keep_last, buffered=["counts"], staleness=1)
    with pytest.raises(baechi.LoopError, match=r"'counts' is of int32, .*astype\(np.float32\)"):
        late(entries, counts.astype(np.int32))

    def copied(n, kind, x, y):
        y[n] = x[n]

    unwritten = baechi.foreach(copied, buffered=["x"], staleness=1)
    with pytest.raises(baechi.LoopError, match="staleness is of arrays that are buffered, and"):
        unwritten(entries, np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32))


def test_halos_are_refused():
    def walk(key, x, a, totals):
        i, j = key
        a[i, j] = a[i, j - 1] + a[i - 1, j] + x + totals[0]
        totals[0] += x

    i, j = (each.ravel() for each in np.meshgrid(np.arange(1, 9), np.arange(1, 9), indexing="ij"))
    entries = baechi.Entries((i, j), np.ones(64, np.float32))
    loop = baechi.foreach(walk, workers=2, buffered=["totals"], staleness=1)
    with pytest.raises(baechi.LoopError, match="'a' is read beside the block .*: leave staleness"):
        loop(entries, np.zeros((9, 9), np.float32), np.zeros(1, np.float32))


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_a_worker_raises_ends_all(ranks):
    def halved(n, place, x):
        x[place] = x[place] * np.float32(1e30)

    loop = baechi.foreach(halved, workers=4, ranks=ranks, buffered=["x"], staleness=1)
    entries = baechi.Entries((np.arange(20),), np.where(np.arange(20) == 13, 99, 0))
    x = np.zeros(20, np.float32)
    with pytest.raises(baechi.LoopError, match=r"'x' is read at 99 by entry 13 \(i = 13\)"):
        loop(entries, x)
    grows = baechi.Entries((np.arange(20),), np.zeros(20, np.int32))
    with pytest.raises(
        baechi.LoopError, match=r"changes 'x' at \[0\] by a number .* smaller steps"
    ):
        loop(grows, np.ones(20, np.float32))
    assert (loop(grows, x) == 0).all()


def test_a_rank_that_is_lost_is_named():
    entries, counts, each = kinds()
    loop = baechi.foreach(count_kinds, workers=4, ranks=2, buffered=["counts"], staleness=1)
    loop(entries, counts)
    started = loop._last._processes._processes
    os.kill(started[1].pid, signal.SIGKILL)
    started[1].wait()
    with pytest.raises(RuntimeError, match="rank 1 of the loop has ended, .*: call the loop again"):
        loop(entries, counts)
    assert (loop(entries, counts) == each).all()


@pytest.mark.parametrize("ranks", [1, 2])
def test_arrays_that_change_between_calls(ranks):
    """What blocks only read is read anew in each call."""

    def body(n, kind, scale, sums):
        sums[kind] = sums[kind] + scale[n]

    entries, sums, each = kinds()
    scale = np.ones(COUNT, np.float32)
    same = {"workers": 3, "ranks": ranks, "buffered": ["sums"]}
    loop = baechi.foreach(body, staleness=1, **same)
    assert (loop(entries, scale, sums) == each).all()
    scale[:] = 2
    assert (loop(entries, scale, sums) == 2 * each).all()
    assert (loop.simulate(entries, scale, sums) == 2 * each).all()


def test_what_runs_serially_has_no_store():
    def body(n, kind, x, counts):
        x[19 - n] = x[19 - n] + counts[kind]  # which no blocks are cut by
        counts[kind] = counts[kind] + np.float32(1)

    entries = baechi.Entries((np.arange(20),), np.arange(20) % KINDS)
    arrays = np.zeros(20, np.float32), np.zeros(KINDS, np.float32)
    loop = baechi.foreach(body, buffered=["counts"], staleness=1)
    with pytest.raises(baechi.LoopError, match="turn 'x' round"):
        loop(entries, *arrays)
    loop = baechi.foreach(body, buffered=["counts"], staleness=1, fallback="serial")
    x, counts = loop(entries, *arrays)
    assert (counts == np.bincount(np.arange(20) % KINDS)).all()
    assert (x[::-1] == np.arange(20) // KINDS).all()
    assert "placement" in loop.report()
