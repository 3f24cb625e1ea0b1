# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of run-staleness.test, and what its results have to be, in double precision.

stale_step.py make INPUTS.npz REPLICAS
stale_step.py own INPUTS.npz                        what two replicas count differently
stale_step.py check INPUTS.npz OUTPUTS.npz STEPS    the mean of the replicas' own states
stale_step.py near INPUTS.npz OUTPUTS.npz STEPS     the truth that all of them look for
"""

import random
import sys

import npz

ROWS, WIDTH = 4, 8  # a replica's part of x


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def make(path: str, replicas: str) -> None:
    # Of these x, as good to descend on as most, 3000 steps end far below what near allows.
    numbers = random.Random(1)
    count = ROWS * int(replicas)
    x = npz.make_array("<f4", (count, WIDTH), [numbers.gauss(0, 1) for _ in range(count * WIDTH)])
    truth = npz.make_array("<f4", (WIDTH,), [numbers.gauss(0, 1) for _ in range(WIDTH)])
    y = npz.make_array("<f4", (count,), [dot(row, truth.values) for row in rows_of(x)])
    npz.save(path, x=x, y=y, w=npz.make_array("<f4", (WIDTH,), [0] * WIDTH))


def own(path: str) -> None:
    npz.save(path, x=npz.make_array("<i4", (2, 1), [1, 2]))


def rows_of(x):
    return [x.values[start : start + WIDTH] for start in range(0, len(x.values), WIDTH)]


def assert_close(found, expected, relative, absolute):
    assert found.shape == (len(expected),), found.shape
    for a, b in zip(found.values, expected, strict=True):
        assert abs(a - b) <= absolute + relative * abs(b), (found.values, expected)


def assert_counted(found, steps):
    assert found == npz.make_array("<i4", (), [steps]), found


def check(inputs: str, outputs: str, steps: str) -> None:
    given, found = npz.load(inputs), npz.load(outputs)
    w, x, y = given["w"].values, rows_of(given["x"]), given["y"].values
    replicas = len(x) // ROWS
    losses = []
    for _ in range(int(steps)):
        errors = [dot(row, w) - target for row, target in zip(x, y, strict=True)]
        parts = [errors[ROWS * r : ROWS * (r + 1)] for r in range(replicas)]
        losses = [dot(part, part) for part in parts]
        # The sum over all rows is that of the replicas' gradients.
        w = [v - 0.015625 * dot(errors, c) / replicas for v, c in zip(w, zip(*x), strict=True)]
    assert_close(found["out0"], w, 1e-4, 1e-5)
    assert_close(found["out2"], losses, 1e-3, 1e-5)
    assert_counted(found["out1"], int(steps))
    print("equals the mean")


def least_squares(x, y):
    """The w of x w = y, by the normal equations."""
    columns = list(zip(*x))
    system = [[*(dot(a, b) for b in columns), dot(a, y)] for a in columns]
    for i, pivot in enumerate(system):  # positive definite: no rows change places
        for j, row in enumerate(system):
            if i != j:
                factor = row[i] / pivot[i]
                row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(system)]


def near(inputs: str, outputs: str, steps: str) -> None:
    given, found = npz.load(inputs), npz.load(outputs)
    truth = least_squares(rows_of(given["x"]), given["y"].values)
    assert_close(found["out0"], truth, 0, 1e-2)
    assert_counted(found["out1"], int(steps))
    print("found the truth")


command, *given = sys.argv[1:]
{"make": make, "own": own, "check": check, "near": near}[command](*given)
