#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix factorisation by stochastic gradient descent as a serial loop (docs/loops.md).

    .venv/bin/python benchmarks/loops/factorisation.py [--ratings N] [--rank R]

Prints the root mean squared error by passes: serial, in blocks of several logical workers, and
data parallel, whose workers change copies; then the time of a pass on one device and on two,
beside a loop in C++ that is compiled here for this machine. Ratings are seeded: users of
popularity (i + 10)^-0.6, items of (i + 10)^-0.9, factors of rank 16 and noise of 0.3.
"""

import argparse
import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import baechi

STEP = np.float32(0.02)
PASSES = (1, 6, 12, 24)

CPP = """
extern "C" void factorise(const int *i, const int *j, const float *r, long count,
                          float *__restrict users, float *__restrict items) {
  for (long n = 0; n < count; ++n) {
    float *__restrict u = users + long(i[n]) * RANK;
    float *__restrict v = items + long(j[n]) * RANK;
    float dot = 0;
    for (int k = 0; k < RANK; ++k)
      dot += u[k] * v[k];
    float step = 0.02f * (r[n] - dot);
    for (int k = 0; k < RANK; ++k) {
      float old = u[k];
      u[k] += step * v[k];
      v[k] += step * old;
    }
  }
}
"""


def factorise(key, rating, users, items):
    i, j = key
    u, v = users[i], items[j]
    step = STEP * (rating - u @ v)
    users[i] += step * v
    items[j] += step * u


def ratings(count, users, items, seed=0):
    """Entries without duplicates, in random order."""
    random = np.random.default_rng(seed)

    def draw(size, power, number):
        chances = (np.arange(size) + 10.0) ** power
        shuffled = random.permutation(size)
        return shuffled[random.choice(size, number, p=chances / chances.sum())]

    pairs = np.empty(0, np.int64)
    while len(pairs) < count:
        drawn = draw(users, -0.6, count) * items + draw(items, -0.9, count)
        pairs = np.unique(np.concatenate([pairs, drawn]))
    pairs = random.permutation(pairs)[:count]
    keys = pairs // items, pairs % items
    planted = [random.normal(size=(n, 16)) / 2 for n in (users, items)]
    stars = (planted[0][keys[0]] * planted[1][keys[1]]).sum(1) + random.normal(0, 0.3, count)
    return baechi.Entries(keys, stars.astype(np.float32), bounds=(users, items))


def factors(users, items, rank, seed=1):
    random = np.random.default_rng(seed)
    return [random.normal(0, 0.1, (n, rank)).astype(np.float32) for n in (users, items)]


def error(entries, users, items):
    with np.errstate(over="ignore", invalid="ignore"):
        found = (users[entries.keys[0]] * items[entries.keys[1]]).sum(1)
        return float(np.sqrt(np.mean((entries.leaves[0] - found) ** 2)))


def convergence(entries, start):
    serial = baechi.foreach(factorise, machine="host:1", workers=1)
    rows = [("serial", serial, entries)]
    for workers in (2, 8, 24):
        # One block in the order of the blocks: the same bits (python/tests/test_loops.py).
        order = baechi.foreach(factorise, workers=workers).order(entries, *start)
        columns = [column[order] for column in entries.keys]
        in_order = baechi.Entries(columns, entries.leaves[0][order], entries.bounds)
        rows.append((f"2D, {workers} workers", serial, in_order))
    for workers in (2, 8):
        copies = baechi.foreach(factorise, workers=workers, buffered=["users", "items"])
        rows.append((f"data parallel, {workers} workers", copies, entries))
    print(f"{'RMSE after pass':28}" + "".join(f"{passes:>10}" for passes in PASSES))
    for name, loop, over in rows:
        arrays, done, errors = start, 0, []
        for passes in PASSES:
            arrays = loop(over, *arrays, passes=passes - done)
            done = passes
            errors.append(error(entries, *arrays))
        print(f"{name:28}" + "".join(f"{each:10.4f}" for each in errors), flush=True)


def by_hand(entries, start, rank, passes):
    """The median of a pass, ms."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder) / "loop.cpp", pathlib.Path(folder) / "loop.so"
        source.write_text(CPP)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", f"-DRANK={rank}"]
        subprocess.run(["c++", *flags, source, "-o", library], check=True)
        loop = ctypes.CDLL(str(library)).factorise
        arrays = [array.copy() for array in (*entries.keys, entries.leaves[0], *start)]
        i, j, r, users, items = (array.ctypes.data_as(ctypes.c_void_p) for array in arrays)
        times = []
        for _ in range(passes):
            begun = time.perf_counter()
            loop(i, j, r, ctypes.c_long(len(entries)), users, items)
            times.append(1e3 * (time.perf_counter() - begun))
        return statistics.median(times)


def speed(entries, start, rank, passes=7):
    print(f"\n{'a pass, ms (median)':28}{by_hand(entries, start, rank, passes):10.1f}  C++ by hand")
    for devices in (1, 2):
        loop = baechi.foreach(factorise, machine=f"host:{devices}", workers=2)
        loop(entries, *start, passes=passes)
        measured = loop.report().split("measured ")[1].split(" ms")[0]
        print(f"{'':28}{float(measured):10.1f}  host:{devices}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--rank", type=int, default=16)
    given = parser.parse_args()
    entries = ratings(given.ratings, given.users, given.items)
    start = factors(given.users, given.items, given.rank)
    convergence(entries, start)
    speed(entries, start, given.rank)


if __name__ == "__main__":
    main()
