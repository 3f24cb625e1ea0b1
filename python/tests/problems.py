# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small placement problems."""

from __future__ import annotations

import random
from typing import Any

import baechi

MACHINE: dict[str, Any] = {
    "format": "baechi-machine",
    "version": 1,
    "devices": [{"name": f"gpu{i}", "kind": "cuda", "memory": 10_000} for i in range(2)],
    "link_default": {"latency_ns": 10, "bytes_per_us": 1000},
    "link_model": "sequential",
}


def diamond() -> baechi.Graph:
    """b and c, the work, read a's result; d reads theirs."""
    graph = baechi.Graph()
    a = graph.add("a", 10, outputs=[10])
    b = graph.add("b", 1000, outputs=[10], inputs=[a])
    c = graph.add("c", 1000, outputs=[10], inputs=[a])
    graph.add("d", 10, outputs=[10], inputs=[b, c])
    return graph


def random_graph(seed: int, operators: int) -> dict[str, Any]:
    """Every operator reads up to three earlier ones, the last ones rather."""
    rng = random.Random(seed)
    graph = baechi.Graph()
    for i in range(operators):
        count = rng.randint(0, 3) if i else 0
        read = {max(0, i - 1 - int(rng.expovariate(0.2))) for _ in range(count)}
        graph.add(
            f"op{i}",
            rng.randint(1, 1000),
            inputs=sorted(read),
            outputs=[rng.randint(1, 500)],
            resident=rng.randint(0, 50),
            group=f"g{rng.randint(0, 9)}" if rng.random() < 0.3 else None,
        )
    return graph.to_dict()
