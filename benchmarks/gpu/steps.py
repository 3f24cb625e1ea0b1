#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the step libraries of a folder and compares their losses with JAX's.

    benchmarks/gpu/steps.py FOLDER [--steps N] [--only NAME] [--graphs 0|1]

The files are those of `benchmarks/gpu/run.sh prepare`, MODEL__MACHINE.so. Prints a table: the
median step, replayed as CUDA graphs and without (BAECHI_CUDA_GRAPHS=0), what graphs save an
operator, the largest relative difference of a loss, and what each device holds. Exits with 1 when
a loss is further off than 1e-4, or a step fails.
"""

import argparse
import os
import pathlib
import statistics
import sys
import types

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

try:
    import ml_dtypes  # noqa: F401
except ImportError:  # Python with NumPy alone: no bfloat16, which no fixture's step has
    sys.modules["ml_dtypes"] = types.SimpleNamespace(bfloat16=np.void)

import fixtures  # noqa: E402
from baechi.steps.library import StepError, StepLibrary  # noqa: E402

LIMIT = 1e-4
ALL = "*__*"
GOAL = 2  # µs an operator, of a step whose operators do next to nothing


def train(file, model, steps, graphs):
    """Losses, the steps' median wall time in ms, the number of operators, and the arenas."""
    os.environ["BAECHI_CUDA_GRAPHS"] = "1" if graphs else "0"
    step = StepLibrary(file)
    results = step.program["results"]
    loss_at = next(i for i, result in enumerate(results) if result["name"] == "loss")
    for i, value in enumerate(fixtures.initial_values(model)):
        step.set_argument(i, np.ascontiguousarray(value))
    losses, times = [], []
    for _ in range(steps):
        step.run()
        losses.append(float(step.result(loss_at)))
        times.append(step.wall_ns / 1e6)
    arenas = ", ".join(
        f"{d['name']} {d['arena_bytes'] / 2**20:.2f}" for d in step.program["devices"]
    )
    operators = sum(len(d["operators"]) for d in step.program["devices"])
    step.close()
    # The first two steps note and capture.
    return losses, statistics.median(times[2:] or times), operators, arenas


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", default=ALL, help="a program, MODEL__MACHINE")
    parser.add_argument("--graphs", choices=["0", "1"], help="only with graphs, or without")
    args = parser.parse_args()
    files = sorted(args.folder.glob(f"{args.only}.so"))
    ways = [args.graphs == "1"] if args.graphs else [True, False]
    if not files:
        sys.exit(
            f"steps.py: {args.folder} holds no MODEL__MACHINE.so: run benchmarks/gpu/run.sh prepare"
        )
    print(
        "| model | machine | step, ms | µs an operator | without graphs, ms | saved, µs an "
        "operator | losses off by "
        "| arenas, MiB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    wrong, overheads = 0, []
    for file in files:
        model, machine = file.stem.split("__")
        expected = fixtures.reference(model)["losses"][: args.steps]
        try:
            runs = [train(file, model, len(expected), graphs) for graphs in ways]
            (losses, step, operators, arenas), (eager_losses, eager, _, _) = runs[0], runs[-1]
        except StepError as error:
            wrong += 1
            print(f"| {model} | {machine} | | | | | failed: {error} | |", flush=True)
            continue
        pairs = [*zip(losses, expected, strict=True), *zip(eager_losses, expected, strict=True)]
        off = max(abs(a - b) / max(abs(b), 1e-30) for a, b in pairs)
        wrong += not off <= LIMIT
        mark = "" if off <= LIMIT else " WRONG"
        overheads.append(step * 1e3 / max(operators, 1))
        saved = (eager - step) * 1e3 / max(operators, 1)
        print(
            f"| {model} | {machine} | {step:.3f} | {step * 1e3 / max(operators, 1):.2f} | "
            f"{eager:.3f} | {saved:.2f} "
            f"| {off:.1e}{mark} | {arenas} |",
            flush=True,
        )
    # One program alone is looked at for something else, as under a profiler.
    if overheads and args.only == ALL:
        met = min(overheads) <= GOAL
        print(
            f"\ngoal: at most {GOAL} µs an operator with graphs (the smallest: "
            f"{min(overheads):.2f}): "
            f"{'reached' if met else 'missed'}"
        )
    print(f"\n{len(files) - wrong} programs right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
