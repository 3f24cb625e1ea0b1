# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One of the equal replicas that a placement on a machine of nodes is of: the executable form of
what docs/formats.md says of them. It shares no code with the placer."""

import copy
import math

from expand import expanded


def _check_alike(graph, count):
    """Parts of the batch are the same but for their names."""
    parts = {}
    for op in graph["ops"]:
        if "part" in op:
            parts.setdefault(op["part"], []).append(op["id"])
    if sorted(parts) != list(range(len(parts))) or len(parts) % count:
        raise ValueError(f"{len(parts)} parts of the batch for {count} replicas")
    place = {i: ("part", k) for of in parts.values() for k, i in enumerate(of)}

    def like(op):
        said = {k: v for k, v in op.items() if k not in ("id", "name", "part", "forward", "group")}
        ways = copy.deepcopy(said.pop("alternatives", []))
        for way in ways:
            for each in way.get("inputs", []):
                each["from"] = place.get(each["from"], each["from"])
        return said, ways

    first = [like(graph["ops"][i]) for i in parts[0]]
    for part, of in parts.items():
        if [like(graph["ops"][i]) for i in of] != first:
            raise ValueError(f"part {part} of the batch is not like part 0")
    edges = {part: [] for part in parts}
    for e in graph["edges"]:
        ends = {graph["ops"][e[k]].get("part") for k in ("from", "to")} - {None}
        if len(ends) > 1:
            raise ValueError("an edge between parts of the batch")
        for part in ends:
            a, b = (str(place.get(e[k], e[k])) for k in ("from", "to"))
            edges[part].append((a, e.get("output", -1), b))
        reader = graph["ops"][e["to"]]
        if ends and "part" not in reader and "output" in e and not reader.get("exchange"):
            raise ValueError(f"{reader['name']} exchanges nothing")
    if any(sorted(of) != sorted(edges[0]) for of in edges.values()):
        raise ValueError("parts of the batch read otherwise")
    return len(parts) // count


def _kept(graph, choices, parts):
    """The graph of the first parts, and of what is of no part, with choices by its ids."""
    old = [op for op in graph["ops"] if op.get("part", -1) < parts]
    number = {op["id"]: i for i, op in enumerate(old)}
    ops = []
    for op in old:
        op = {**op, "id": number[op["id"]]}
        op["alternatives"] = [
            {
                **way,
                "inputs": [
                    {**each, "from": number[each["from"]]}
                    for each in way.get("inputs", [])
                    if each["from"] in number
                ],
            }
            for way in op.get("alternatives", [])
        ]
        ops.append(op)
    edges = [
        {**e, "from": number[e["from"]], "to": number[e["to"]]}
        for e in graph["edges"]
        if e["from"] in number and e["to"] in number
    ]
    chosen = [{**c, "id": number[c["id"]]} for c in choices]
    return {**graph, "ops": ops, "edges": edges}, chosen


def _turns(machine, count):
    if machine.model != "sequential":
        return 1
    return 3 if count % 2 else 2


def _link(machine, used):
    """What messages between replicas on the first devices wait for."""
    nodes = {machine.node[d] for d in list(machine.devices)[:used]}
    return machine.between if len(nodes) > 1 else machine.inside


def first_replica(graph, choices, machine, count, devices):
    """Its operators in pieces, and what they exchange with the other replicas."""
    if count == 1:
        return expanded(graph, choices)
    graph, choices = _kept(graph, choices, _check_alike(graph, count))
    way = {}
    for choice in choices:
        named = {a["name"]: a for a in graph["ops"][choice["id"]]["alternatives"]}
        way[choice["id"]] = named[choice["alternative"]]
    result = expanded(graph, choices) if way else copy.deepcopy(graph)
    ops, edges = result["ops"], result["edges"]
    number = {op["name"]: i for i, op in enumerate(ops)}
    link = _link(machine, count * devices)
    unit = link["bytes_per_us"] // math.gcd(link["bytes_per_us"], 1000)

    def add(name, outputs, **members):
        ops.append({"id": len(ops), "name": name, "time_ns": 0, "outputs": outputs, **members})
        return len(ops) - 1

    def exchange(of, name, size):
        share = -(-(-(-size // count)) // unit) * unit
        moved = share * 2 * (count - 1) * _turns(machine, count)
        ops[of]["outputs"].append({"bytes": moved, "memory": 0, "copy": 0})
        ring = add(name, [])
        edges.append({"from": of, "output": len(ops[of]["outputs"]) - 1, "to": ring})
        return ring

    for op in graph["ops"]:
        if not op.get("exchange"):
            continue
        name, taken = op["name"], way.get(op["id"])
        k = len(taken["pieces"]) if taken else 1
        for p in range(k):
            if not (taken and taken.get("exchange")):
                of = number[name if k == 1 else f"{name}#{p}"]
                exchange(of, f"{name}+ring#{p}", -(-op["exchange"] // k))
                continue
            # Between adding up inside the node and handing the sum round in it.
            of = number[f"{name}+exchange#{p}"]
            size = ops[of]["outputs"][0]["bytes"]
            ring = exchange(of, f"{name}+ring#{p}", size)
            total = add(
                f"{name}+sum#{p}",
                [{"bytes": size, "memory": size, "copy": size}],
                group=ops[of]["group"],
            )
            for e in edges:
                if (e["from"], e.get("output")) == (of, 0):
                    e["from"] = total
            edges.append({"from": of, "output": 0, "to": total})
            edges.append({"from": ring, "to": total})
    return result


def replica_machine(machine, count, devices):
    """The first devices, and their likes in the next replica."""
    result = copy.copy(machine)
    names = list(machine.devices)[:devices]
    per_node = sum(node == machine.node[names[0]] for node in machine.node.values())
    result.devices = {d: machine.devices[d] for d in names}
    if count == 1:
        return result
    link = _link(machine, count * devices)
    if devices % per_node == 0 and count & (count - 1) == 0:
        messages = 2 * (count.bit_length() - 1)
    else:
        messages = 2 * (count - 1)
    latency = link["latency_ns"] * messages * _turns(machine, count)
    result.next = {"latency_ns": latency, "bytes_per_us": link["bytes_per_us"]}
    result.node, result.card = dict(machine.node), dict(machine.card)
    if link is machine.inside:
        result.card = {d: (d,) for d in names}
    for d in names:
        like = "next." + d
        result.devices[like] = {**machine.devices[d], "name": like}
        result.node[like], result.card[like] = like, result.card[d]
    return result
