# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backward operators of a graph that has forward ones alone, as generated graphs are."""

from __future__ import annotations

from baechi.graphs.problem import Graph, Output

_LONGER = 2  # gradients by inputs and by weights


def add_backward(graph: Graph) -> None:
    """Appends a backward operator for each operator that reads anything: it reads what the
    operator read and the gradients that its readers' backward operators make, and takes twice
    as long. The last operators' are begun by the operators themselves.
    """
    forward = list(graph.ops)
    reads: list[list[tuple[int, int]]] = [[] for _ in forward]
    readers: list[list[int]] = [[] for _ in forward]
    for source, output, target in graph.edges:
        if output is not None:
            reads[target].append((source, output))
            readers[source].append(target)
    # The backward operator of each, and which of its outputs is the gradient by a source.
    made: dict[int, int] = {}
    gradient: dict[tuple[int, int], int] = {}
    for number in reversed(range(len(forward))):
        op = forward[number]
        if not reads[number]:
            continue
        sources = list(dict.fromkeys(source for source, _ in reads[number]))
        inputs = list(dict.fromkeys(reads[number]))
        for reader in dict.fromkeys(readers[number]):
            inputs.append((made[reader], gradient[reader, number]))
        if not readers[number]:
            inputs.append((number, 0))
        time = op.time_ns
        assert isinstance(time, int)
        made[number] = graph.add(
            f"{op.name}/backward",
            _LONGER * time,
            inputs=inputs,
            outputs=[_size(forward[source].outputs[0]) for source in sources],
            group=op.group,
            backward=True,
            forward=number,
        )
        for place, source in enumerate(sources):
            gradient[number, source] = place


def _size(output: int | Output) -> int:
    return output.bytes if isinstance(output, Output) else output
