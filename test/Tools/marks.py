# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of Inputs/marks.mlir, and what NumPy makes of them, one entry after the other.

marks.py make INPUTS.npz
marks.py check INPUTS.npz OUTPUTS.npz
"""

import sys

import numpy as np


def make(path: str) -> None:
    random = np.random.default_rng(0)
    np.savez(
        path,
        rows=random.integers(0, 999, 4096).astype(np.int32),
        values=random.normal(size=4096).astype(np.float32),
        seen=random.integers(0, 3, 1000).astype(np.int32),
        low=np.where(random.random(1000) < 0.5, np.nan, 0).astype(np.float32),
        pairs=random.integers(-2, 2, 1000).astype(np.int8),
    )


def check(inputs: str, outputs: str) -> None:
    given = dict(np.load(inputs))
    for row, value in zip(given["rows"] // 2, given["values"], strict=True):
        given["seen"][row] = 1
        if value < 0:
            given["low"][row] = -0.0
        given["pairs"][row] = 0
    found = np.load(outputs)
    names = ("seen", "low", "pairs")
    for number, name in enumerate(names):
        assert found[f"out{number}"].tobytes() == given[name].tobytes(), name
    print("has NumPy's bits")


command, *paths = sys.argv[1:]
{"make": make, "check": check}[command](*paths)
