#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that overlap, planned for one call and for the time between calls, as a Markdown table.

    .venv/bin/python benchmarks/execution/period.py [--calls=N] [--rounds=N] [--layers=N]
    [--megabytes 4000 1000] [--donate]

The step is the forward pass of a perceptron, of batches that follow each other, on two host devices
whose links take 20 us and so many megabytes a second each way (a simulated network; "memory": the
devices' own copies). Both plans and one device take turns in one process; milliseconds are from one
call to the next, the median over the rounds of all calls of a round, in brackets as predicted.
Results of all are compared bit for bit, and with JAX's. With --donate each call is given the
weights that the last one returned, which stay on their devices; else their devices read them where
JAX has them. The gain is the plan for one call over the plan for the period, in the same round.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import baechi  # noqa: E402

WIDTH = 1024
BATCH = 256


def forward(weights, x):
    for weight in weights:
        x = jnp.maximum(jnp.dot(x, weight), 0)
    return x


def donated(weights, x):
    return weights, forward(weights, x)


def machine(folder, devices, megabytes):
    if megabytes is None:
        return f"host:{devices}"
    file = folder / f"{devices}-{megabytes}.json"
    device = {"kind": "host", "memory": 4 << 30}
    described = {
        "format": "baechi-machine",
        "version": 1,
        "devices": [{"name": f"host{i}", **device} for i in range(devices)],
        "link_default": {"latency_ns": 20_000, "bytes_per_us": megabytes},
        "link_model": "parallel",
    }
    file.write_text(json.dumps(described))
    return str(file)


def milliseconds(step, weights, batches):
    """weights: of this step, which has the next ones for them where they are donated."""
    results = []
    begin = time.perf_counter()
    for batch in batches:
        result = step(weights[0], batch)
        if isinstance(result, tuple):
            weights[0], result = result
        results.append(result)
    results[-1].block_until_ready()
    return (time.perf_counter() - begin) * 1e3 / len(batches), results


def row(args, folder, megabytes):
    random = np.random.default_rng(0)
    weights = [
        jnp.asarray((random.normal(size=(WIDTH, WIDTH)) * (2 / WIDTH) ** 0.5).astype(np.float32))
        for _ in range(args.layers)
    ]
    batches = [
        jnp.asarray(random.normal(size=(BATCH, WIDTH)).astype(np.float32))
        for _ in range(args.calls)
    ]
    common = {
        "profile": str(folder / "profile.json"),
        "transfers": "copy" if megabytes is None else "network",
        "overlap_steps": True,
    }
    step = donated if args.donate else forward
    if args.donate:
        common["donate_argnums"] = 0
    steps = {
        "one": baechi.jit(step, **{**common, "machine": machine(folder, 1, megabytes)}),
        "call": baechi.jit(step, **{**common, "machine": machine(folder, 2, megabytes)}),
        "period": baechi.jit(
            step, **common, machine=machine(folder, 2, megabytes), objective="period"
        ),
    }
    held = {name: [[weight + 0 for weight in weights]] for name in steps}
    theirs = np.asarray(jax.jit(forward)(weights, batches[-1]))
    times = {name: [] for name in steps}
    for turn in range(args.rounds + 1):
        last = {}
        for name, step in steps.items():
            took, results = milliseconds(step, held[name], batches)
            last[name] = [np.asarray(result) for result in results]
            if turn:  # the first one compiles
                times[name].append(took)
        for name, results in last.items():
            if not all((a == b).all() for a, b in zip(results, last["one"], strict=True)):
                sys.exit(f"period: results of '{name}' differ from one device's")
        if not np.allclose(last["one"][-1], theirs, rtol=1e-3, atol=1e-3):
            sys.exit("period: results differ from JAX's")
    middle = {name: statistics.median(found) for name, found in times.items()}
    gain = statistics.median(
        call / period for call, period in zip(times["call"], times["period"], strict=True)
    )
    predicted = steps["period"]._latest.library.program["predicted"]["period_ns"] / 1e6
    link = "memory" if megabytes is None else f"{megabytes} MB/s"
    return (
        f"| {link} | {middle['one']:.2f} | {middle['call']:.2f} | {middle['period']:.2f} "
        f"({predicted:.2f}) | {gain:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--megabytes", type=int, nargs="*", default=[4000, 1000, 400])
    parser.add_argument("--donate", action="store_true")
    args = parser.parse_args()
    print("| links | one device, ms | planned for a call, ms | planned for the period, ms | gain |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in (None, *args.megabytes):
            print(row(args, pathlib.Path(folder), megabytes), flush=True)


if __name__ == "__main__":
    main()
