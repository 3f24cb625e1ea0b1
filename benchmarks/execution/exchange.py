#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs replicated steps over a simulated network in each order of messages, as a Markdown table.

    benchmarks/execution/exchange.py [--bin build/release/bin] [--model mlp_small.mlir]
    [--megabytes 100 200 400 800] [--steps 30] [--turns 3] [--slice-bytes N] [--ranks 2]

Two replicas on two host devices, of one process or, with --ranks=2, of two, whose links take 100 us
and so many megabytes a second each way. Periods, in ms, are from one step to the next of steps that
overlap: measured, the least of several turns in which the orders follow each other, and simulated
by the runtime's rules, in brackets. "start" sends parameters at the step's start, in the plan's
order; the others carry them into the next step (--exchange). The bound is the longer of the busiest
device's computing, as predicted, and of the bytes that the busiest link moves; no order is faster.
"gain" is fifo's period over p3's, measured and simulated, "links" what p3's links move of what they
could while messages wait for them, in the fastest turn and simulated. All is of a simulated
network. Every run's outputs equal the single device's bit for bit, or it fails.
"""

import argparse
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "test" / "fixtures"
ORDERS = ("start", "fifo", "tictac", "p3")


def machine(megabytes):
    host = {"kind": "host", "memory": 4 << 30}
    return {
        "format": "baechi-machine",
        "version": 1,
        "devices": [{"name": f"host{i}", **host} for i in range(2)],
        "link_default": {"latency_ns": 100_000, "bytes_per_us": megabytes},
        "link_model": "parallel",
    }


def run_ranks(ranks, command):
    """In one process, or in several that meet at a free port."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        meeting = f"localhost:{free.getsockname()[1]}"
    variables = {"BAECHI_RANKS": str(ranks), "BAECHI_COORDINATOR": meeting}
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, **({**variables, "BAECHI_RANK": str(rank)} if ranks > 1 else {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    told = [process.communicate()[1] for process in processes]
    for process, errors in zip(processes, told, strict=True):
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, stderr=errors)


def run(args, folder, megabytes, order, check):
    spec = folder / f"{megabytes}.json"
    spec.write_text(json.dumps(machine(megabytes)))
    report = folder / "report.json"
    given = [] if order == "start" else [f"--exchange={order}"]
    if order == "p3" and args.slice_bytes:
        given.append(f"--slice-bytes={args.slice_bytes}")
    run_ranks(
        args.ranks,
        [
            str(args.bin / "baechi-run"),
            str(FIXTURES / args.model),
            f"--machine={spec}",
            "--replicas=2",
            "--transfers=network",
            "--overlap-steps",
            "--budget=0",
            f"--steps={args.steps}",
            f"--profile={folder / 'profile.json'}",
            f"--json={report}",
            f"--check-single={'true' if check else 'false'}",
            *given,
        ],
    )
    found = json.loads(report.read_text())
    if check and not found["outputs_agree"]:
        sys.exit(f"exchange: {order} at {megabytes} MB/s: outputs differ from one device's")
    return found


def bound(report, megabytes):
    """ns: computing, and bytes."""
    predicted = report["predicted_step_ns"]
    compute = max(d["planned_busy_percent"] * predicted / 100 for d in report["devices"])
    return max(compute, max(d["sent_bytes"] for d in report["devices"]) * 1000 / megabytes)


def row(args, folder, megabytes):
    least, simulated, links, last = {}, {}, None, None
    for turn in range(args.turns):
        for order in ORDERS:
            report = run(args, folder, megabytes, order, check=turn == 0)
            period = report["measured_step_ns"]
            if order == "p3" and period < least.get(order, math.inf):
                links = report["links"]
            least[order] = min(least.get(order, period), period)
            if order != "start":
                simulated[order] = report["predicted_step_ns"]
            last = report
    gain = least["fifo"] / least["p3"] - 1
    promised = simulated["fifo"] / simulated["p3"] - 1
    cells = [f"{least['start'] / 1e6:.1f}"]
    cells += [f"{least[o] / 1e6:.1f} ({simulated[o] / 1e6:.1f})" for o in ORDERS[1:]]
    limit = bound(last, megabytes)
    cells += [f"{limit / 1e6:.1f}", f"{least['p3'] / limit:.2f} ({simulated['p3'] / limit:.2f})"]
    cells.append(f"{gain:+.1%} ({promised:+.1%})")
    cells.append(f"{links['used_percent']:.1f} % ({links['predicted_used_percent']:.1f} %)")
    return f"| {megabytes} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--model", default="mlp_small.mlir")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--slice-bytes", type=int)
    parser.add_argument("--ranks", type=int, choices=(1, 2), default=1)
    args = parser.parse_args()
    header = ["MB/s", *ORDERS, "bound", "p3 / bound", "gain", "links"]
    print(f"| {' | '.join(header)} |", "|" + "---|" * len(header), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in args.megabytes:
            try:
                print(row(args, pathlib.Path(folder), megabytes), flush=True)
            except subprocess.CalledProcessError as error:
                sys.exit(f"exchange: {megabytes} MB/s: {error.stderr.strip()}")


if __name__ == "__main__":
    main()
