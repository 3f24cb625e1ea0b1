# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph file with alternatives, in the ways that a placement file names: the executable form of
what docs/formats.md says of pieces. It shares no code with the placer."""

import itertools
import math


def expanded(graph, choices):
    """The graph with operators in pieces; as it is where nothing was chosen."""
    if not any(op.get("alternatives") for op in graph["ops"]):
        return graph
    return _Expansion(graph, choices).result()


def _even(extent, pieces):
    return [extent // pieces + (i < extent % pieces) for i in range(pieces)]


def _slices(cut, shape, pieces):
    """The ranges of each slice: a list of (begin, end), one for each dimension."""
    whole = [(0, n) for n in shape]
    if "along" not in cut:
        return [whole]
    along, found, begin = cut["along"], [], 0
    for size in cut.get("sizes") or _even(shape[cut["along"]], pieces):
        box = list(whole)
        box[along] = (begin, begin + size)
        found.append(box)
        begin += size
    return found


def _meet(a, b):
    return all(max(x[0], y[0]) < min(x[1], y[1]) for x, y in zip(a, b))


def _within(a, b):
    return all(y[0] <= x[0] and x[1] <= y[1] for x, y in zip(a, b))


def _volume(box):
    return math.prod(end - begin for begin, end in box)


def _parts(box, read):
    """`box`, cut where any of `read` begins or ends in it."""
    axes = []
    for d, (begin, end) in enumerate(box):
        points = {begin, end}
        points |= {p for other in read for p in other[d] if begin < p < end}
        points = sorted(points)
        axes.append(list(zip(points, points[1:])))
    return [list(part) for part in itertools.product(*axes)]


def _shares(values, volumes):
    """Shares of some numbers, rounded down as they add up."""
    total, before, found = sum(volumes), 0, []
    for volume in volumes:
        after = before + volume
        found.append([v * after // total - v * before // total for v in values])
        before = after
    return found


def _held(entry):
    if not isinstance(entry, dict):
        return [entry] * 3
    size = entry["bytes"]
    return [size, entry.get("memory", size), entry.get("copy", size)]


def _output(numbers):
    return dict(zip(("bytes", "memory", "copy"), numbers))


class _Expansion:
    def __init__(self, graph, choices):
        self.old = graph["ops"]
        self.edges = graph["edges"]
        chosen = {}
        for choice in choices:
            named = {a["name"]: a for a in self.old[choice["id"]].get("alternatives", [])}
            chosen[choice["id"]] = named[choice["alternative"]]
        self.way = [chosen.get(i) for i in range(len(self.old))]
        self.ops, self.arrows = [], []
        self.first = {}
        self.late = []  # (operator, output) read by (old operator, piece)

    def count(self, op):
        return len(self.way[op]["pieces"]) if self.way[op] else 1

    def shape(self, op, output):
        entry = self.old[op]["outputs"][output]
        return entry.get("shape", []) if isinstance(entry, dict) else []

    def readers(self, op, output):
        """(old operator, slices, extra bytes) of each that reads it, as edges come."""
        found = {}
        for e in self.edges:
            if (e["from"], e.get("output")) == (op, output) and e["to"] not in found:
                cut = {}
                for each in (self.way[e["to"]] or {}).get("inputs", []):
                    if (each["from"], each["output"]) == (op, output):
                        cut = each
                slices = _slices(cut, self.shape(op, output), self.count(e["to"]))
                found[e["to"]] = (slices, cut.get("extra", 0))
        return [(to, slices, extra) for to, (slices, extra) in found.items()]

    def asks(self, op, output):
        """(old operator, piece, box, extra bytes) of every piece that reads."""
        for to, slices, extra in self.readers(op, output):
            n = self.count(to)
            for q in range(n):
                yield to, q, slices[q // (n // len(slices))], extra

    def add(self, name, time, **members):
        self.ops.append({"name": name, "time_ns": time, "outputs": [], **members})
        return len(self.ops) - 1

    def put(self, op, numbers):
        self.ops[op]["outputs"].append(_output(numbers))
        return len(self.ops[op]["outputs"]) - 1

    def result(self):
        for op in range(len(self.old)):
            self.operator(op)
        for e in self.edges:
            if "output" not in e:
                for p in range(self.count(e["from"])):
                    for q in range(self.count(e["to"])):
                        self.arrows.append(
                            {"from": self.first[e["from"]] + p, "to": self.first[e["to"]] + q}
                        )
        for op, output, (to, q) in self.late:
            self.arrows.append({"from": op, "output": output, "to": self.first[to] + q})
        for i, op in enumerate(self.ops):
            op["id"] = i
        return {"format": "baechi-graph", "version": 1, "ops": self.ops, "edges": self.arrows}

    def operator(self, op):
        of, way, n = self.old[op], self.way[op], self.count(op)
        made = (way or {}).get("outputs") or [{}] * len(of.get("outputs", []))
        summed = n > 1 and bool(made) and all(m.get("partial") for m in made)
        self.first[op] = len(self.ops)
        for p in range(n):
            piece = way["pieces"][p] if way else of
            members = {k: piece[k] for k in ("scratch", "resident") if k in piece}
            members["result"] = of.get("result", False) and not summed
            if "pin" in of:
                members["pin"] = of["pin"]
            name = of["name"] if n == 1 else f"{of['name']}#{p}"
            if "group" in of:
                members["group"] = of["group"] if n == 1 else f"{of['group']}#{p}"
            elif n > 1 and way.get("exchange"):
                members["group"] = name
            self.add(name, piece["time_ns"], **members)
        for o, how in enumerate(made):
            (self.sums if how.get("partial") and n > 1 else self.slices)(op, o, how)
        if way and way.get("exchange"):
            self.exchange(op, way["exchange"], way["replicas"])

    def parts(self, op, numbers, box, read):
        """Adds `box` in parts; the parts with their outputs."""
        boxes = _parts(box, read)
        shares = _shares(numbers, [_volume(b) for b in boxes])
        return [(b, self.put(op, share)) for b, share in zip(boxes, shares)]

    def slices(self, op, o, how):
        of, n, first = self.old[op], self.count(op), self.first[op]
        boxes = _slices(how, self.shape(op, o), n)
        copies = n // len(boxes)
        asks = list(self.asks(op, o))
        taken = [  # by ask: the pieces that it takes a slice of
            [s * copies + q % copies for s, box in enumerate(boxes) if _meet(box, wanted)]
            for _, q, wanted, _ in asks
        ]
        numbers = _shares(_held(of["outputs"][o]), [_volume(b) for b in boxes])
        for p in range(n):
            mine = [k for k, held in enumerate(taken) if p in held]
            parts = self.parts(
                first + p, numbers[p // copies], boxes[p // copies], [asks[k][2] for k in mine]
            )
            extra = self.put(first + p, [how["extra"], 0, 0]) if how.get("extra") else None
            for k, (to, q, wanted, own) in enumerate(asks):
                if p not in taken[k]:
                    continue
                for box, output in parts:
                    if _within(box, wanted):
                        self.late.append((first + p, output, (to, q)))
                if extra is not None:
                    self.late.append((first + p, extra, (to, q)))
                if own and taken[k][0] == p:
                    self.late.append((first + p, self.put(first + p, [own, 0, 0]), (to, q)))

    def sums(self, op, o, how):
        of, n, first, way = self.old[op], self.count(op), self.first[op], self.way[op]
        whole = [(0, extent) for extent in self.shape(op, o)]
        ranges = []
        for _, slices, _ in self.readers(op, o):
            ranges += [box for box in slices if box not in ranges]
        if not ranges and of.get("result"):
            ranges = [whole]
        numbers = _held(of["outputs"][o])
        summands = [self.parts(first + p, numbers, whole, ranges) for p in range(n)]
        sums = []
        for r, wanted in enumerate(ranges):
            work = way.get("sum_ns", 0) * _volume(wanted) * (n - 1)
            time = -(-work // _volume(whole))
            i = self.add(f"{of['name']}+{o}.{r}", time, result=of.get("result", False))
            total = [0, 0, 0]
            for p, parts in enumerate(summands):
                for box, output in parts:
                    if _within(box, wanted):
                        self.arrows.append({"from": first + p, "output": output, "to": i})
                        if p == 0:
                            total = [
                                a + b
                                for a, b in zip(total, _held(self.ops[first]["outputs"][output]))
                            ]
            self.put(i, total)
            sums.append((i, self.put(i, [how["extra"], 0, 0]) if how.get("extra") else None))
        for to, q, wanted, own in self.asks(op, o):
            i, extra = sums[ranges.index(wanted)]
            self.late.append((i, 0, (to, q)))
            if extra is not None:
                self.late.append((i, extra, (to, q)))
            if own:
                self.late.append((i, self.put(i, [own, 0, 0]), (to, q)))

    def exchange(self, op, size, replicas):
        n, first, name = self.count(op), self.first[op], self.old[op]["name"]
        each = n // replicas
        shares = [share[0] for share in _shares([size], [1] * replicas)]
        groups = [self.ops[first + p]["group"] for p in range(n)]
        adds = [self.add(f"{name}+exchange#{p}", 0, group=groups[p]) for p in range(n)]
        keeps = [self.add(f"{name}+keep#{p}", 0, group=groups[p]) for p in range(n)]
        for p in range(n):
            peers = [r * each + p % each for r in range(replicas)]
            for r, peer in enumerate(peers):
                output = self.put(first + p, [shares[r]] * 3)
                self.arrows.append({"from": first + p, "output": output, "to": adds[peer]})
            output = self.put(adds[p], [shares[p // each]] * 3)
            for peer in peers:
                self.arrows.append({"from": adds[p], "output": output, "to": keeps[peer]})
