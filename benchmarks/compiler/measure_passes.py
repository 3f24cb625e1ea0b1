#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the passes on programs of growing size, on one core, and prints Markdown tables.

    benchmarks/compiler/measure_passes.py [--sizes 10000,30000,100000] [--widths 16] [--update
    docs/benchmarks-compiler.md]

"form" is --baechi-form-kernels on a step of so many operations (make_program.py); "place" is
annotating, grouping, placing by m-SCT and partitioning for four devices of a step of so many
operators, unformed. Seconds are those that baechi-opt --mlir-timing reports, the memory is the
whole process. With --update the tables between the marks of FILE are replaced. Nothing else should
run meanwhile.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import make_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINE = "host:4"
PIPELINES = {
    "form": {"FormKernels": "--baechi-form-kernels"},
    "place": {
        "AnnotateCosts": "--baechi-annotate-costs",
        "Colocate": "--baechi-colocate",
        "Fuse": f"--baechi-fuse=machine={MACHINE}",
        "Place": f"--baechi-place=placer=msct machine={MACHINE}",
        "Partition": "--baechi-partition",
    },
}
GOALS = {"form": "100,000 in 5 s", "place": "100,000 in 15 s and 2 GiB"}


def run(binary, file, passes):
    """Seconds of each pass by its name, and the peak memory of the process in MiB."""
    command = [
        str(binary),
        str(file),
        *passes.values(),
        "-o",
        "/dev/null",
        "--mlir-disable-threading",
        "--mlir-timing",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        printed = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"measure_passes: {' '.join(command)} failed:\n{printed[-2000:]}")
    seconds = {
        name: float(re.search(rf"^ *([0-9.]+) \([^)]*\)  +{name}$", printed, re.MULTILINE).group(1))
        for name in passes
    }
    return seconds, usage.ru_maxrss / 1024


def table(binary, folder, name, sizes, widths):
    passes = PIPELINES[name]
    head = ["operations", *passes] + (["together s"] if len(passes) > 1 else []) + ["peak MiB"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for size in sizes:
        file = folder / f"{size}.mlir"
        if not file.exists():
            text, _ = make_program.program(size, widths)
            file.write_text(text, encoding="utf-8")
        seconds, memory = run(binary, file, passes)
        row = [f"{size:,}", *(f"{seconds[each]:.2f}" for each in passes)]
        if len(passes) > 1:
            row.append(f"{sum(seconds.values()):.2f}")
        lines.append("| " + " | ".join([*row, f"{memory:.0f}"]) + " |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--sizes", default="10000,30000,100000")
    parser.add_argument("--widths", type=int, default=16)
    parser.add_argument("--update", type=pathlib.Path)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    page = options.update.read_text(encoding="utf-8") if options.update else ""
    with tempfile.TemporaryDirectory() as folder:
        for name in PIPELINES:
            text = table(
                options.bin / "baechi-opt", pathlib.Path(folder), name, sizes, options.widths
            )
            print(f"{name} (goal: {GOALS[name]})\n\n{text}\n")
            page = re.sub(
                rf"(<!-- {name} -->\n).*?(<!-- end -->)",
                lambda found: f"{found[1]}{text}\n{found[2]}",
                page,
                flags=re.DOTALL,
            )
    if options.update:
        options.update.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
