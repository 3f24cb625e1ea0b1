#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the imported models on host devices and prints what they reach, as a Markdown table.

    benchmarks/execution/run_models.py [--bin build/release/bin] [--steps 20] [--write docs/benchmarks-execution.md]

Every row is one run of baechi-run: the placed program and the single device take turns, step by step, so that the
speed-up is a ratio of one run. "error" is the measured step against the predicted one. "compile" is all that happens
between reading the model and its first step but for measuring kernels, which a profile saves the next time.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "test" / "fixtures"
CASES = [(model, machine, placer)
         for model in ("mlp_small.mlir", "transformer_small.mlir.xz", "gnmt_small.mlir.xz")
         for machine, placer in (("host:2", "msct"), ("host:2", "metf"), ("host:2", "mtopo"), ("host:4", "msct"))]
CASES.append(("gnmt_large.mlir.xz", "host:2", "msct"))
HEADER = ("| model | operations → operators → kernels | machine | placer (won) | predicted ms | measured ms | error % "
          "| one device ms | speed-up | gap to bound % | place s | compile s |")


def run(binary, model, machine, placer, steps, folder):
    name = model.split(".")[0]
    report = folder / "report.json"
    subprocess.run([str(binary / "baechi-run"), str(FIXTURES / model), f"--machine={machine}", f"--place={placer}",
                    f"--steps={steps}", f"--profile={folder / (name + '.profile.json')}", f"--json={report}",
                    f"--reference={FIXTURES / (name + '.reference.json')}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return json.loads(report.read_text())


def row(model, machine, placer, report):
    predicted, measured = report["predicted_step_ns"], report["measured_step_ns"]
    bound = report["lower_bound_ns"]
    seconds = report["seconds"]
    compile_seconds = sum(seconds.values()) - seconds["profile"]
    return (f"| {model.split('.')[0]} | {report['operations_before']} → {report['operators']} → {report['kernels']} "
            f"| {machine} | {placer} ({report['winner']}) | {predicted / 1e6:.3f} | {measured / 1e6:.3f} "
            f"| {100 * (measured - predicted) / predicted:+.1f} | {report['single_device_ns'] / 1e6:.3f} "
            f"| {report['speed_up']:.2f} | {100 * (predicted - bound) / bound:.1f} | {seconds['place']:.3f} "
            f"| {compile_seconds:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--write", type=pathlib.Path)
    args = parser.parse_args()
    lines = [HEADER, "|" + "---|" * HEADER.count(" | ") + "---|"]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            try:
                report = run(args.bin, *case, args.steps, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                sys.exit(f"run_models: {' '.join(case)}: {error.stderr.strip()}")
            lines.append(row(*case, report))
            print(lines[-1], flush=True)
    if args.write:
        args.write.write_text("# Execution on host devices: last results\n\n"
                              "`benchmarks/execution/run_models.py` on a machine with 2 cores; what the columns mean "
                              "stands in it. Outputs equal the single device's bit for bit and the losses JAX's to "
                              "1e-4 in every row, or the run fails.\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
