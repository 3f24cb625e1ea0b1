#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffered arrays of loops by how late they are seen (docs/loops.md).

    .venv/bin/python benchmarks/loops/staleness.py [--workers N] [--exchanges N] [--seconds]

Prints the loss by passes: serial, with workers that wait for each other at each exchange, and at
their own pace, with the parameter store of replicas. Workers are simulated; --seconds has them on
two threads and in two processes, and prints what a pass takes.
"""

import argparse
import time

import numpy as np

import baechi
from baechi.loops import applications, data

PASSES = (1, 2, 4, 8)
STALENESS = (0, 1, 4, 16)


def logistic_loss(entries, weights):
    numbers, values, label = entries.leaves
    margin = (weights[numbers] * values).sum(1).astype(np.float64)
    return float(np.mean(np.logaddexp(0, np.where(label > 0, -margin, margin))))


def cases():
    """By name: body, entries, arrays, what is buffered, and the loss of what a run gives."""
    samples, _ = data.samples(100_000, 20_000, 16)
    yield (
        "sparse logistic regression",
        applications.regress,
        samples,
        [np.zeros(20_000, np.float32)],
        ["weights"],
        lambda entries, weights: logistic_loss(entries, weights),
    )
    ratings = data.ratings(200_000, 4_000, 1_000)
    yield (
        "factorisation, both factors buffered",
        applications.factorise,
        ratings,
        applications.factors(ratings, 16),
        ["users", "items"],
        lambda entries, found: applications.error(entries, *found),
    )


def losses(run, entries, arrays, loss):
    made, done = tuple(arrays), 0
    for passes in PASSES:
        with np.errstate(all="ignore"):
            found = run(entries, *made, passes=passes - done)
            made, done = found if isinstance(found, tuple) else (found,), passes
            yield loss(entries, found)


def told(name, run, entries, arrays, loss):
    print(f"| {name} |", end="", flush=True)
    try:
        for each in losses(run, entries, arrays, loss):
            print(f" {each:.4f} |", end="", flush=True)
    except baechi.LoopError:  # a number that is not finite
        print(" diverged |", end="")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--exchanges", type=int, default=128)
    parser.add_argument("--seconds", action="store_true")
    given = parser.parse_args()
    for name, body, entries, arrays, buffered, loss in cases():
        print(f"\n{name}\n\n| | {' | '.join(map(str, PASSES))} |\n|---|{'---|' * len(PASSES)}")
        serial = baechi.foreach(body, machine="host:1", workers=1, fallback="serial")
        told("serial", serial, entries, arrays, loss)
        same = {"workers": given.workers, "buffered": buffered, "exchanges": given.exchanges}
        told("waiting", baechi.foreach(body, **same).simulate, entries, arrays, loss)
        for staleness in STALENESS:
            loop = baechi.foreach(body, staleness=staleness, **same)
            told(f"staleness {staleness}", loop.simulate, entries, arrays, loss)
        if given.seconds:
            seconds(body, entries, arrays, buffered, given.exchanges)


def seconds(body, entries, arrays, buffered, exchanges):
    print("\nms a pass of two workers")
    for name, options in {
        "waiting": {},
        "staleness 1": {"staleness": 1},
        "staleness 1, two processes": {"staleness": 1, "ranks": 2},
    }.items():
        loop = baechi.foreach(
            body, machine="host:2", workers=2, buffered=buffered, exchanges=exchanges, **options
        )
        loop(entries, *arrays)
        begun = time.perf_counter()
        loop(entries, *arrays, passes=5)
        print(f"{name:28}{1e3 * (time.perf_counter() - begun) / 5:10.1f}", flush=True)


if __name__ == "__main__":
    main()
