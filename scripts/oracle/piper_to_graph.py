#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts an input of Piper (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021) to a graph file
with alternatives and a machine file.

    piper_to_graph.py INPUT.json GRAPH.json MACHINE.json [--devices N] [--memory BYTES]
                      [--bandwidth BYTES] [--replicas 1,2,4] [--in-flight N|work] [--batch N]

A node of Piper's is an operator that does one micro-batch, forward and backward. As it is it runs
on one device without recomputation; its alternatives are degrees of tensor parallelism, replicas
that take turns with micro-batches, and recomputation, and all their products:

  t devices a replica, d replicas   t·d pieces, each of the time of one, divided by d
  replicas                          shares of the batch's dimension; the pieces of one replica
                                    have copies of its tensors; updates are exchanged among
                                    replicas, the size of the parameters divided by the
                                    micro-batches
  sync times of an edge             "extra" bytes of the output, or of the input
  memory a·y + b                    resident; y, the micro-batches in flight, is --in-flight
                                    (default: the devices), divided among replicas. In Piper
                                    it falls from stage to stage; `work` guesses that from the
                                    share of all time that is behind a node, as if stages were
                                    even and in order: a plan may need more

Every edge is an output of its own, of twice its bytes: the activation and its gradient. For
`baechi-place --objective=max-load`: transfers are staged, so that as in Piper a device computes,
sends or fetches, one after the other. Differences: bytes of a sync time count at both ends of an
edge, and an exchange of d replicas moves (3d − 2)/d of the parameters at a device, not
(4d − 4)/d.
"""

import argparse
import json
import math


def _ns(seconds):
    return round(seconds * 1e9)


class _Converter:
    def __init__(self, given, devices, replicas, in_flight):
        self.nodes = sorted(given["nodes"], key=lambda node: node["id"])
        self.index = {node["id"]: i for i, node in enumerate(self.nodes)}
        self.edges = given["edges"]
        self.batch = given["mbsInBatch"]
        self.devices, self.replicas = devices, replicas
        # One dimension, that all numbers of replicas divide.
        self.extent = math.lcm(*replicas)
        self.outputs = {i: [] for i in range(len(self.nodes))}
        self.inputs = {i: [] for i in range(len(self.nodes))}
        for edge in self.edges:
            tail, head = self.index[edge["sourceId"]], self.index[edge["destId"]]
            output = len(self.outputs[tail])
            self.outputs[tail].append((edge["destId"], 2 * round(edge["communicationCost"])))
            self.inputs[head].append((tail, output, edge["sourceId"]))
        self.flying = [in_flight or devices] * len(self.nodes)
        if in_flight == "work":
            self.flying = self.by_work()

    def by_work(self):
        """For each node the devices that a pipeline has from it on, if all take equally long."""
        waits = {i: len(reads) for i, reads in self.inputs.items()}
        order = [i for i, n in waits.items() if n == 0]
        for i in order:  # Grows while it is walked.
            for to, _ in self.outputs[i]:
                waits[self.index[to]] -= 1
                if waits[self.index[to]] == 0:
                    order.append(self.index[to])
        times = [node["TMPCs"]["1"][0]["timePerSample"] for node in self.nodes]
        left, found = sum(times), [self.devices] * len(times)
        for i in order:
            found[i] = max(1, math.ceil(self.devices * left / sum(times)))
            left -= times[i]
        return found

    def resident(self, i, way, replicas):
        flying = -(-self.flying[i] // replicas)
        return round(way["memoryUsageA"] * flying + way["memoryUsageB"])

    def cut(self, replicas):
        share = self.extent // replicas
        return {"along": 0, "sizes": [share] * replicas} if replicas > 1 else {}

    def alternative(self, i, degree, way, replicas):
        def with_extra(entry, size):
            extra = round(2 * size / replicas)
            return {**entry, "extra": extra} if extra else entry

        again = " again" if way["id"] != "vanilla" else ""
        piece = {
            "time_ns": {"accelerator": _ns(way["timePerSample"] / replicas)},
            "resident": self.resident(i, way, replicas),
        }
        found = {
            "name": f"t{degree} d{replicas}{again}",
            "pieces": [piece] * (degree * replicas),
            "outputs": [
                with_extra(self.cut(replicas), way["syncTimeBw"][str(to)])
                for to, _ in self.outputs[i]
            ],
            "inputs": [
                with_extra(
                    {"from": tail, "output": output, **self.cut(replicas)},
                    way["syncTimeFw"][str(source)],
                )
                for tail, output, source in self.inputs[i]
            ],
        }
        if replicas > 1 and way["parameterSize"]:
            exchange = round(way["parameterSize"] / self.batch)
            found |= {"replicas": replicas, "exchange": exchange}
        return found

    def operator(self, i):
        node = self.nodes[i]
        first = node["TMPCs"]["1"][0]
        alternatives = []
        for degree, ways in sorted(node["TMPCs"].items(), key=lambda item: int(item[0])):
            for replicas in self.replicas:
                if int(degree) * replicas > self.devices:
                    continue
                for way in ways:
                    if way is not first or replicas > 1:
                        alternatives.append(self.alternative(i, int(degree), way, replicas))
        return {
            "id": i,
            "name": f"{node.get('name') or 'node'}.{node['id']}",
            "time_ns": {"accelerator": _ns(first["timePerSample"])},
            "resident": self.resident(i, first, 1),
            "outputs": [
                {"bytes": size, "memory": 0, "copy": 0, "shape": [self.extent]}
                for _, size in self.outputs[i]
            ],
            "alternatives": alternatives,
        }

    def graph(self):
        operators = [self.operator(i) for i in range(len(self.nodes))]
        edges = [
            {"from": tail, "output": output, "to": head}
            for head, reads in self.inputs.items()
            for tail, output, _ in reads
        ]
        return {"format": "baechi-graph", "version": 1, "ops": operators, "edges": edges}


def machine(devices, memory, bandwidth):
    link = {"latency_ns": 0, "bytes_per_us": max(1, round(bandwidth / 1e6))}
    accelerators = [
        {"name": f"acc{d}", "kind": "accelerator", "memory": round(memory)} for d in range(devices)
    ]
    return {
        "format": "baechi-machine",
        "version": 1,
        "devices": [*accelerators, {"name": "host", "kind": "staging", "memory": 1 << 60}],
        "link_default": link,
        "link_model": "sequential",
        "staged_through": "staging",
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("input")
    parser.add_argument("graph")
    parser.add_argument("machine")
    parser.add_argument("--devices", type=int, help="default: the input's")
    parser.add_argument("--memory", type=float, help="of a device; default: the input's")
    parser.add_argument("--bandwidth", type=float, help="bytes a second; default: the input's")
    parser.add_argument("--batch", type=int, help="micro-batches; default: the input's")
    parser.add_argument("--replicas", default="1,2,4,8", help="numbers of replicas")
    parser.add_argument("--in-flight", help="micro-batches, or work; default: the devices")
    args = parser.parse_args()
    with open(args.input) as file:
        given = json.load(file)
    given["mbsInBatch"] = args.batch or given["mbsInBatch"]
    devices = args.devices or given["maxDevices"]
    replicas = sorted({1, *map(int, args.replicas.split(","))})
    replicas = [d for d in replicas if d <= devices and given["mbsInBatch"] % d == 0]
    in_flight = args.in_flight
    if in_flight and in_flight != "work":
        in_flight = int(in_flight)
    converter = _Converter(given, devices, replicas, in_flight)
    with open(args.graph, "w") as file:
        json.dump(converter.graph(), file)
    on = machine(
        devices,
        args.memory or given["maxMemoryPerDevice"],
        args.bandwidth or given["bandwidth"],
    )
    with open(args.machine, "w") as file:
        json.dump(on, file)


if __name__ == "__main__":
    main()
