#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a plan for a machine of nodes with what people would write: pure data parallelism, and
the grids of tensor (or data) parallelism in a stage x stages x replicas that use all devices.

    node_grids.py BAECHI_PLACE GRAPH MACHINE [--ways=whole,data/8,...]

Prints a table, the best of each kind, and what the planner finds; fails where that is slower.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

WAYS = "whole,data/2,data/4,data/8,tensor/2,tensor/4,tensor/8"


def lanes_of(way):
    return 1 if way == "whole" else int(way.rpartition("/")[2])


class Tool:
    def __init__(self, given):
        self.given = given

    def step(self, *options):
        """The step in ns (None: it does not fit), its report, and CPU seconds."""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            words = [self.given.tool, self.given.graph, self.given.machine, f"--json={report}"]
            before = time.perf_counter()
            done = subprocess.run([*words, *options], capture_output=True, text=True)
            seconds = time.perf_counter() - before
            if done.returncode:
                return None, done.stderr.strip(), seconds
            found = json.loads(report.read_text())
            return found["makespan_ns"], found, seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tool")
    parser.add_argument("graph")
    parser.add_argument("machine")
    parser.add_argument("--ways", default=WAYS, help="names of alternatives, with commas")
    parser.add_argument("--parts", type=int, default=128, help="of the batch")
    parser.add_argument("--most-stages", type=int, default=64)
    given = parser.parse_args()
    machine = json.loads(pathlib.Path(given.machine).read_text())
    devices = machine["nodes"] * machine["devices_per_node"]
    tool = Tool(given)
    best, pure = {}, {}
    for way in given.ways.split(","):
        lanes = lanes_of(way)
        for stages in (2**k for k in range(given.most_stages.bit_length())):
            replicas = devices // (lanes * stages)
            if replicas < 1 or given.parts % replicas:
                continue
            ns, said, _ = tool.step(f"--grid={way}:{stages}:{replicas}")
            name = f"{way}:{stages}:{replicas}"
            print(f"{name:>18}  {'does not fit' if ns is None else f'{ns / 1e6:10.3f} ms'}")
            sys.stdout.flush()
            if ns is None:
                continue
            best[name] = ns
            if stages == 1 and not way.startswith("tensor"):
                pure[name] = ns
    ns, report, seconds = tool.step()
    for title, found in (("pure data parallelism", pure), ("best grid", best)):
        name = min(found, key=found.get, default=None)
        if name:
            print(f"{title}: {found[name] / 1e6:.3f} ms ({name})")
    if ns is None:
        sys.exit(report)
    print(f"planned: {ns / 1e6:.3f} ms ({report['winner']}) in {seconds:.1f} s")
    sys.exit(bool(best) and ns > min(best.values()))


if __name__ == "__main__":
    main()
