#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the graph of a Transformer's training step for machines of nodes, and such a machine.

    node_step.py GRAPH MACHINE [--nodes=8] [--layers=8] [--parts=128] [--plain] ...

The batch is in parts (micro-batches), each a forward and a backward pass; parameters and their
updates are of all parts. Every operator states ways in 2, 4 and 8 pieces: `data/K` cuts the rows
of a part (parameters are held K times, updates exchanged), `tensor/K` cuts matrices in turns by
columns and rows (Shoeybi et al., "Megatron-LM", 2019) and what lies between them by rows
(Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022).
Times are a roofline's: 300 TFLOP/s, 2 TB/s, 5 us at the least.
"""

import argparse
import json

PIECES = (2, 4, 8)
WORD = 2  # bytes of an element
STATE = 16  # bytes of a parameter, its gradient and its optimizer's state


def roofline(flops, size):
    return max(5000, round(max(flops / 300e3, size / 2000)))


class Step:
    def __init__(self, arguments):
        self.given = arguments
        self.ops, self.edges = [], []
        self.rows, self.width = arguments.tokens, arguments.hidden

    def add(self, name, outputs, reads=(), **members):
        """outputs: (rows, columns, is it held); reads: operators, their first output."""
        op = {"id": len(self.ops), "name": name, **members, "outputs": []}
        for rows, columns, held in outputs:
            size = rows * columns * WORD
            op["outputs"].append(
                {"bytes": size, "memory": size * held, "copy": size, "shape": [rows, columns]}
            )
        self.ops.append(op)
        for each in reads:
            self.edges.append({"from": each, "output": 0, "to": op["id"]})
        return op["id"]

    def ways(self, op, flops, size, cuts, state=0, exchange=0):
        """Sets an operator's times. cuts: by the first word of a way's name, how its output is
        made (0: by rows, 1: by columns, "sum": in summands, None: all of it in each piece) and
        how each input is read."""
        self.ops[op]["time_ns"] = roofline(flops, size) if flops or size else 0
        if state:
            self.ops[op]["resident"] = state
        if self.given.plain:
            for output in self.ops[op]["outputs"]:
                del output["shape"]
            return
        found = []
        for word, (made, reads, whole_state) in cuts.items():
            for k in PIECES:
                piece = {"time_ns": roofline(flops / k, size / k) if flops or size else 0}
                if state:
                    piece["resident"] = state if whole_state else state // k
                way = {"name": f"{word}/{k}", "pieces": [piece] * k}
                if made == "sum":
                    total = self.ops[op]["outputs"][0]["bytes"]
                    way["outputs"] = [{"partial": True}]
                    way["sum_ns"] = max(1000, round(3 * total / 2000))
                elif made is not None and self.ops[op]["outputs"]:
                    way["outputs"] = [{"along": made}]
                sources = [e["from"] for e in self.edges[-64:] if e["to"] == op]
                if len(sources) < len(reads):
                    sources = [e["from"] for e in self.edges if e["to"] == op]
                way["inputs"] = [
                    {"from": source, "output": 0, "along": along}
                    for source, along in zip(sources, reads)
                    if along is not None
                ]
                if exchange and whole_state:
                    way |= {"replicas": k, "exchange": exchange}
                found.append(way)
        self.ops[op]["alternatives"] = found

    def weight(self, name, rows, columns, along):
        """A parameter: its operator, and what its gradients and its update are like."""
        op = self.add(f"{name}/w", [(rows, columns, 0)], group=name, backward=False)
        self.ways(
            op,
            0,
            0,
            {"data": (None, [], True), "tensor": (along, [], False)},
            state=rows * columns * STATE,
        )
        return {"op": op, "name": name, "rows": rows, "columns": columns, "along": along, "of": []}

    def matmul(self, name, part, x, weight, x_along, made):
        """x times a parameter, cut for `tensor` as given; data/K has a share of the rows."""
        m, k, n = self.rows, weight["rows"], weight["columns"]
        op = self.add(name, [(m, n, 1)], [x, weight["op"]], part=part)
        self.ways(
            op,
            2 * m * k * n,
            WORD * (m * k + k * n + m * n),
            {
                "data": (0, [0, None], False),
                "tensor": (made, [x_along, weight["along"]], False),
            },
        )
        return op

    def back(self, name, part, grad, forward, weight, grad_along, made, x, x_along):
        """The gradients of a product's input, and of its parameter, added up in place."""
        m, k, n = self.rows, weight["rows"], weight["columns"]
        size = WORD * (m * k + k * n + m * n)
        dx = self.add(
            f"{name}/dx",
            [(m, k, 1)],
            [grad, weight["op"]],
            part=part,
            backward=True,
            forward=forward,
        )
        self.ways(
            dx,
            2 * m * k * n,
            size,
            {
                "data": (0, [0, None], False),
                "tensor": (made, [grad_along, weight["along"]], False),
            },
        )
        dw = self.add(
            f"{name}/dw",
            [(8, 1, 0)],
            [x, grad],
            part=part,
            backward=True,
            forward=forward,
            group=weight["name"],
        )
        self.ways(
            dw,
            2 * m * k * n,
            size,
            {"data": (0, [0, 0], False), "tensor": (0, [x_along, grad_along], False)},
        )
        weight["of"].append(dw)
        return dx

    def plain(self, name, part, columns, reads, along, passes=3, **members):
        """Element by element, or along rows."""
        op = self.add(name, [(self.rows, columns, 1)], reads, part=part, **members)
        size = self.rows * columns * WORD * passes
        self.ways(
            op,
            0,
            size,
            {
                "data": (0, [0] * len(reads), False),
                "tensor": (along, [along] * len(reads), False),
            },
        )
        return op

    def attention(self, name, part, reads, columns, scale, **members):
        op = self.add(name, [(self.rows, columns, 1)], reads, part=part, **members)
        flops = 4 * self.rows * self.given.sequence * self.width * scale
        self.ways(
            op,
            flops,
            WORD * self.rows * 4 * self.width * scale,
            {"data": (0, [0] * len(reads), False), "tensor": (1, [1] * len(reads), False)},
        )
        return op

    def update(self, weight):
        size = weight["rows"] * weight["columns"]
        op = self.add(
            f"{weight['name']}/update",
            [],
            weight["of"],
            group=weight["name"],
            backward=True,
            exchange=size * WORD,
        )
        self.ways(
            op,
            0,
            size * STATE * 2,
            {
                "data": (None, [0] * len(weight["of"]), True),
                "tensor": (None, [0] * len(weight["of"]), False),
            },
            exchange=size * WORD,
        )

    def make(self):
        h, vocabulary = self.width, self.given.vocabulary
        layers = []
        for i in range(self.given.layers):
            layers.append(
                {
                    "qkv": self.weight(f"l{i}/qkv", h, 3 * h, 1),
                    "proj": self.weight(f"l{i}/proj", h, h, 0),
                    "up": self.weight(f"l{i}/up", h, 4 * h, 1),
                    "down": self.weight(f"l{i}/down", 4 * h, h, 0),
                }
            )
        head = self.weight("head", h, vocabulary, 1)
        for part in range(self.given.parts):
            self.part(part, layers, head)
        for each in [*(w for layer in layers for w in layer.values()), head]:
            self.update(each)
        return {"format": "baechi-graph", "version": 1, "ops": self.ops, "edges": self.edges}

    def part(self, part, layers, head):
        h, p = self.width, f"p{part}/"
        x = self.plain(f"{p}embed", part, h, [], 0)
        kept = []
        for i, layer in enumerate(layers):
            at = f"{p}l{i}/"
            n1 = self.plain(f"{at}norm1", part, h, [x], 0)
            qkv = self.matmul(f"{at}qkv", part, n1, layer["qkv"], None, 1)
            att = self.attention(f"{at}att", part, [qkv], h, 1)
            proj = self.matmul(f"{at}proj", part, att, layer["proj"], 1, "sum")
            n2 = self.plain(f"{at}norm2", part, h, [proj], 0)
            up = self.matmul(f"{at}up", part, n2, layer["up"], None, 1)
            act = self.plain(f"{at}act", part, 4 * h, [up], 1, 2)
            x = self.matmul(f"{at}down", part, act, layer["down"], 1, "sum")
            kept.append((n1, qkv, att, proj, n2, up, act, x))
        last = self.plain(f"{p}last", part, h, [x], 0)
        logits = self.matmul(f"{p}logits", part, last, head, None, 1)
        g = self.plain(
            f"{p}loss", part, self.given.vocabulary, [logits], 1, backward=True, forward=logits
        )
        g = self.back(f"{p}logits", part, g, logits, head, 1, "sum", last, None)
        g = self.plain(f"{p}last/dx", part, h, [g], 0, 4, backward=True, forward=last)
        for i in reversed(range(len(layers))):
            at, layer = f"{p}l{i}/", layers[i]
            n1, qkv, att, proj, n2, up, act, down = kept[i]
            g = self.back(f"{at}down", part, g, down, layer["down"], None, 1, act, 1)
            g = self.plain(f"{at}act/dx", part, 4 * h, [g, up], 1, 3, backward=True, forward=act)
            g = self.back(f"{at}up", part, g, up, layer["up"], 1, "sum", n2, None)
            g = self.plain(f"{at}norm2/dx", part, h, [g, proj], 0, 4, backward=True, forward=n2)
            g = self.back(f"{at}proj", part, g, proj, layer["proj"], None, 1, att, 1)
            g = self.attention(f"{at}att/dx", part, [g, qkv], 3 * h, 2, backward=True, forward=att)
            g = self.back(f"{at}qkv", part, g, qkv, layer["qkv"], 1, "sum", n1, None)
            g = self.plain(f"{at}norm1/dx", part, h, [g, n1], 0, 4, backward=True, forward=n1)


def machine(nodes, devices, memory):
    return {
        "format": "baechi-machine",
        "version": 1,
        "nodes": nodes,
        "devices_per_node": devices,
        "device": {"kind": "cuda", "memory": memory},
        "inside": {"latency_ns": 2000, "bytes_per_us": 300_000},
        "between": {"latency_ns": 5000, "bytes_per_us": 25_000, "cards_per_node": 1},
        "link_model": "duplex",
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph")
    parser.add_argument("machine")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--devices", type=int, default=8, help="of a node")
    parser.add_argument("--memory", type=int, default=80 << 30, help="bytes of a device")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--parts", type=int, default=128, help="of the batch")
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--tokens", type=int, default=8192, help="rows of a part")
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=32768)
    parser.add_argument("--plain", action="store_true", help="without alternatives")
    given = parser.parse_args()
    for path, data in (
        (given.graph, Step(given).make()),
        (given.machine, machine(given.nodes, given.devices, given.memory)),
    ):
        with open(path, "w") as file:
            json.dump(data, file, separators=(",", ":"))


if __name__ == "__main__":
    main()
