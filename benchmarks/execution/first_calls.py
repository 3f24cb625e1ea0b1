#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares first calls of `baechi.jit` with those of `jax.jit`, as a Markdown table.

    .venv/bin/python benchmarks/execution/first_calls.py [MODEL...] [--rounds N] [--ways WAY...]

Each first call is in a process of its own, in turns: by `jax.jit`, by `baechi.jit` with an empty
cache folder, and again with the one that this left. The call runs the model's small step once; what
comes before it (importing JAX, arguments) does not count, nor does what JAX keeps on disk, nor the
calls that follow the one with an empty folder, of which a plan is made for the next process, too
(docs/jit.md). Wall clock and processor seconds, those of child processes included, medians over the
rounds.

Beside the collection's models, MODEL is one of LARGER: gpt2-67m, a Transformer of the form of GPT-2
with 67 million parameters, and gnmt-150, of little work and many operators. --ways: without
`jax.jit`, there are no ratios; JAX needs many minutes for gnmt-150.
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
LARGER = {
    "gpt2-67m": ("transformer", "small", {
        "hidden": 512, "heads": 8, "layers": 12, "vocabulary": 28672, "batch": 4,
    }),
    "gnmt-150": ("gnmt", "large", {"sequence": 150}),
}  # fmt: skip


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def first_call(model, way):
    """In this process: wall clock and processor seconds."""
    import jax
    import numpy as np

    import baechi
    from baechi import init
    from baechi.models import configuration

    step, arguments, _ = configuration.training_step(*LARGER.get(model, (model, "small")))
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
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(*first_call(options.models[0], options.only))
        return
    # The cold call fills the folder for the warm one.
    ways = [way for way in WAYS if way in options.ways]
    compared = ways[0] == WAYS[0]
    heads = [
        f"{way} s | CPU{' | ratio | CPU' if compared and number else ''}"
        for number, way in enumerate(ways)
    ]
    line = f"| model | {' | '.join(heads)} |"
    print(line)
    print("|---" * (line.count("|") - 1) + "|")
    for model in options.models:
        rounds = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                rounds.append([measure(model, way, folder) for way in ways])
        cells = []
        for way in range(len(ways)):
            times = [statistics.median(each[way][k] for each in rounds) for k in (0, 1)]
            cells += [f"{seconds:.2f}" for seconds in times]
            if compared and way:
                ratios = [statistics.median(r[way][k] / r[0][k] for r in rounds) for k in (0, 1)]
                cells += [f"{ratio:.2f}" for ratio in ratios]
        print(f"| {model} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
