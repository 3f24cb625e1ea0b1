#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times what two builds make of the same models, as a Markdown table.

    benchmarks/execution/compare_builds.py OLD NEW [MODEL...] [--machine host:2] [--rounds 4]

OLD and NEW are folders of tools (build/release/bin), MODEL a file of a model (of the fixtures when
none is given). The builds take turns, each first in every other round; each measures its kernels
once, into a profile of its own. A row has the median over the rounds of new over old: of the step
on the machine, of the step on one device, of the whole run with its compilation. Nothing else
should run meanwhile.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "test" / "fixtures"
MODELS = ("mlp_small.mlir", "gnmt_small.mlir.xz", "transformer_small.mlir.xz")


def run(tools, model, machine, profile, report):
    command = [
        tools / "baechi-run",
        model,
        f"--machine={machine}",
        f"--profile={profile}",
        f"--json={report}",
    ]
    begin = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    took = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"compare_builds: {' '.join(map(str, command))}:\n{done.stderr}")
    found = json.loads(report.read_text())
    return found["measured_step_ns"], found["single_device_ns"], took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="*")
    parser.add_argument("--machine", default="host:2")
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    print(f"| model | {args.machine} | one device | whole run |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in args.models or [FIXTURES / model for model in MODELS]:
            ratios = []
            for turn in range(args.rounds + 1):
                found = {}
                for tools in (args.old, args.new) if turn % 2 else (args.new, args.old):
                    profile = folder / f"{model.name}.{'new' if tools == args.new else 'old'}.json"
                    found[tools] = run(tools, model, args.machine, profile, folder / "report.json")
                if turn:  # the first one measures kernels
                    ratios.append([n / o for o, n in zip(found[args.old], found[args.new])])
            middle = [statistics.median(column) for column in zip(*ratios)]
            print(
                f"| {model.name.split('.')[0]} | " + " | ".join(f"{m:.2f}" for m in middle) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
