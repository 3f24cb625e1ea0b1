#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How often both devices work at the same time when IREE runs a placed program.

    .venv/bin/python benchmarks/iree/concurrency.py [--size N]

Two independent chains of four products, one a device, that meet in a ninth, are
placed, exported and compiled; while they run, the state of IREE's worker threads
is read every millisecond. Prints, with and without the barriers that the export
adds, the share of the moments with any worker running in which both are. On a
machine of two quiet cores the most that can be had is 8/9 and a little less.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPT = ROOT / "build/release/bin/baechi-opt"
IREE = pathlib.Path(sys.executable).parent


def program(size: int) -> str:
    tensor = f"tensor<{size}x{size}xf32>"
    lines = [
        f'func.func @step(%x: {tensor} {{baechi.name = "x"}}, '
        f'%y: {tensor} {{baechi.name = "y"}}) -> {tensor} {{',
        "  %zero = arith.constant 0.0 : f32",
        f"  %e = tensor.empty() : {tensor}",
        f"  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor}) -> {tensor}",
    ]

    def product(name: str, left: str, right: str):
        lines.append(
            f"  %{name} = linalg.matmul ins({left}, {right} : {tensor}, {tensor}) "
            f'outs(%f : {tensor}) -> {tensor} loc("{name}")'
        )

    for chain, start in (("a", "%x"), ("b", "%y")):
        for i in range(4):
            product(f"{chain}{i}", f"%{chain}{i - 1}" if i else start, start)
    product("join", "%a3", "%b3")
    return "\n".join([*lines, f"  return %join : {tensor}", "}", ""])


def run(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stderr[:2000]}")
    return done.stdout


def compile_step(source: str, folder: pathlib.Path, name: str) -> pathlib.Path:
    file, library = folder / f"{name}.mlir", folder / f"{name}.vmfb"
    file.write_text(source)
    run(
        IREE / "iree-compile",
        file,
        "--iree-execution-model=async-external",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
        "-o",
        library,
    )
    return library


def running_workers(process: int) -> int:
    """Worker threads in state R of a process and its children (the command is a
    script that starts the tool); a main thread is none."""
    count = 0
    try:
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            if int(task.name) != process:
                count += (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
            for child in (task / "children").read_text().split():
                count += running_workers(int(child))
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        pass
    return count


def share_of_both(library: pathlib.Path, size: int) -> tuple[float, int]:
    shape = f"{size}x{size}xf32=1e-3"
    process = subprocess.Popen(
        [
            IREE / "iree-benchmark-module",
            f"--module={library}",
            "--function=step",
            *["--device=local-task"] * 2,
            "--task_topology_group_count=1",
            *[f"--input={shape}"] * 2,
            "--benchmark_min_time=5s",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    any_, both = 0, 0
    while process.poll() is None:
        running = running_workers(process.pid)
        any_ += running >= 1
        both += running >= 2
        time.sleep(0.001)
    if process.wait() != 0:
        sys.exit("iree-benchmark-module failed")
    return both / max(any_, 1), any_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="of the square matrices")
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.mlir").write_text(program(size))
        exported = run(
            OPT,
            folder / "model.mlir",
            "--baechi-form-kernels=row-loops=false",
            "--baechi-annotate-costs",
            "--baechi-constrain=pins=x=host0,a?=host0,y=host1,b?=host1,join=host0",
            "--baechi-place=msct machine=host:2 budget=0",
            "--baechi-export-iree",
        )
        barrier = r'"flow.tensor.barrier"\((%\w+)\) <.*> : \((.*)\) -> (\S+)'
        without = re.sub(barrier, r"tensor.cast \1 : \2 to \3", exported)
        for title, source in (("with barriers", exported), ("without", without)):
            library = compile_step(source, folder, title.replace(" ", "-"))
            share, moments = share_of_both(library, size)
            print(f"{title:15} both work in {share:4.0%} of {moments} moments")


if __name__ == "__main__":
    main()
