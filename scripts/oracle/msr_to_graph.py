#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts an instance of data/msr (NeurIPS'20) to a graph file and a machine file.

    msr_to_graph.py INSTANCE.json GRAPH.json MACHINE.json [--objective step|max-load|latency]
    [--accelerators N]
                    [--cpus N] [--memory BYTES | --memory-share SHARE] [--link-model M]

Times of the instances are ms, kept as integer ns; an edge's cost (the time of one transfer between
an accelerator and the host's memory) becomes bytes on a link of 1 byte per ns without latency, so
outputs and their copies hold no memory and all memory is the node's `size`, resident. A node whose
edges have different costs gets one output per distinct cost. colorClass becomes the group.
Defaults: the instance's own numbers of accelerators and CPUs and its own memory limit (CPUs: no
limit); a share is one of the sizes of all nodes.

The machine depends on what is asked (docs/benchmarks-msr.md):
  step      every link moves 1 byte per ns. max-load  as the paper's: transfers are staged through
  the host's memory, CPUs neither send nor fetch. latency   accelerators talk through the host's
  memory, there and back: half of that; CPUs share their memory.
"""

import argparse
import json

UNLIMITED = 1 << 60
LINK = {"latency_ns": 0, "bytes_per_us": 1000}


def convert(instance, microseconds=False):
    """The graph of an instance; with `microseconds` its times are whole ones, computing at least
    1, as in the runs of the original Baechi that scripts/compare-msr compares with."""

    def ns(ms, least=0):
        return max(least, round(ms * 1e3)) * 1000 if microseconds else round(ms * 1e6)

    nodes = sorted(instance["nodes"], key=lambda v: v["id"])
    index = {v["id"]: i for i, v in enumerate(nodes)}
    outputs = [[] for _ in nodes]
    edges = []
    for e in instance["edges"]:
        i, j = index[e["sourceId"]], index[e["destId"]]
        size = ns(e["cost"])
        if size not in outputs[i]:
            outputs[i].append(size)
        edges.append({"from": i, "output": outputs[i].index(size), "to": j})
    ops = []
    for i, v in enumerate(nodes):
        time = {"cpu": ns(v["cpuLatency"], 1)}
        if v["supportedOnFpga"]:
            time["accelerator"] = ns(v["fpgaLatency"], 1)
        op = {
            "id": i,
            "name": v["name"] or f"node{v['id']}",
            "time_ns": time,
            "resident": round(v["size"]),
            "outputs": [{"bytes": b, "memory": 0, "copy": 0} for b in outputs[i]],
        }
        if v.get("colorClass") is not None:
            op["group"] = str(v["colorClass"])
        if v.get("isBackwardNode"):
            op["backward"] = True
        ops.append(op)
    return {"format": "baechi-graph", "version": 1, "ops": ops, "edges": edges}


def machine_of(
    instance, objective="step", accelerators=None, cpus=None, memory=None, link_model="unlimited"
):
    """The machine of an instance; what is None is the instance's own."""

    def number(given, key):
        return int(instance[key]) if given is None else given

    memory = number(memory, "maxSizePerFPGA")
    accelerators = [f"acc{i}" for i in range(number(accelerators, "maxFPGAs"))]
    cpus = [f"cpu{i}" for i in range(number(cpus, "maxCPUs"))]
    machine = {
        "format": "baechi-machine",
        "version": 1,
        "link_model": link_model,
        "link_default": LINK,
        "devices": [
            {"name": name, "kind": "accelerator", "memory": memory} for name in accelerators
        ]
        + [{"name": name, "kind": "cpu", "memory": UNLIMITED} for name in cpus],
    }
    if objective == "max-load" and cpus:
        machine["staged_through"] = "cpu"
    if objective == "latency":

        def link(a, b, speed):
            return {"from": a, "to": b, "latency_ns": 0, "bytes_per_us": speed}

        machine["links"] = [link(a, b, 500) for a in accelerators for b in accelerators if a != b]
        machine["links"] += [link(a, b, UNLIMITED) for a in cpus for b in cpus if a != b]
    return machine


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("instance")
    p.add_argument("graph")
    p.add_argument("machine")
    p.add_argument("--objective", default="step", choices=("step", "max-load", "latency"))
    p.add_argument("--accelerators", type=int)
    p.add_argument("--cpus", type=int)
    p.add_argument("--memory", type=int)
    p.add_argument("--memory-share", type=float)
    p.add_argument(
        "--link-model",
        default="unlimited",
        choices=("unlimited", "parallel", "duplex", "sequential"),
    )
    a = p.parse_args()
    with open(a.instance) as f:
        instance = json.load(f)
    memory = a.memory
    if a.memory_share is not None:
        memory = int(a.memory_share * sum(v["size"] for v in instance["nodes"]))
    machine = machine_of(instance, a.objective, a.accelerators, a.cpus, memory, a.link_model)
    for path, data in ((a.graph, convert(instance)), (a.machine, machine)):
        with open(path, "w") as f:
            json.dump(data, f)


if __name__ == "__main__":
    main()
