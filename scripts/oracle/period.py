# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The distance between steps of a placement that overlap (docs/placement.md), as a largest cycle.

What must come before what, within a step and from one to the next, is a graph: an edge says that
one thing begins at least so many ns after another, so many steps earlier. Steps follow each other
in the largest ratio of ns to steps of any cycle. The placers replay steps; here cycles that are
longer than the ratio found so far are looked for until there is none (Dinkelbach 1967; Dasdan,
"Experimental analysis of the fastest optimum cycle ratio and mean algorithms", 2004).
"""

import collections
import fractions


class _Constraints:
    """Things that happen once a step, added in an order that edges within a step follow."""

    def __init__(self):
        self.within = collections.defaultdict(list)  # node -> [(source, ns)]
        self.across = []  # (source, node, ns): of the step before
        self.count = 0

    def node(self):
        self.count += 1
        return self.count - 1

    def longer_cycle(self, ns, steps):
        """(ns, steps) of a cycle whose ratio is larger; None: there is none."""
        value, source = [0] * self.count, [None] * self.count
        for _ in range(len(self.across) + 2):
            changed = False
            for node in range(self.count):
                for before, weight in self.within[node]:
                    if value[before] + weight * steps > value[node]:
                        value[node] = value[before] + weight * steps
                        source[node] = (before, weight, 0)
                        changed = True
            for before, node, weight in self.across:
                if value[before] + weight * steps - ns > value[node]:
                    value[node] = value[before] + weight * steps - ns
                    source[node] = (before, weight, 1)
                    changed = True
            if not changed:
                return None
            if cycle := self._cycle(source, ns, steps):
                return cycle
        raise AssertionError("no cycle was found among sources that still change")

    def _cycle(self, source, ns, steps):
        """A cycle of the sources, which is longer than the ratio."""
        seen = [0] * self.count
        for start in range(self.count):
            node, path = start, []
            while source[node] is not None and not seen[node]:
                seen[node] = start + 1
                path.append(node)
                node = source[node][0]
            if source[node] is None or seen[node] != start + 1:
                continue
            total = over = 0
            for each in path[path.index(node) :]:
                total += source[each][1]
                over += source[each][2]
            if over and total * steps > ns * over:
                return total, over
        return None


def period_of(graph, machine, placement):
    """A Fraction of ns, of a placement that is valid."""
    ops = graph["ops"]
    rows = {row["id"]: row for row in placement["ops"]}
    device = [rows[i]["device"] for i in range(len(ops))]
    start = [rows[i]["start_ns"] for i in range(len(ops))]

    def time_of(i):
        cost = ops[i]["time_ns"]
        return cost[machine.devices[device[i]]["kind"]] if isinstance(cost, dict) else cost

    depth = [0] * len(ops)
    users = collections.defaultdict(list)
    waiting = [0] * len(ops)
    for edge in graph["edges"]:
        users[edge["from"]].append(edge["to"])
        waiting[edge["to"]] += 1
    free = [i for i in range(len(ops)) if not waiting[i]]
    while free:
        i = free.pop()
        for user in users[i]:
            depth[user] = max(depth[user], depth[i] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                free.append(user)

    # What happens: (start, end, depth, kind, hops, number, output, target), and what it is.
    things = [
        ((start[i], start[i] + time_of(i), depth[i], 0, 0, i, 0, ""), ("op", i))
        for i in range(len(ops))
    ]
    hops = {}
    for t in sorted(placement.get("transfers", []), key=lambda t: (t["start_ns"], t["end_ns"])):
        key, a, b = (t["op"], t["output"]), t["from"], t["to"]
        entry = ops[t["op"]]["outputs"][t["output"]]
        size = entry["bytes"] if isinstance(entry, dict) else entry
        ns = machine.transfer_ns(a, b, size)
        count = hops.get((key, a), 0)
        hops[key, b] = count + 1
        order = (t["start_ns"], t["start_ns"] + ns, depth[t["op"]], 1, count, *key, b)
        things.append((order, ("transfer", key, a, b)))
    for edge in graph["edges"]:
        i, j = edge["from"], edge["to"]
        if "output" not in edge and device[i] != device[j]:
            end = start[i] + time_of(i)
            ns = machine.latency(device[i], device[j])
            things.append(((end, end + ns, depth[i], 2, 0, i, j, ""), ("signal", i, j)))
    things.sort(key=lambda thing: thing[0])

    all_of = _Constraints()
    begin = {d: all_of.node() for d in machine.devices}
    last = {d: (begin[d], 0) for d in machine.devices}  # and how long it takes
    ends = {d: [(begin[d], 0)] for d in machine.devices}
    occupied = collections.defaultdict(list)
    at = {}  # an operator, or a tensor on a device: the node and how long it takes
    lent = collections.defaultdict(list)  # a tensor on a device: who must have it back
    signals = collections.defaultdict(list)
    inputs = collections.defaultdict(list)
    for edge in graph["edges"]:
        inputs[edge["to"]].append(edge)
    for order, thing in things:
        node, ns = all_of.node(), order[1] - order[0]
        before = all_of.within[node]
        if thing[0] == "op":
            i = thing[1]
            d = device[i]
            before.append(last[d])
            last[d] = at[i] = node, ns
            for edge in inputs[i]:
                key = edge["from"], edge.get("output")
                if device[edge["from"]] == d:
                    before.append(at[edge["from"]])
                elif "output" in edge:
                    before.append(at[key, d])
                    for lender in lent[key, d]:
                        ends[lender].append((node, ns))
            before += signals[i]
        elif thing[0] == "signal":
            _, i, j = thing
            before += [at[i], (begin[device[i]], 0), (begin[device[j]], 0)]
            signals[j].append((node, ns))
            for d in (device[i], device[j]):
                ends[d].append((node, ns))
        else:
            _, key, a, b = thing
            before.append(at[key[0]] if device[key[0]] == a else at[key, a])
            before.append((begin[a], 0))
            at[key, b] = node, ns
            if machine.link(a, b).get("lends"):
                lent[key, b] = [a, *lent[key, a]]
            else:
                before.append((begin[b], 0))
            for d in (a, b):
                ends[d].append((node, ns))
            for lender in lent[key, a]:
                ends[lender].append((node, ns))
            for resource in machine.resources(a, b):
                before += occupied[resource][-1:]
                occupied[resource].append((node, ns))
    for d in machine.devices:
        end = all_of.node()
        all_of.within[end] = [last[d], *ends[d]]
        all_of.across.append((end, begin[d], 0))
    for nodes in occupied.values():
        all_of.across.append((nodes[-1][0], nodes[0][0], nodes[-1][1]))

    found = (0, 1)
    while better := all_of.longer_cycle(*found):
        found = better
    return fractions.Fraction(*found)
