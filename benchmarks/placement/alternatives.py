#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a random graph whose operators state alternatives, and a machine for it:

    alternatives.py SHAPE OPERATORS DEVICES SEED NAME
    time baechi-place NAME.g.json NAME.m.json

SHAPE is chain, layers, dag or grid (a recurrent network: layers by steps). The same arguments give
the same files.
"""

import argparse
import json
import random


class Writer:
    def __init__(self, draw):
        self.draw, self.ops, self.edges = draw, [], []
        self.share = draw.choice([1, 2 / 3, 1 / 3])  # of operators that state alternatives
        self.overhead = draw.choice([500, 2000, 8000])  # of each piece, ns
        self.counts = draw.choice([(2,), (2, 3), (2, 4), (2, 4, 8)])
        self.has_columns = draw.random() < 0.5
        self.bytes = draw.choice([4096, 65536, 1 << 20])

    def pieces(self, ns, count, resident):
        return [{"time_ns": ns // count + self.overhead, "resident": resident}] * count

    def ways(self, inputs, ns):
        held, found = self.bytes // 4, []
        for k in self.counts:
            way = {"name": f"rows/{k}", "pieces": self.pieces(ns, k, held)}
            way["outputs"] = [{"along": 0}]
            way["inputs"] = [{"from": j, "output": 0, "along": 0} for j in inputs]
            found.append(way)
        if not self.has_columns:
            return found
        k = self.counts[-1]
        way = {"name": f"cols/{k}", "pieces": self.pieces(ns, k, held // k)}
        found.append({**way, "outputs": [{"along": 1}]})
        if inputs:
            way = {"name": f"inner/{k}", "pieces": self.pieces(ns, k, held // k), "sum_ns": 500}
            way["inputs"] = [{"from": inputs[0], "output": 0, "along": 1}]
            found.append({**way, "outputs": [{"partial": True}]})
        return found

    def op(self, inputs, ns):
        number, inputs = len(self.ops), sorted(set(inputs))
        op = {"id": number, "name": f"op{number}", "time_ns": ns, "resident": self.bytes // 4}
        op["outputs"] = [{"bytes": self.bytes, "shape": [64, 256]}]
        if self.draw.random() < self.share:
            op["alternatives"] = self.ways(inputs, ns)
        self.ops.append(op)
        self.edges += [{"from": j, "output": 0, "to": number} for j in inputs]
        return number

    def ns(self):
        return self.draw.choice([5000, 20000, 70000, 230000])

    def write(self, shape, count):
        getattr(self, shape)(self.draw, count)

    def chain(self, draw, count):
        lanes = draw.choice([1, 2, 3])
        last = [None] * lanes
        while len(self.ops) < count:
            for i in range(lanes):
                last[i] = self.op([] if last[i] is None else [last[i]], self.ns())
            if draw.random() < 0.1:
                last = [self.op(last, self.ns())] * lanes

    def layers(self, draw, count):
        wide = draw.choice([3, 6])
        last = self.op([], 50000)
        while len(self.ops) < count:
            branches = [self.op([last], self.ns()) for _ in range(wide)]
            last = self.op([self.op(branches, 30000)], 10000)

    def dag(self, draw, count):
        while (number := len(self.ops)) < count:
            far = draw.choice([20, 100, 400])
            reads = draw.choice([1, 2, 2, 3]) if number else 0
            inputs = [max(0, number - 1 - draw.randrange(far)) for _ in range(reads)]
            self.op(inputs, self.ns())

    def grid(self, draw, count):
        layers, before = draw.choice([2, 4, 8]), []
        while len(self.ops) < count:
            below, now = self.op([], 5000), []
            for i in range(layers):
                below = self.op([below, before[i]] if before else [below], 20000 * (1 + i % 3))
                now.append(below)
            before = now


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape", choices=("chain", "layers", "dag", "grid"))
    parser.add_argument("operators", type=int)
    parser.add_argument("devices", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("name")
    given = parser.parse_args()
    draw = random.Random(f"{given.shape}{given.operators}{given.devices}{given.seed}")
    writer = Writer(draw)
    writer.write(given.shape, given.operators)
    graph = {"format": "baechi-graph", "version": 1, "ops": writer.ops, "edges": writer.edges}
    link_model = draw.choice(["parallel", "sequential", "duplex"])
    link = {"latency_ns": 5000, "bytes_per_us": draw.choice([2000, 20000, 100000])}
    devices = [{"name": f"d{i}", "kind": "cpu", "memory": 1 << 40} for i in range(given.devices)]
    machine = {"format": "baechi-machine", "version": 1, "devices": devices}
    machine |= {"link_default": link, "link_model": link_model}
    for suffix, content in ((".g.json", graph), (".m.json", machine)):
        with open(given.name + suffix, "w") as file:
            json.dump(content, file)


if __name__ == "__main__":
    main()
