#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Independent oracle: replays a placement file against its graph and machine files.

    check_placement.py GRAPH MACHINE PLACEMENT [--period] [--json]

Prints every violation (the first 20 of a kind), the makespan, and per device busy time and peak
bytes; with --period also the distance between steps that overlap (period.py). Exit status: 0 valid,
1 violations, 2 a file that does not say what docs/formats.md asks for. It is the executable form of
docs/formats.md and shares no code with the placer. Times are integer ns, sizes bytes.
"""

import argparse
import collections
import json
import lzma
import sys

from expand import expanded
from period import period_of
from replicas import first_replica, replica_machine


class FormatError(Exception):
    pass


def load(path, kind):
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rt") as f:
        data = json.load(f)
    if data.get("format") != "baechi-" + kind or data.get("version") != 1:
        raise FormatError(f"{path}: not a baechi-{kind} file of version 1")
    return data


def output_of(entry):
    """(bytes moved, bytes held by its producer's device, bytes held by a copy) of one output
    entry."""
    if isinstance(entry, dict):
        return (
            entry["bytes"],
            entry.get("memory", entry["bytes"]),
            entry.get("copy", entry["bytes"]),
        )
    return entry, entry, entry


class Machine:
    def __init__(self, data):
        self.node, self.card = {}, {}
        if "nodes" in data:
            self.make_nodes(data)
            devices = list(self.devices.values())
        else:
            devices = data["devices"]
        self.devices = {d["name"]: d for d in devices}
        if len(self.devices) != len(devices):
            raise FormatError("two devices of one name")
        self.model = data["link_model"]
        if self.model not in ("unlimited", "parallel", "duplex", "sequential"):
            raise FormatError(f"unknown link_model {self.model!r}")
        self.default = data.get("link_default")
        self.links = {(each["from"], each["to"]): each for each in data.get("links", [])}

    def make_nodes(self, data):
        """Equal nodes of equal devices, which share the node's network cards in turn."""
        kind, memory = data["device"]["kind"], data["device"]["memory"]
        self.inside, self.between = data["inside"], data.get("between")
        cards = (self.between or {}).get("cards_per_node", 1)
        self.devices = {}
        for node in range(data["nodes"]):
            for i in range(data["devices_per_node"]):
                name = f"n{node}.{kind}{i}"
                self.devices[name] = {"name": name, "kind": kind, "memory": memory}
                self.node[name], self.card[name] = node, (node, i % cards)

    def link(self, a, b):
        if b == "next." + a:
            return self.next
        if self.node:
            return self.inside if self.node[a] == self.node[b] else self.between
        link = self.links.get((a, b), self.default)
        if link is None:
            raise FormatError(f"no link from {a} to {b}")
        return link

    def latency(self, a, b):
        return self.link(a, b)["latency_ns"]

    def transfer_ns(self, a, b, size):
        link = self.link(a, b)
        if link.get("lends"):
            return link["latency_ns"]
        return link["latency_ns"] + -(-size * 1000 // link["bytes_per_us"])

    def resources(self, a, b):
        """What a transfer a -> b occupies; two transfers sharing one may not overlap."""
        if self.model == "unlimited":
            return []
        cards = []
        if self.node and self.node[a] != self.node[b]:
            sides = ("", "") if self.model == "sequential" else ("out", "in")
            cards = [(f"card {side}", *map(str, self.card[d])) for side, d in zip(sides, (a, b))]
        if self.model == "parallel":
            return [("link", a, b), *cards]
        # A device of the next replica has the engines of its like.
        a, b = a.removeprefix("next."), b.removeprefix("next.")
        if self.model == "duplex":
            return [("out", a), ("in", b), *cards]
        return list(dict.fromkeys([("copy engine", a), ("copy engine", b), *cards]))


def check(graph, machine, placement):
    problems = collections.OrderedDict()

    def report(kind, text):
        problems.setdefault(kind, []).append(text)

    ops, n = graph["ops"], len(graph["ops"])
    device, start, end = [None] * n, [0] * n, [0] * n
    for row in placement["ops"]:
        i, d = row["id"], row["device"]
        if not 0 <= i < n:
            report("unknown operator", f"{i}")
            continue
        if device[i] is not None:
            report("placed twice", f"{ops[i]['name']}")
        if d not in machine.devices:
            report("unknown device", f"{ops[i]['name']}: {d}")
            continue
        cost = ops[i]["time_ns"]
        if isinstance(cost, dict):
            kind = machine.devices[d]["kind"]
            if kind not in cost:
                report("unsupported", f"{ops[i]['name']} on {d} ({kind})")
                continue
            cost = cost[kind]
        device[i], start[i], end[i] = d, row["start_ns"], row["start_ns"] + cost
        if start[i] < 0:
            report("negative start", ops[i]["name"])
    for i in range(n):
        if device[i] is None:
            report("not placed", ops[i]["name"])
    if problems:
        return problems, None

    def exclusive(kind, spans):
        spans = sorted(s for s in spans if s[1] > s[0])
        for (s0, e0, a), (s1, e1, b) in zip(spans, spans[1:]):
            if s1 < e0:
                report(kind, f"{a} [{s0},{e0}) and {b} [{s1},{e1})")

    # one operator at a time on a device
    rows = collections.defaultdict(list)
    for i in range(n):
        rows[device[i]].append((start[i], end[i], ops[i]["name"]))
    for d, spans in rows.items():
        exclusive(f"two operators at once on {d}", spans)

    # groups and pins
    groups = {}
    for i, op in enumerate(ops):
        if op.get("pin") and op["pin"] != device[i]:
            report("pin", f"{op['name']}: pinned to {op['pin']}, placed on {device[i]}")
        g = op.get("group")
        if g is not None and groups.setdefault(g, device[i]) != device[i]:
            report("group", f"{op['name']}: group {g} is on {groups[g]} and {device[i]}")

    # transfers: (operator, output) -> {device: (available from, last use there)}
    held = {}
    for i, op in enumerate(ops):
        for k in range(len(op.get("outputs", []))):
            held[i, k] = {device[i]: [end[i], end[i]]}
    occupied = collections.defaultdict(list)
    copies = []
    for t in sorted(placement.get("transfers", []), key=lambda t: t["start_ns"]):
        key, a, b = (t["op"], t["output"]), t["from"], t["to"]
        name = f"{ops[t['op']]['name']}:{t['output']} {a}->{b}" if 0 <= t["op"] < n else str(t)
        if key not in held:
            report("transfer of an unknown tensor", name)
            continue
        size = output_of(ops[key[0]]["outputs"][key[1]])[0]
        if a not in held[key] or held[key][a][0] > t["start_ns"]:
            report("transfer before its tensor is there", name)
        else:
            held[key][a][1] = max(held[key][a][1], t["end_ns"])
        if b in held[key]:
            report("tensor moved twice to a device", name)
            continue
        if t["end_ns"] - t["start_ns"] < machine.transfer_ns(a, b, size):
            report("transfer faster than its link", name)
        held[key][b] = [t["end_ns"], t["end_ns"]]
        copies.append((key, b, t["start_ns"]))
        for r in machine.resources(a, b):
            occupied[r].append((t["start_ns"], t["end_ns"], name))
    for r, spans in occupied.items():
        exclusive("two transfers at once on " + " ".join(r), spans)

    # precedence
    for e in graph["edges"]:
        i, j = e["from"], e["to"]
        if "output" not in e:
            wait = 0 if device[i] == device[j] else machine.latency(device[i], device[j])
            if start[j] < end[i] + wait:
                report("control edge", f"{ops[i]['name']} -> {ops[j]['name']}")
            continue
        at = held[i, e["output"]].get(device[j])
        if at is None:
            report(
                "tensor never moved",
                f"{ops[i]['name']}:{e['output']} to {ops[j]['name']} on {device[j]}",
            )
        elif start[j] < at[0]:
            report(
                "operator before its operand", f"{ops[i]['name']}:{e['output']} -> {ops[j]['name']}"
            )
        else:
            at[1] = max(at[1], end[j])

    makespan = max([*end, *(t["end_ns"] for t in placement.get("transfers", []))], default=0)

    # memory by replay; intervals are half open: a release at t makes room at t
    events = collections.defaultdict(list)
    resident = collections.Counter()

    def hold(d, a, b, size):
        if size and b > a:
            events[d] += [(a, 1, size), (b, 0, -size)]

    for i, op in enumerate(ops):
        resident[device[i]] += op.get("resident", 0)
        hold(device[i], start[i], end[i], op.get("scratch", 0))
        for k, entry in enumerate(op.get("outputs", [])):
            last = makespan if op.get("result") else held[i, k][device[i]][1]
            hold(device[i], start[i], last, output_of(entry)[1])
    for (i, k), d, begin in copies:
        hold(d, begin, held[i, k][d][1], output_of(ops[i]["outputs"][k])[2])
    stats = {}
    for d, info in machine.devices.items():
        level = peak = resident[d]
        peak_at = 0
        for at, _, delta in sorted(events[d]):
            level += delta
            if level > peak:
                peak, peak_at = level, at
        if peak > info["memory"]:
            report("memory", f"{d}: {peak} bytes at {peak_at} ns, {info['memory']} available")
        stats[d] = {
            "busy_ns": sum(e - s for s, e, _ in rows[d]),
            "peak_bytes": peak,
            "memory": info["memory"],
            "operators": len(rows[d]),
        }
    said = placement.get("makespan_ns")
    if said is not None and said != makespan:
        report("makespan", f"the file says {said}, the replay gives {makespan}")
    return problems, {"makespan_ns": makespan, "devices": stats}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph")
    parser.add_argument("machine")
    parser.add_argument("placement")
    parser.add_argument("--period", action="store_true", help="of steps that overlap")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()
    try:
        placement = load(args.placement, "placement")
        graph, choices = load(args.graph, "graph"), placement.get("choices", [])
        machine = Machine(load(args.machine, "machine"))
        if shape := placement.get("replicas"):
            graph = first_replica(graph, choices, machine, shape["count"], shape["devices"])
            machine = replica_machine(machine, shape["count"], shape["devices"])
        else:
            graph = expanded(graph, choices)
        problems, stats = check(graph, machine, placement)
        if args.period and not problems:
            period = period_of(graph, machine, placement)
            stats["period"] = {"ns": period.numerator, "steps": period.denominator}
    except (FormatError, KeyError, TypeError, ValueError, OSError, lzma.LZMAError) as e:
        print(f"format: {type(e).__name__}: {e}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps({"violations": problems, "result": stats}))
        return 1 if problems else 0
    for kind, texts in problems.items():
        for text in texts[:20]:
            print(f"violation: {kind}: {text}")
        if len(texts) > 20:
            print(f"violation: {kind}: {len(texts) - 20} more")
    if stats:
        for d, s in stats["devices"].items():
            print(
                f"{d}: {s['operators']} operators, busy {s['busy_ns'] / 1e6:.3f} ms, "
                f"peak {s['peak_bytes']} of {s['memory']} bytes"
            )
        print(f"makespan {stats['makespan_ns'] / 1e6:.6f} ms")
        if mean := stats.get("period"):
            print(f"period {mean['ns'] / mean['steps'] / 1e6:.6f} ms")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
