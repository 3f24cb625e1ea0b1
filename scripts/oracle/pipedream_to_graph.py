#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts a profile of PipeDream (Narayanan et al., SOSP 2019) to a graph file of a training step
and a machine file.

    pipedream_to_graph.py PROFILE.txt[.xz] GRAPH.json MACHINE.json [--pieces 2,4] [--devices N]
                          [--memory BYTES] [--bandwidth BYTES]

A node of a profile, a layer, becomes two operators: its forward pass, and its backward pass, which
reads what the layer read and made and the gradients of those who read it, and makes one gradient
for each layer that it read. Bytes are those of the profile; parameters are resident three times
(themselves, gradients, momentum), with the forward pass's operator, to which the backward pass is
tied. Inputs and sizes have no backward pass.

--pieces: alternatives of each layer, its batch cut in so many pieces that take equal shares of the
profiled time, hold the parameters and exchange their gradients: data parallelism, layer by layer.
Two things are not in a profile: a part of a batch takes less than its share where a layer does not
fill a GPU, and a batch normalisation in pieces has statistics of its own, unless it is told
otherwise; PipeDream's own data parallelism counts alike.
"""

import argparse
import json
import lzma
import math
import pathlib
import re

NODE = re.compile(
    r"(?P<id>node\d+) -- (?P<kind>.*) -- forward_compute_time=(?P<forward>[\d.]+), "
    r"backward_compute_time=(?P<backward>[\d.]+), activation_size=(?P<bytes>\[.*?\]|[\d.]+), "
    r"parameter_size=(?P<parameters>[\d.]+)"
)
COPIES = 3  # of parameters: themselves, gradients, momentum


def read(path):
    """Nodes by name, and who reads whom."""
    path = pathlib.Path(path)
    text = lzma.open(path, "rt").read() if path.suffix == ".xz" else path.read_text()
    nodes, edges = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if found := NODE.match(line):
            sizes = re.findall(r"[\d.]+", found["bytes"])
            nodes[found["id"]] = {
                "kind": re.match(r"[\w-]+", found["kind"])[0],
                "forward": _ns(found["forward"]),
                "backward": _ns(found["backward"]),
                "bytes": round(sum(map(float, sizes))),
                "parameters": round(float(found["parameters"])),
            }
        elif found := re.match(r"\t(node\d+) -- (node\d+)$", line):
            edges.append(found.groups())
        elif line.strip():
            raise SystemExit(f"{path}:{number}: neither a node nor an edge of PipeDream's")
    wrong = [name for edge in edges for name in edge if name not in nodes]
    if wrong:
        raise SystemExit(f"{path}: an edge has {wrong[0]}, which is no node")
    return nodes, edges


def _ns(milliseconds):
    return round(float(milliseconds) * 1e6)


def _sorted(nodes, edges):
    """Those that are read before their readers, else as in the file."""
    missing = {name: 0 for name in nodes}
    for _, to in edges:
        missing[to] += 1
    ready = [name for name in nodes if missing[name] == 0]
    for name in ready:
        for source, to in edges:
            if source == name:
                missing[to] -= 1
                if missing[to] == 0:
                    ready.append(to)
    if len(ready) != len(nodes):
        raise SystemExit("the profile's graph has a cycle")
    return ready


def convert(nodes, edges, pieces):
    """The graph of a training step."""
    shape = {"shape": [math.lcm(*pieces)]} if pieces else {}
    order = _sorted(nodes, edges)
    reads = {name: [a for a, b in edges if b == name] for name in nodes}
    readers = {name: [b for a, b in edges if a == name] for name in nodes}
    trained = {n for n in nodes if nodes[n]["backward"] or nodes[n]["parameters"]}
    for name in order:  # what has something to train behind it passes gradients on
        if any(source in trained for source in reads[name]):
            trained.add(name)
    operators, arcs, number = [], [], {}

    def add(name, time, outputs, inputs, **more):
        number[name] = len(operators)
        operators.append(
            {
                "id": len(operators),
                "name": name,
                "time_ns": time,
                "outputs": [{"bytes": size, **shape} for size in outputs],
                **more,
            }
        )
        for source, output in inputs:
            arcs.append({"from": number[source], "output": output, "to": number[name]})
        return operators[-1], inputs

    def in_pieces(operator, inputs, parameters, exchanged):
        ways = []
        for count in pieces:
            way = {
                "name": f"batch/{count}",
                "pieces": [{"time_ns": -(-operator["time_ns"] // count), "resident": parameters}]
                * count,
                "outputs": [{"along": 0} for _ in operator["outputs"]],
                "inputs": [{"from": number[s], "output": o, "along": 0} for s, o in inputs],
            }
            if exchanged:
                way |= {"replicas": count, "exchange": exchanged}
            ways.append(way)
        if ways:
            operator["alternatives"] = ways

    def title(name):
        return f"{nodes[name]['kind']}.{name.removeprefix('node')}"

    for name in order:
        node = nodes[name]
        resident = COPIES * node["parameters"]
        made, inputs = add(
            title(name),
            node["forward"],
            [node["bytes"]],
            [(title(source), 0) for source in reads[name]],
            resident=resident,
        )
        in_pieces(made, inputs, resident, 0)
    for name in reversed(order):
        if name not in trained:
            continue
        sources = [source for source in reads[name] if source in trained]
        inputs = [(title(source), 0) for source in reads[name]] + [(title(name), 0)]
        for reader in readers[name]:
            if reader in trained:
                below = [s for s in reads[reader] if s in trained]
                inputs.append((f"backward/{title(reader)}", below.index(name)))
        made, inputs = add(
            f"backward/{title(name)}",
            nodes[name]["backward"],
            [nodes[source]["bytes"] for source in sources],
            dict.fromkeys(inputs),
            backward=True,
            forward=number[title(name)],
        )
        in_pieces(made, inputs, 0, nodes[name]["parameters"])
    return {"format": "baechi-graph", "version": 1, "ops": operators, "edges": arcs}


def machine_of(devices, memory, bandwidth):
    return {
        "format": "baechi-machine",
        "version": 1,
        "devices": [
            {"name": f"gpu{d}", "kind": "cuda", "memory": round(memory)} for d in range(devices)
        ],
        "link_default": {"latency_ns": 10_000, "bytes_per_us": round(bandwidth / 1e6)},
        "link_model": "duplex",
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("profile")
    parser.add_argument("graph")
    parser.add_argument("machine")
    parser.add_argument("--pieces", default="", help="of the batch, alternatives of each layer")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--memory", type=float, default=16 * 2**30, help="of a device")
    parser.add_argument("--bandwidth", type=float, default=10e9, help="of a link, bytes a second")
    args = parser.parse_args()
    pieces = [int(count) for count in args.pieces.split(",") if count]
    with open(args.graph, "w") as file:
        json.dump(convert(*read(args.profile), pieces), file)
    with open(args.machine, "w") as file:
        json.dump(machine_of(args.devices, args.memory, args.bandwidth), file)


if __name__ == "__main__":
    main()
