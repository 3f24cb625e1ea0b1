# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated problems that a policy is trained on: networks of cells as a search draws them,
recurrent layers, branches and towers, each on a machine of its own.

None is a model of the collection, and NASNet-A is not among them.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from baechi.graphs.problem import Device, Graph, Link, Machine
from baechi.learned import nasnet
from baechi.learned.backward import add_backward


class Problem(NamedTuple):
    name: str
    graph: Graph
    machine: Machine


def problems(seed: int, count: int) -> list[Problem]:
    """Of each kind in turn; the same for the same seed, and the first ones whatever the count."""
    found = []
    for i in range(count):
        kind = list(_KINDS)[i % len(_KINDS)]
        rng = random.Random(f"{seed}/{i}")
        graph = _KINDS[kind](rng)
        found.append(Problem(f"{kind}{i}", graph, _machine(rng, graph)))
    return found


def _machine(rng: random.Random, graph: Graph) -> Machine:
    """Two to four devices. Links such that a tensor of mean size takes a twentieth to twenty
    times an operator of mean time, a tenth to all of it before the first byte. One problem in
    four has memory for little more than an even share, or not even for that."""
    count = rng.randint(2, 4)
    times = [op.time_ns for op in graph.ops if isinstance(op.time_ns, int)]
    sizes = [output for op in graph.ops for output in op.outputs if isinstance(output, int)]
    transfer = sum(times) / len(times) * 0.05 * 400 ** rng.random()
    latency = transfer * 0.1 * 10 ** rng.random()
    bytes_per_us = 1000 * sum(sizes) / len(sizes) / max(transfer - 0.9 * latency, 1)
    held = sum(op.resident for op in graph.ops) + sum(sizes)
    share = rng.choice([2.0, 2.0, 2.0, 1.3 / count])
    return Machine(
        [Device(f"d{i}", "cuda", int(held * share) + 1) for i in range(count)],
        Link(round(latency), max(round(bytes_per_us), 1)),
        link_model=rng.choice(["sequential", "sequential", "duplex"]),
    )


def _cells(rng: random.Random) -> Graph:
    device = nasnet.Device(10_000, 448, 5_000)
    return nasnet.searched(
        device,
        rng.randrange(2**31),
        batch=rng.choice([16, 32, 64]),
        side=rng.choice([16, 32]),
        filters=rng.choice([16, 32, 64]),
        repeats=rng.randint(1, 2),
    )


def _recurrent(rng: random.Random) -> Graph:
    """Layers of cells over time: each reads the one before it and the one below. A layer's cells
    share their weights, so a device."""
    graph = Graph()
    steps = rng.randint(6, 20)
    below = [graph.add(f"in{t}", 0, outputs=[1000]) for t in range(steps)]
    for layer in range(rng.randint(4, 12)):
        time, size = _log(rng, 1e4, 1e6), _log(rng, 1e3, 1e6)
        weights, order = _log(rng, 1e4, 1e7), range(steps)
        # Some layers read from the end.
        state: int | None = None
        made = [0] * steps
        for t in reversed(order) if rng.random() < 0.2 else order:
            made[t] = graph.add(
                f"l{layer}/t{t}",
                time,
                inputs=[below[t]] if state is None else [below[t], state],
                outputs=[size],
                resident=weights if state is None else 0,
                group=f"l{layer}",
            )
            state = made[t]
        below = made
    for t in range(steps):
        graph.add(f"head{t}", _log(rng, 1e4, 1e6), inputs=[below[t]], outputs=[8], group="head")
    add_backward(graph)
    return graph


def _branches(rng: random.Random) -> Graph:
    """Blocks of branches of unlike work between operators that all of them read and join."""
    graph = Graph()
    last = graph.add("in", 0, outputs=[_log(rng, 1e4, 1e6)])
    for block in range(rng.randint(2, 6)):
        ends = []
        for branch in range(rng.randint(2, 8)):
            at = last
            for step in range(rng.randint(1, 3)):
                name = f"b{block}/{branch}/{step}"
                at = _layer(rng, graph, name, [at])
            ends.append(at)
        last = _layer(rng, graph, f"b{block}/join", ends)
    add_backward(graph)
    return graph


def _towers(rng: random.Random) -> Graph:
    """Chains that talk rarely, and meet at the end."""
    graph = Graph()
    ends: list[int] = []
    for tower in range(rng.randint(2, 5)):
        at = graph.add(f"in{tower}", 0, outputs=[_log(rng, 1e4, 1e6)])
        for step in range(rng.randint(3, 10)):
            read = [at]
            if ends and rng.random() < 0.1:
                read.append(rng.choice(ends))
            at = _layer(rng, graph, f"t{tower}/{step}", read)
        ends.append(at)
    _layer(rng, graph, "end", ends)
    add_backward(graph)
    return graph


def _layer(rng: random.Random, graph: Graph, name: str, inputs: list[int]) -> int:
    return graph.add(
        name,
        _log(rng, 1e4, 1e6),
        inputs=inputs,
        outputs=[_log(rng, 1e4, 1e6)],
        resident=_log(rng, 1e4, 1e7),
        group=name,
    )


def _log(rng: random.Random, low: float, high: float) -> int:
    """Between the two, each order of magnitude as likely."""
    return round(low * (high / low) ** rng.random())


_KINDS = {"cells": _cells, "recurrent": _recurrent, "branches": _branches, "towers": _towers}
