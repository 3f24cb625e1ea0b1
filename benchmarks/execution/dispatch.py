#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training loop in Python beside the same loop in C, as a Markdown table.

    .venv/bin/python benchmarks/execution/dispatch.py [--calls=N] [--rounds=N] [--units=N]

The step is gradient descent of a net of four layers, whose parameters are donated; of the sizes
tried, the one whose step is nearest to a millisecond is taken, unless it is given. The contenders
call the same compiled step N times, and look at the last loss: in C through the step library, in
Python with calls that return while steps run, and with calls that are waited for. They take turns
in one process; the table has the fastest round of each in microseconds a call, and the median over
the rounds of the ratio to C in the same round. What the machine does beside is its load when the
program begins, in processors.
"""

import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import small_steps

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import jax  # noqa: E402
import numpy as np  # noqa: E402

import baechi  # noqa: E402

LOOP = """
#include <stddef.h>
int loop(int (*call)(void *, const void *const *, void *const *), void *step,
         const void *const *arguments, void *const *results, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (call(step, arguments, results))
      return 1;
  return 0;
}
"""


class InPython:
    def __init__(self, step, params, batch, machine, **options):
        self.step = baechi.jit(step, machine=machine, donate_argnums=0, verbose=False, **options)
        self.params, self.batch = params, batch
        self.run(20)

    def run(self, calls):
        for _ in range(calls):
            self.params, loss = self.step(self.params, *self.batch)
        return float(loss)


class InC:
    """The step of another contender, with that one's parameters where they lie."""

    def __init__(self, other, folder):
        source, built = folder / "loop.c", folder / "loop.so"
        source.write_text(LOOP)
        compiler = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC"]
        subprocess.run([*compiler, "-o", str(built), str(source)], check=True)
        self.loop = ctypes.CDLL(str(built)).loop
        program = other.step._called()
        self.library = program.library
        call, _, _, step = self.library.addresses()
        batch = [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(other.batch)]
        count = len(self.library.program["arguments"])
        places = [None] * (count - len(batch)) + [each.ctypes.data for each in batch]
        self.arguments = (ctypes.c_void_p * count)(*places)
        self.loss = np.zeros((), np.float32)
        # The loss is the last result; the others stay on their devices.
        results = len(self.library.program["results"])
        self.results = (ctypes.c_void_p * results)(*[None] * (results - 1), self.loss.ctypes.data)
        self.call, self.opened, self.batch = ctypes.c_void_p(call), ctypes.c_void_p(step), batch

    def run(self, calls):
        count = ctypes.c_size_t(calls)
        if self.loop(self.call, self.opened, self.arguments, self.results, count):
            sys.exit("the step failed in C")
        return float(self.loss)


def step_ns(units, machine):
    step, params, batch = small_steps.net(4, units)
    waited = InPython(step, params, batch, machine, async_dispatch=False)
    return statistics.median(waited.step._called()._wall_ns[5:])


def compare(machine, options, folder):
    sizes = [options.units] if options.units else [192, 256, 320, 384]
    units = min(sizes, key=lambda size: abs(step_ns(size, machine) - 1e6))
    step, params, batch = small_steps.net(4, units)
    dispatched = InPython(step, params, batch, machine)
    waited = InPython(step, params, batch, machine, async_dispatch=False)
    contenders = [InC(waited, folder), dispatched, waited]
    times = []
    for _ in range(options.rounds):
        row = []
        for contender in contenders:
            began = time.perf_counter()
            contender.run(options.calls)
            row.append((time.perf_counter() - began) / options.calls * 1e6)
        times.append(row)
    best = [min(column) for column in zip(*times, strict=True)]
    ratios = [statistics.median(row[i] / row[0] for row in times) for i in (1, 2)]
    print(
        f"| {machine} | 4 x {units} | {best[0]:.0f} | {best[1]:.0f} | {ratios[0]:.3f} "
        f"| {best[2]:.0f} | {ratios[1]:.3f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--units", type=int, help="of a layer")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning\n")
    print("| machine | net | C us | dispatched us | ratio | waited for us | ratio |")
    print("|---" * 7 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for machine in small_steps.MACHINES:
            compare(machine, options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
