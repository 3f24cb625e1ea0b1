# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every model of the collection in half of the memory that it uses beside its parameters."""

from __future__ import annotations

import pathlib
import re
import tempfile
from collections.abc import Callable, Sequence

from baechi import models
from baechi.experiments.benchmarks import Benchmark, chosen
from baechi.experiments.memory import DISTURBED, POOL, Runs, mib, ratio
from baechi.experiments.tables import Cell, Table

STEPS = 6
UNFIT = "does not fit"
BELOW = 0.8  # of the resident bytes, with a pool
MODELS = [Benchmark(name, name, "small") for name in models.NAMES]


def tables(names: Sequence[str], tell: Callable[[str], object]) -> list[Table]:
    """A row for each of these models, or of all."""
    asked = chosen(MODELS, list(names))
    with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
        runs = Runs(pathlib.Path(temporary), tell, STEPS)
        rows = [_row(runs, each) for each in asked]
    return [
        Table(
            "halves",
            "Every model in half of what it uses beside its parameters (executed, small)",
            [
                "One host device. *Half*: what is resident and half of the rest of the peak, "
                "without a pool; where no plan fits that, *with a pool* beside it. *Below*: "
                f"{BELOW:.0%} of what is resident, with a pool; *in pieces*: cut to fit that. How "
                f"much longer a step takes than with ample memory: the fastest of {STEPS} steps; "
                f"in parentheses what the plans say with roofline costs. *Bits*: whether all "
                f"results of the last step are those of ample memory, bit for bit. {DISTURBED}",
            ],
            {
                "model": "model",
                "resident": "resident, MiB",
                "peak": "peak, MiB",
                "half": "half, MiB",
                "slower": "slower, times",
                "pooled": "with a pool",
                "below": "below, MiB",
                "far_slower": "slower, times",
                "bits": "bits",
            },
            rows,
        )
    ]


def _row(runs: Runs, benchmark: Benchmark) -> dict[str, Cell]:
    row: dict[str, Cell] = {"model": benchmark.name}
    module = runs.module(benchmark.name, benchmark.arguments())
    ample = runs.run(benchmark.name, module, "host:1", results="ample")
    if isinstance(ample, str):
        return {**row, "peak": ample}
    device = ample["devices"][0]
    resident, peak = device["resident_bytes"], device["peak_bytes"]
    half = (resident + peak) // 2
    below = int(BELOW * resident)
    row |= {"resident": mib(resident), "peak": mib(peak), "half": mib(half), "below": mib(below)}
    alike = []

    def within(limit: int, pool: str) -> str:
        told = runs.run(benchmark.name, module, f"host:1@{limit}{pool}", results="limited")
        if isinstance(told, str):
            needs = re.search(r"'([^']*)' by itself needs ([\d.]+ \w+)", told)
            return f"{UNFIT} ({needs[1]} alone needs {needs[2]})" if needs else UNFIT
        alike.append(runs.same("ample", "limited"))
        return ratio(told, ample) + (", in pieces" if "cut_to_fit" in told else "")

    row["slower"] = slower = within(half, "")
    if slower.startswith(UNFIT):
        row["pooled"] = within(half, f"+{POOL}")
    row["far_slower"] = within(below, f"+{POOL}")
    return {**row, "bits": "–" if not alike else "the same" if all(alike) else "differ"}
