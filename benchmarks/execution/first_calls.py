#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares first calls of `baechi.jit` with those of `jax.jit`, as a Markdown table.

    .venv/bin/python benchmarks/execution/first_calls.py [MODEL...] [--rounds N]

Each first call is in a process of its own, in turns: by `jax.jit`, by `baechi.jit` with an empty
cache folder, and again with the one that this left. The call runs the model's small step once; what
comes before it (importing JAX, arguments) does not count, nor does what JAX keeps on disk, nor the
calls that follow the one with an empty folder, of which a plan is made for the next process, too
(docs/jit.md). Wall clock and processor seconds, those of child processes included, medians over the
rounds.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

WAYS = ("jax.jit", "cold", "warm")
MACHINE = "host:2"
MORE_CALLS = 9


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def first_call(model, way):
    """In this process: wall clock and processor seconds."""
    import jax
    import numpy as np

    import baechi
    from baechi import init, models

    module = models.load(model)
    step, arguments, _ = module.training_step(module.PRESETS["small"])
    arguments = jax.tree.map(
        lambda leaf: jax.numpy.asarray(leaf.value()),
        arguments,
        is_leaf=lambda leaf: isinstance(leaf, init.Init),
    )
    jax.block_until_ready(jax.jit(lambda x: x + 1)(np.ones(3)))  # JAX's own start
    jitted = jax.jit(step) if way == "jax.jit" else baechi.jit(step, machine=MACHINE)
    wall, used = time.monotonic(), processor_seconds()
    jax.block_until_ready(jitted(*arguments))
    taken = time.monotonic() - wall, processor_seconds() - used
    for _ in range(MORE_CALLS if way == "cold" else 0):
        jax.block_until_ready(jitted(*arguments))
    return taken


def measure(model, way, folder):
    environment = os.environ | {"XDG_CACHE_HOME": folder, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, __file__, model, f"--only={way}"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["mlp", "convnet", "transformer", "resnet"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(*first_call(options.models[0], options.only))
        return
    print("| model | jax.jit s | CPU | cold s | CPU | ratio | CPU | warm s | CPU | ratio | CPU |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for model in options.models:
        rounds = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                rounds.append([measure(model, way, folder) for way in WAYS])
        cells = []
        for way in range(len(WAYS)):
            times = [statistics.median(each[way][k] for each in rounds) for k in (0, 1)]
            cells += [f"{seconds:.2f}" for seconds in times]
            if way:
                ratios = [statistics.median(r[way][k] / r[0][k] for r in rounds) for k in (0, 1)]
                cells += [f"{ratio:.2f}" for ratio in ratios]
        print(f"| {model} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
