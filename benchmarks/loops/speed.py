#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast a pass of a serial loop is (docs/loops.md).

    .venv/bin/python benchmarks/loops/speed.py [factorisation] [batches] [topics]
        [--ratings N] [--rank R] [--documents N]

factorisation: a pass on one device and on two, beside a loop in C++ that is compiled here for this
machine, in turns. batches: the same by JAX and PyTorch in mini-batches, each with its error after
the same passes: what converges as the loop does can be compared. topics: LDA by Gibbs sampling on
one device and on two. Without names, all. Ratings have the size of MovieLens-10M.
"""

import argparse
import re
import statistics
import time

import factorisation
import jax
import jax.numpy as jnp
import numpy as np
import torch

import baechi
from baechi.loops import applications, data

PASSES = 3
BATCHES = (100, 1_000, 10_000)
ROUNDS = 5
STEP = 0.02


def measured(loop):
    """The median of all passes of a loop but the first, ms."""
    number, unit = re.search(r"measured ([\d.,]+) (\S+)", loop.report()).groups()
    return float(number.replace(",", "")) * {"s": 1e3, "ms": 1, "us": 1e-3}[unit]


def in_turns(loops, entries, arrays, by_hand=None):
    """By name the median of a pass, ms: others' work on the machine meets all alike."""
    hand = []
    for _ in range(ROUNDS):
        for loop in loops.values():
            loop(entries, *arrays, passes=PASSES)
        if by_hand:
            hand.append(by_hand())
    medians = {name: measured(loop) for name, loop in loops.items()}
    return medians, statistics.median(hand) if hand else None


def of_factorisation(entries, start, rank):
    loops = {
        f"host:{devices}": baechi.foreach(
            factorisation.factorise, machine=f"host:{devices}", workers=2
        )
        for devices in (1, 2)
    }
    medians, hand = in_turns(
        loops, entries, start, lambda: factorisation.by_hand(entries, start, rank, PASSES)
    )
    one, two = medians["host:1"], medians["host:2"]
    print(f"factorisation, {len(entries):,} ratings, rank {rank}: a pass, ms (median)")
    print(f"  C++ by hand {hand:10.1f}")
    print(f"  host:1      {one:10.1f}  {hand / one:.2f} x by hand")
    print(f"  host:2      {two:10.1f}  {one / two:.2f} x host:1", flush=True)


def batches_of(entries, size):
    """Keys and ratings by batches; what is left over is another batch of no weight."""
    count = -(-len(entries) // size)
    columns = []
    for column in (*entries.keys, entries.leaves[0]):
        padded = np.zeros(count * size, column.dtype)
        padded[: len(column)] = column
        columns.append(padded.reshape(count, size))
    weight = np.zeros(count * size, np.float32)
    weight[: len(entries)] = STEP
    return [*columns, weight.reshape(count, size)]


def by_jax(entries, start, size):
    def batch(factors, given):
        users, items = factors
        i, j, rating, step = given
        u, v = users[i], items[j]
        error = (step * (rating - (u * v).sum(1)))[:, None]
        return (users.at[i].add(error * v), items.at[j].add(error * u)), None

    one_pass = jax.jit(
        lambda factors, given: jax.lax.scan(batch, factors, given)[0], donate_argnums=0
    )
    given = [jnp.asarray(each) for each in batches_of(entries, size)]
    jax.block_until_ready(one_pass(tuple(map(jnp.array, start)), given))  # compiles
    factors, times = tuple(map(jnp.array, start)), []
    for _ in range(PASSES):
        begun = time.perf_counter()
        factors = jax.block_until_ready(one_pass(factors, given))
        times.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(times), [np.asarray(each) for each in factors]


def by_torch(entries, start, size):
    users, items = (torch.from_numpy(array.copy()) for array in start)
    given = [torch.from_numpy(each) for each in batches_of(entries, size)]
    times = []
    for _ in range(PASSES):
        begun = time.perf_counter()
        for i, j, rating, step in zip(*given, strict=True):
            u, v = users[i], items[j]
            error = (step * (rating - (u * v).sum(1)))[:, None]
            users.index_add_(0, i, error * v)
            items.index_add_(0, j, error * u)
        times.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(times), [users.numpy(), items.numpy()]


def of_batches(entries, start, rank):
    loop = baechi.foreach(factorisation.factorise, machine="host:2", workers=2)
    made = [loop(entries, *start, passes=PASSES) for _ in range(ROUNDS)][-1]
    own, error = measured(loop), factorisation.error(entries, *made)
    print(
        f"mini-batches, {len(entries):,} ratings, rank {rank}: a pass, ms (median), and the error"
    )
    print(f"after {PASSES} passes\n  host:2              {own:10.1f}  {error:.4f}", flush=True)
    for name, run in (("JAX", by_jax), ("PyTorch", by_torch)):
        as_good = []
        for size in BATCHES:
            took, made = run(entries, start, size)
            its = factorisation.error(entries, *made)
            if its < 1.01 * error:
                as_good.append(took)
            print(f"  {name:8} of {size:6,}  {took:10.1f}  {its:.4f}", flush=True)
        said = f"{min(as_good) / own:.2f} x" if as_good else "none is"
        print(f"  {name}'s fastest that is within 1 %, of host:2's time: {said}", flush=True)


def of_topics(documents):
    entries, _ = data.tokens(documents, 10_000, 50)
    start = applications.counts(entries, 50)
    loops = {
        f"host:{devices}": baechi.foreach(
            applications.topics, machine=f"host:{devices}", workers=2, buffered=["totals"]
        )
        for devices in (1, 2)
    }
    medians, _ = in_turns(loops, entries, start)
    one, two = medians["host:1"], medians["host:2"]
    print(f"LDA, {len(entries):,} tokens, 50 topics: a pass, ms (median)")
    print(f"  host:1      {one:10.1f}\n  host:2      {two:10.1f}  {one / two:.2f} x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="factorisation, batches, topics")
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--users", type=int, default=71_567)
    parser.add_argument("--items", type=int, default=10_681)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--documents", type=int, default=30_000)
    given = parser.parse_args()
    what = given.what or ["factorisation", "batches", "topics"]
    if "factorisation" in what or "batches" in what:
        entries = data.ratings(given.ratings, given.users, given.items)
        start = applications.factors(entries, given.rank)
        if "factorisation" in what:
            of_factorisation(entries, start, given.rank)
        if "batches" in what:
            of_batches(entries, start, given.rank)
    if "topics" in what:
        of_topics(given.documents)


if __name__ == "__main__":
    main()
