#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares recurrent networks written with `lax.scan` with `jax.jit`, on one core, as a Markdown
table.

    .venv/bin/python benchmarks/execution/scans.py [CELL...] [--hidden 256,512] [--rounds N]

A scan is one operator, so what is compared are the products of matrices within one kernel. Both
take turns in one process that is bound to one core; the times are medians over all rounds. The
results are compared first.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax  # noqa: E402
import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import baechi  # noqa: E402

jnp, lax = jax.numpy, jax.lax

TOLERANCE = 1e-4  # of the largest element


def lstm(w, carry, x):
    h, c = carry
    i, f, g, o = jnp.split(x @ w["in"] + h @ w["own"] + w["bias"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def gru(w, carry, x):
    h, c = carry
    a, b = x @ w["in"] + w["bias"], h @ w["own"]
    hidden = h.shape[1]
    r, z = jnp.split(jax.nn.sigmoid((a + b)[:, : 2 * hidden]), 2, axis=-1)
    n = jnp.tanh(a[:, 2 * hidden : 3 * hidden] + r * b[:, 2 * hidden : 3 * hidden])
    h = (1 - z) * n + z * h
    return (h, c), h


def rnn(w, carry, x):
    h, c = carry
    hidden = h.shape[1]
    h = jnp.tanh((x @ w["in"] + h @ w["own"] + w["bias"])[:, :hidden])
    return (h, c), h


CELLS = {"lstm": lstm, "gru": gru, "rnn": rnn}


def programs(cell):
    def forward(w, h, xs):
        return lax.scan(lambda carry, x: cell(w, carry, x), (h, h), xs)[1]

    def gradient(w, h, xs):
        return jax.value_and_grad(lambda w: (forward(w, h, xs) ** 2).mean())(w)

    return {"forward": forward, "gradient": gradient}


def arguments(batch, length, hidden):
    generator = np.random.default_rng(0)

    def values(*shape):
        numbers = generator.standard_normal(shape, np.float32) / np.sqrt(hidden)
        return jnp.asarray(numbers)

    w = {
        "in": values(hidden, 4 * hidden),
        "own": values(hidden, 4 * hidden),
        "bias": values(4 * hidden),
    }
    return w, values(batch, hidden), values(length, batch, hidden)


def compare(program, args, rounds):
    """Median seconds of ours and of `jax.jit`'s."""
    contenders = (baechi.jit(program, machine="host:1"), jax.jit(program))
    ours, theirs = (jax.tree.leaves(step(*args)) for step in contenders)
    for a, b in zip(ours, theirs, strict=True):
        error = np.abs(np.asarray(a) - np.asarray(b)).max()
        if not error <= TOLERANCE * np.abs(np.asarray(b)).max():
            sys.exit(f"results differ by {error}")
    times = ([], [])
    for _ in range(rounds):
        for step, taken in zip(contenders, times, strict=True):
            for again in range(3):
                start = time.perf_counter()
                jax.block_until_ready(step(*args))
                if again:  # the first of a turn finds the other's data in the caches
                    taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"of {', '.join(CELLS)}")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--hidden", default="256,512")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| cell | hidden | program | ms | `jax.jit` ms | ratio |\n|---|---|---|---|---|---|")
    for name in options.cells or CELLS:
        for hidden in map(int, options.hidden.split(",")):
            args = arguments(options.batch, options.length, hidden)
            for kind, program in programs(CELLS[name]).items():
                ours, theirs = compare(program, args, options.rounds)
                print(
                    f"| {name} | {hidden} | {kind} | {ours * 1e3:.1f} | {theirs * 1e3:.1f} "
                    f"| {ours / theirs:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
