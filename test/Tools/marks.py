# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of Inputs/marks.mlir, and what becomes of them, one entry after the other.

marks.py make INPUTS.npz
marks.py check INPUTS.npz OUTPUTS.npz
"""

import math
import random
import struct
import sys

import npz


def make(path: str) -> None:
    numbers = random.Random(0)
    entries, rows = range(4096), range(1000)
    npz.save(
        path,
        rows=npz.make_array("<i4", (4096,), [numbers.randrange(999) for _ in entries]),
        values=npz.make_array("<f4", (4096,), [numbers.gauss(0, 1) for _ in entries]),
        seen=npz.make_array("<i4", (1000,), [numbers.randrange(3) for _ in rows]),
        low=npz.make_array("<f4", (1000,), [numbers.choice((math.nan, 0)) for _ in rows]),
        pairs=npz.make_array("|i1", (1000,), [numbers.randrange(-2, 2) for _ in rows]),
    )


def check(inputs: str, outputs: str) -> None:
    given = npz.load(inputs)
    # As bytes, of which what nobody sets stays as it is.
    data = {name: bytearray(given[name].data) for name in ("seen", "low", "pairs")}
    for entry, value in zip(given["rows"].values, given["values"].values, strict=True):
        row = entry // 2
        struct.pack_into("<i", data["seen"], 4 * row, 1)
        if value < 0:
            struct.pack_into("<f", data["low"], 4 * row, -0.0)
        struct.pack_into("b", data["pairs"], row, 0)
    found = npz.load(outputs)
    for number, (name, expected) in enumerate(data.items()):
        assert found[f"out{number}"] == given[name]._replace(data=bytes(expected)), name
    print("has the bits of one entry after the other")


command, *paths = sys.argv[1:]
{"make": make, "check": check}[command](*paths)
