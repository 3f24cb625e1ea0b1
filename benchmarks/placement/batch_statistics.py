#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plans of Inception over slow links would take if its pieces sent fewer messages.

    batch_statistics.py BAECHI_PLACE GRAPH MACHINE

GRAPH is the whole step's, as `python -m baechi.experiments` keeps it (graph.json), MACHINE has the
devices gpu0 to gpu3. Cuts the batch of every module by hand, pins the pieces, and has m-SCT order
what they compute and send. Pieces are taken to be the whole's time without the launch, shared out;
statistics are those of the whole batch. Prints ms of a step.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import subprocess
import tempfile

LAUNCH_NS = 5000
BYTES_PER_NS = 448  # of a device's memory
DEVICES = {1: [0], 2: [0, 2], 4: [0, 1, 2, 3]}  # of so many pieces
FRONT = ("stem", "a0", "a1", "a2", "reduction_b")  # on large images
REST = ("b0", "b1", "b2", "b3", "reduction_c", "c0", "c1")
PLANS = {"all in 2": (2, 2), "front in 2": (2, 1), "front in 4, rest in 2": (4, 2)}


@dataclasses.dataclass(frozen=True)
class Messages:
    one_backward: bool = False  # both sums of a normalisation's gradient in one
    siblings: bool = False  # the sums of all branches at one depth of a module in one
    gradients: str = "weight"  # one a "weight", one a "module", or "none"


STEPS = {
    "as it is": Messages(),
    "both backward sums in one": Messages(one_backward=True),
    "and a module's gradients": Messages(one_backward=True, gradients="module"),
    "and those of branches": Messages(one_backward=True, siblings=True, gradients="module"),
    "and no gradients at all": Messages(one_backward=True, siblings=True, gradients="none"),
}


class Whole:
    """The step that is cut: its operators by what is to become of them."""

    def __init__(self, graph):
        self.ops = graph["ops"]
        self.reads, self.readers = collections.defaultdict(list), collections.defaultdict(list)
        for edge in graph["edges"]:
            if "output" in edge:
                self.reads[edge["to"]].append((edge["from"], edge["output"]))
                self.readers[edge["from"]].append(edge["to"])
        # On every device: parameters, and what is computed of them alone.
        self.everywhere = set()
        for op in self.ops:
            id_, name = op["id"], op["name"]
            given = name.startswith(("params/", "key", "batch"))
            of_given = self.reads[id_] and all(a in self.everywhere for a, _ in self.reads[id_])
            if given or (of_given and "conv" not in name and not name.startswith("stem")):
                self.everywhere.add(id_)
        self.updates = {op["id"] for op in self.ops if op["name"].startswith("update")}
        self.gradients = {
            op["id"]
            for op in self.ops
            if self.is_backward(op) and "conv" in op["name"] and self.is_only_updated(op)
        }

    @staticmethod
    def is_backward(op):
        return op["name"].startswith("backward/")

    def is_only_updated(self, op):
        readers = self.readers[op["id"]]
        return bool(readers) and all(reader in self.updates for reader in readers)

    @staticmethod
    def module(op):
        return op["name"].removeprefix("backward/").split("/")[0]

    @staticmethod
    def bytes(op):
        return [each["bytes"] if isinstance(each, dict) else each for each in op["outputs"]]

    @staticmethod
    def is_sum(op):
        return "norm/" in op["name"] and "reduce_sum" in op["name"]

    def is_small(self, op):
        return "norm/" in op["name"] and all(each < 20000 for each in self.bytes(op))


class Pieces:
    """A step in pieces, as a graph file."""

    def __init__(self, whole, counts, messages):
        self.whole, self.counts, self.messages = whole, counts, messages
        self.ops, self.edges = [], []
        self.made = {}  # by operator and piece
        self.sums = {}  # by operator: for each piece
        self.gradients = collections.defaultdict(list)  # by module
        last = ("#1",) if messages.one_backward else ("#1", "#2")
        ends = [op for op in whole.ops if whole.is_sum(op) and op["name"].endswith(last)]
        self.groups = self.siblings(ends) if messages.siblings else {}
        self.groups = {op["id"]: self.groups.get(op["id"], [op["id"]]) for op in ends}
        self.build()

    def count(self, op):
        return self.counts.get(self.whole.module(op), 1)

    def siblings(self, ends):
        """The sums that are as deep in their module, forward or backward."""
        ids, depth, together = {op["id"] for op in ends}, {}, collections.defaultdict(list)
        for op in self.whole.ops:
            side = self.whole.is_backward(op), self.whole.module(op)
            before = [a for a, _ in self.whole.reads[op["id"]] if depth.get(a, (0, 0))[1] == side]
            deep = max((depth[a][0] for a in before), default=0) + (op["id"] in ids)
            depth[op["id"]] = deep, side
            if op["id"] in ids:
                together[deep, side].append(op["id"])
        return {id_: group for group in together.values() for id_ in group}

    def add(self, name, ns, device, outputs, reads=()):
        id_ = len(self.ops)
        self.ops.append(
            {"id": id_, "name": name, "time_ns": int(ns), "outputs": outputs, "pin": f"gpu{device}"}
        )
        for source, output in dict.fromkeys(reads):
            self.edges.append({"from": source, "output": output, "to": id_})
        return id_

    def build(self):
        done, left = set(self.whole.everywhere) | self.whole.updates, list(self.whole.ops)
        while left:
            later = []
            for op in left:
                if op["id"] in done:
                    continue
                if not all(a in done for a, _ in self.whole.reads[op["id"]]):
                    later.append(op)
                    continue
                self.cut(op)
                group = self.groups.get(op["id"])
                if group is None:
                    done.add(op["id"])
                elif all((each, 0) in self.made for each in group):
                    self.exchange(group)
                    done.update(group)
            assert len(later) < len(left), "the graph has a cycle"
            left = later

    def cut(self, op):
        count, id_ = self.count(op), op["id"]
        ns = op["time_ns"]["cuda"] if isinstance(op["time_ns"], dict) else op["time_ns"]
        ns = ns if count == 1 else min(ns, LAUNCH_NS) + max(ns - LAUNCH_NS, 0) / count
        outputs = self.whole.bytes(op)
        if not self.whole.is_small(op) and id_ not in self.whole.gradients:
            # By quarters of the batch, which others may read alone.
            outputs = [each // 4 for each in outputs for _ in range(4 // count)]
        for piece, device in enumerate(DEVICES[count]):
            reads = [
                each for read in self.whole.reads[id_] for each in self.read(read, piece, count)
            ]
            name = f"{op['name']}#{piece}"
            self.made[id_, piece] = self.add(name, ns, device, outputs, reads)
        if id_ in self.whole.gradients and count > 1:
            self.send_gradient(op, count)

    def read(self, source, piece, count):
        """The parts of an output that a piece of `count` reads."""
        id_, output = source
        op = self.whole.ops[id_]
        if id_ in self.whole.everywhere or id_ in self.whole.gradients:
            return []
        parts = self.count(op)
        if self.whole.is_small(op):
            own = self.sums.get(id_) or [self.made[id_, each] for each in range(parts)]
            return [(own[piece if parts == count else 0], 0)]
        wide = 4 // parts
        quarters = range(piece * (4 // count), (piece + 1) * (4 // count))
        return [(self.made[id_, q // wide], output * wide + q % wide) for q in quarters]

    def exchange(self, group):
        """The sums of all pieces for each of them, by recursive doubling."""
        op = self.whole.ops[group[0]]
        count = self.count(op)
        size = sum(2 * self.whole.bytes(self.whole.ops[each])[0] for each in group)
        own = [
            self.add(
                f"{op['name']}.own{piece}", 0, device, [size],
                [(self.made[each, piece], 0) for each in group],
            )
            for piece, device in enumerate(DEVICES[count])
        ]  # fmt: skip
        bit = 1
        while bit < count:
            own = [
                self.add(
                    f"{op['name']}.sum{bit}.{piece}", 0, device, [size],
                    [(own[piece & ~bit], 0), (own[piece | bit], 0)],
                )
                for piece, device in enumerate(DEVICES[count])
            ]  # fmt: skip
            bit *= 2
        self.sums.update((each, own) for each in group)

    def send_gradient(self, op, count):
        """To the device that updates the weight, and the weight back."""
        module = self.whole.module(op)
        same = [each for each in self.whole.gradients if self.module_of(each) == module]
        self.gradients[module].append(op["id"])
        if self.messages.gradients == "weight":
            self.update(op["name"], [op["id"]], DEVICES[count], op["id"] % count, 1)
        elif self.messages.gradients == "module" and len(self.gradients[module]) == len(same):
            for owner in range(count):
                self.update(module, same, DEVICES[count], owner, count)

    def module_of(self, id_):
        return self.whole.module(self.whole.ops[id_])

    def update(self, name, gradients, devices, owner, owners):
        size = sum(self.whole.bytes(self.whole.ops[each])[0] for each in gradients) // owners
        packed = [
            self.add(
                f"{name}.packed{owner}.{piece}", 0, device, [size],
                [(self.made[each, piece], 0) for each in gradients],
            )
            for piece, device in enumerate(devices)
        ]  # fmt: skip
        updated = self.add(
            f"{name}.updated{owner}", LAUNCH_NS + 7 * size / BYTES_PER_NS, devices[owner], [size],
            [(each, 0) for each in packed],
        )  # fmt: skip
        for piece, device in enumerate(devices):
            if piece != owner:
                self.add(f"{name}.got{owner}.{piece}", 0, device, [], [(updated, 0)])


def step_ms(tool, machine, pieces):
    with tempfile.TemporaryDirectory() as folder:
        graph, report = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "report.json"
        data = {"format": "baechi-graph", "version": 1, "ops": pieces.ops, "edges": pieces.edges}
        graph.write_text(json.dumps(data))
        words = [tool, graph, machine, "--placer=msct", "--budget=0", f"--json={report}"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())["makespan_ns"] / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tool", "graph", "machine"):
        parser.add_argument(name)
    given = parser.parse_args()
    whole = Whole(json.loads(pathlib.Path(given.graph).read_text()))
    print(f"| messages | {' | '.join(PLANS)} |", "|---" * (len(PLANS) + 1) + "|", sep="\n")
    for title, messages in STEPS.items():
        cells = []
        for front, rest in PLANS.values():
            counts = dict.fromkeys(FRONT, front) | dict.fromkeys(REST, rest)
            pieces = Pieces(whole, counts, messages)
            cells.append(f"{step_ms(given.tool, given.machine, pieces):.1f}")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
