#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of small steps beside `jax.jit`'s, as a Markdown table.

    .venv/bin/python benchmarks/execution/small_steps.py [--rounds=N] [--seconds=S]

The nets have so many layers of so many units, a batch of 32 and a step of gradient descent, whose
parameters are donated. The contenders take turns in one process: in every round each is called for
S seconds. The table has the fastest round of each, in microseconds a call with the loss awaited,
and the median over the rounds of the ratio to `jax.jit` of the same round. XLA may use all cores.
What the machine does beside is its load when the program begins, in processors.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import jax  # noqa: E402

import baechi  # noqa: E402

NETS = ((2, 16), (4, 128), (4, 512))
MACHINES = ("host:1", "host:2")
BATCH = 32


def net(layers, units):
    """The step, and what it begins with."""
    keys = jax.random.split(jax.random.key(0), layers + 2)
    params = [
        {"w": jax.random.normal(key, (units, units)) / units**0.5, "b": jax.numpy.zeros(units)}
        for key in keys[:layers]
    ]
    x, y = (jax.random.normal(key, (BATCH, units)) for key in keys[layers:])

    def loss(params, x, y):
        for layer in params:
            x = jax.numpy.tanh(x @ layer["w"] + layer["b"])
        return ((x - y) ** 2).mean()

    def step(params, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step, params, (x, y)


class Contender:
    """A compiled step and what it has come to."""

    def __init__(self, compiled, params, batch):
        self.step, self.batch = compiled, batch
        self.params = jax.tree.map(lambda leaf: leaf + 0, params)  # its own, to be donated
        self.losses = []
        for _ in range(20):
            self.losses.append(float(self.call()))

    def call(self):
        self.params, loss = self.step(self.params, *self.batch)
        return loss

    def measure(self, seconds):
        """Seconds a call."""
        calls, began = 0, time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            self.call().block_until_ready()
            calls += 1
        return (now - began) / calls


def compare(layers, units, rounds, seconds):
    step, params, batch = net(layers, units)
    contenders = [Contender(jax.jit(step, donate_argnums=0), params, batch)]
    runtimes = []
    for machine in MACHINES:
        compiled = baechi.jit(step, machine=machine, donate_argnums=0, verbose=False)
        contenders.append(Contender(compiled, params, batch))
        worst = max(
            abs(a - b) / abs(b)
            for a, b in zip(contenders[-1].losses, contenders[0].losses, strict=True)
        )
        if worst > 1e-4:
            sys.exit(f"{layers} x {units} on {machine}: losses differ from JAX's by {worst:.1e}")
        runtimes.append(compiled)
    times = [[each.measure(seconds) for each in contenders] for _ in range(rounds)]
    best = [min(column) * 1e6 for column in zip(*times, strict=True)]
    cells = [f"{layers} x {units}", f"{best[0]:.0f}"]
    for i, step in enumerate(runtimes, start=1):
        program = step._called()
        program.settle()  # dispatched calls tell their times then
        ratio = statistics.median(row[i] / row[0] for row in times)
        inside = min(program._wall_ns) / 1e3
        cells += [f"{best[i]:.0f}", f"{inside:.0f}", f"{ratio:.2f}"]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a contender in a round")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning\n")
    heads = ["net", "jax.jit us"]
    for machine in MACHINES:
        heads += [f"{machine} us", "of it the step", "ratio"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for layers, units in NETS:
        compare(layers, units, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
