#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the imported models on host devices and prints what they reach, as a Markdown table.

    benchmarks/execution/run_models.py [--bin build/release/bin] [--steps 20] [--write
    docs/benchmarks-execution.md]

Every row is one run of baechi-run: the placed program and the single device take turns, step by
step, so that the speed-up is a ratio of one run. "error" is the measured step against the
predicted one; a processor's clock and its neighbours change from minute to minute, so that the
single device, whose time is the sum of its kernels', is off as well, and "plan error" is the
measured speed-up against the predicted one. "compile" is all that happens between reading the
model and its first step but for measuring kernels, which a profile saves the next time. The first
row's run calibrates the machine that the other rows with as many devices are predicted with; "gap
to bound" is the placement's. After the table: the medians and the worst of both errors over the
machines that have a core for each device.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "test" / "fixtures"
CASES = [
    (model, machine, placer)
    for model in ("gnmt_small.mlir.xz", "transformer_small.mlir.xz", "mlp_small.mlir")
    for machine, placer in (
        ("host:2", "msct"),
        ("host:2", "metf"),
        ("host:2", "mtopo"),
        ("host:4", "msct"),
    )
]
# The rest of the fixtures take less than a millisecond.
CASES += [
    (path.name, "host:2", placer)
    for path in sorted(FIXTURES.glob("*.mlir*"))
    if path.name not in {case[0] for case in CASES}
    for placer in ("msct", "metf", "mtopo")
]
# What the first row's run fits (--calibrate) the others on this machine are predicted with.
CALIBRATED = "host:2"
HEADER = (
    "| model | operations → operators → kernels | machine | placer (won) | predicted ms | "
    "measured ms | error % "
    "| one device ms (error %) | speed-up (predicted) | plan error % | gap to bound % | place s "
    "| compile s |"
)


def run(binary, model, machine, placer, steps, folder):
    name = model.split(".")[0]
    report = folder / "report.json"
    arguments = [f"--machine={machine}"]
    fitted = folder / f"{machine}.json".replace(":", "-")
    if fitted.exists():
        arguments = [f"--machine={fitted}"]
    elif machine == CALIBRATED:
        arguments.append(f"--calibrate={fitted}")
    subprocess.run(
        [
            str(binary / "baechi-run"),
            str(FIXTURES / model),
            *arguments,
            f"--placer={placer}",
            f"--steps={steps}",
            f"--profile={folder / (name + '.profile.json')}",
            f"--json={report}",
            f"--reference={FIXTURES / (name + '.reference.json')}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return json.loads(report.read_text())


def plan_error(report):
    """How much longer the step takes than planned, in a machine's time of the moment."""
    planned = report["single_device_predicted_ns"] / report["predicted_step_ns"]
    return planned / report["speed_up"] - 1


def error(report):
    return report["measured_step_ns"] / report["predicted_step_ns"] - 1


def summary(reports):
    """A line on the errors; devices that share a core have no prediction."""

    def of(name, errors):
        sizes = sorted(abs(value) * 100 for value in errors)
        return f"{name} error: median {statistics.median(sizes):.1f} %, worst {sizes[-1]:.1f} %"

    fair = [
        report
        for case, report in reports
        if int(case[1].split(":")[1]) <= len(os.sched_getaffinity(0))
    ]
    return (
        f"{of('Step', map(error, fair))}; {of('plan', map(plan_error, fair))} ({len(fair)} rows)."
    )


def row(model, machine, placer, report):
    predicted, measured = report["predicted_step_ns"], report["measured_step_ns"]
    bound = report["lower_bound_ns"]
    single, alone = report["single_device_ns"], report["single_device_predicted_ns"]
    seconds = report["seconds"]
    compile_seconds = sum(seconds.values()) - seconds["profile"]
    return (
        f"| {model.split('.')[0]} | {report['operations_before']} → {report['operators']} → "
        f"{report['kernels']} "
        f"| {machine} | {placer} ({report['winner']}) | {predicted / 1e6:.3f} | "
        f"{measured / 1e6:.3f} "
        f"| {100 * (measured - predicted) / predicted:+.1f} | {single / 1e6:.3f} "
        f"({100 * (single - alone) / alone:+.1f}) | {report['speed_up']:.2f} "
        f"({alone / predicted:.2f}) "
        f"| {100 * plan_error(report):+.1f} | "
        f"{100 * (report['placement_makespan_ns'] - bound) / bound:.1f} | {seconds['place']:.3f} "
        f"| {compile_seconds:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--write", type=pathlib.Path)
    args = parser.parse_args()
    reports = []
    lines = [HEADER, "|" + "---|" * HEADER.count(" | ") + "---|"]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            try:
                report = run(args.bin, *case, args.steps, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                sys.exit(f"run_models: {' '.join(case)}: {error.stderr.strip()}")
            reports.append((case, report))
            lines.append(row(*case, report))
            print(lines[-1], flush=True)
    lines += ["", summary(reports)]
    print(lines[-1])
    if args.write:
        args.write.write_text(
            "# Execution on host devices: last results\n\n"
            "`benchmarks/execution/run_models.py` on a machine with 2 cores; what the columns mean "
            "stands in it. Outputs equal the single device's bit for bit and the losses JAX's to "
            "1e-4 in every row, or the run fails.\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
