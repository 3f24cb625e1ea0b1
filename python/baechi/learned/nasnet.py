# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of networks that are stacks of cells: Zoph et al., Learning Transferable Architectures
for Scalable Image Recognition, CVPR 2018.

NASNet-A's two cells are the published ones, and others are drawn from the same search space.
Operators are costed by a roofline; nothing is imported and nothing can be executed.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from baechi.graphs.problem import Graph
from baechi.learned.backward import add_backward

# A block adds what two operations make of two hidden states. State 0 is the cell's input, 1 the
# input of the cell before, and from 2 on the blocks of this cell.
Block = tuple[tuple[int, str], tuple[int, str]]


@dataclasses.dataclass(frozen=True)
class Cell:
    blocks: tuple[Block, ...]
    joined: tuple[int, ...]
    """The states that its output concatenates."""


# The paper's figure 4.
NORMAL_A = Cell(
    (
        ((0, "sep5"), (1, "sep3")),
        ((1, "sep5"), (1, "sep3")),
        ((0, "avg3"), (1, "same")),
        ((1, "avg3"), (1, "avg3")),
        ((0, "sep3"), (0, "same")),
    ),
    (1, 2, 3, 4, 5, 6),
)
REDUCTION_A = Cell(
    (
        ((0, "sep5"), (1, "sep7")),
        ((0, "max3"), (1, "sep7")),
        ((0, "avg3"), (1, "sep5")),
        ((3, "same"), (2, "avg3")),
        ((2, "sep3"), (0, "max3")),
    ),
    (3, 4, 5, 6),
)
_OPERATIONS = ("same", "sep3", "sep5", "sep7", "avg3", "max3", "conv1", "conv3")
_WORD = 4  # bytes of a number


def random_cell(rng: random.Random, blocks: int = 5) -> Cell:
    """Each block reads any two states that are there already by any two operations; what no
    block reads is joined."""

    def reads(block: int) -> tuple[int, str]:
        return rng.randrange(2 + block), rng.choice(_OPERATIONS)

    drawn = tuple((reads(b), reads(b)) for b in range(blocks))
    read = {index for block in drawn for index, _ in block}
    return Cell(drawn, tuple(state for state in range(2, 2 + blocks) if state not in read))


@dataclasses.dataclass(frozen=True)
class Device:
    """The roofline of a kind of device."""

    gflops: float
    gb_per_s: float
    launch_ns: float

    @staticmethod
    def of(roofline: str) -> Device:
        """Of KIND:GFLOPS:GBS:LAUNCH_NS, as `--baechi-annotate-costs` takes it."""
        _, gflops, bandwidth, launch = roofline.split(":")
        return Device(float(gflops), float(bandwidth), float(launch))

    def time_ns(self, flops: float, moved: float) -> int:
        return round(self.launch_ns + max(flops / self.gflops, moved / self.gb_per_s))


@dataclasses.dataclass(frozen=True)
class _State:
    """A tensor of batch x side x side x channels: who makes it."""

    op: int
    side: int
    channels: int


class Network:
    """Groups of `repeats` normal cells with a reduction cell between two of them.

    Between groups, sides are halved and filters doubled. A training step: forward operators,
    then backward ones, which update the weights.
    """

    def __init__(self, device: Device, *, batch: int, side: int, filters: int):
        self._device, self._batch = device, batch
        self._graph = Graph()
        self._side, self._filters = side, filters

    def build(
        self, normal: Cell, reduction: Cell, *, groups: int = 3, repeats: int = 4, stems: int = 0
    ) -> Graph:
        """stems: reduction cells before the first group, behind a convolution with stride 2, as
        for ImageNet."""
        filters = self._filters
        images = _State(self._add("images", (), 0, self._bytes(self._side, 3)), self._side, 3)
        width, stride = (32, 2) if stems else (filters, 1)
        last = before = self._convolution("stem/conv3", images, 3, width, stride)
        for stem in range(stems):
            self._filters = filters // 2 ** (stems - stem)
            made = self._cell(f"stem/reduce{stem}", reduction, last, before, stride=2)
            last, before = made, last
        self._filters = filters
        for group in range(groups):
            if group > 0:
                self._filters *= 2
                made = self._cell(f"reduce{group}", reduction, last, before, stride=2)
                last, before = made, last
            for repeat in range(repeats):
                made = self._cell(f"g{group}/cell{repeat}", normal, last, before, stride=1)
                last, before = made, last
        pooled = self._pool("pool", last, last.side)
        classes = 1000
        weights = pooled.channels * classes * _WORD
        self._add(
            "loss",
            [pooled],
            2.0 * self._batch * pooled.channels * classes,
            self._batch * classes * _WORD,
            weights,
        )
        add_backward(self._graph)
        return self._graph

    def _cell(self, name: str, cell: Cell, last: _State, before: _State, stride: int) -> _State:
        # Both inputs get the cell's number of filters; the older one, which may be larger by a
        # reduction, its side, too.
        states = [
            self._convolution(f"{name}/in0", last, 1, self._filters),
            self._convolution(f"{name}/in1", before, 1, self._filters, before.side // last.side),
        ]
        for b, block in enumerate(cell.blocks):
            parts = []
            for k, (index, operation) in enumerate(block):
                by = stride if index < 2 else 1
                part = f"{name}/b{b}/{operation}.{k}"
                parts.append(self._operation(part, operation, states[index], by))
            states.append(self._elementwise(f"{name}/b{b}/add", parts, self._filters))
        joined = [states[i] for i in cell.joined]
        return self._elementwise(f"{name}/concat", joined, self._filters * len(joined))

    def _operation(self, name: str, operation: str, state: _State, stride: int) -> _State:
        kind, size = operation.rstrip("0123456789"), operation.lstrip("abcdefghijklmnopqrstuvwxyz")
        if kind == "same":
            return (
                state if stride == 1 else self._convolution(name, state, 1, self._filters, stride)
            )
        if kind == "conv":
            return self._convolution(name, state, int(size), self._filters, stride)
        if kind in ("avg", "max"):
            return self._pool(name, state, int(size), stride)
        # A separable convolution is applied twice, each a depthwise and a pointwise one.
        for half, by in enumerate((stride, 1)):
            state = self._depthwise(f"{name}/deep{half}", state, int(size), by)
            state = self._convolution(f"{name}/point{half}", state, 1, self._filters)
        return state

    def _bytes(self, side: int, channels: int) -> int:
        return self._batch * side * side * channels * _WORD

    def _add(
        self,
        name: str,
        inputs: Sequence[_State],
        flops: float,
        made: int,
        weights: int = 0,
    ) -> int:
        read = sum(self._bytes(state.side, state.channels) for state in inputs)
        return self._graph.add(
            name,
            self._device.time_ns(flops, read + made + weights),
            inputs=list(dict.fromkeys(state.op for state in inputs)),
            outputs=[made],
            # Weights and their momentum, beside which what updates them runs.
            resident=2 * weights,
            group=name if weights else None,
        )

    def _convolution(
        self, name: str, state: _State, size: int, channels: int, stride: int = 1
    ) -> _State:
        """With batch normalization and ReLU."""
        side = max(state.side // stride, 1)
        weights = size * size * state.channels * channels
        flops = 2.0 * self._batch * side * side * weights
        op = self._add(name, [state], flops, self._bytes(side, channels), weights * _WORD)
        return _State(op, side, channels)

    def _depthwise(self, name: str, state: _State, size: int, stride: int) -> _State:
        side = max(state.side // stride, 1)
        weights = size * size * state.channels
        flops = 2.0 * self._batch * side * side * weights
        op = self._add(name, [state], flops, self._bytes(side, state.channels), weights * _WORD)
        return _State(op, side, state.channels)

    def _pool(self, name: str, state: _State, size: int, stride: int | None = None) -> _State:
        side = max(state.side // (size if stride is None else stride), 1)
        made = self._bytes(side, state.channels)
        op = self._add(name, [state], made / _WORD * size * size, made)
        return _State(op, side, state.channels)

    def _elementwise(self, name: str, states: Sequence[_State], channels: int) -> _State:
        side = min(state.side for state in states)
        made = self._bytes(side, channels)
        return _State(self._add(name, states, made / _WORD, made), side, channels)


def nasnet_a(device: Device, *, batch: int = 32, repeats: int = 4, filters: int = 44) -> Graph:
    """NASNet-A for ImageNet; the defaults are the mobile one, "4 @ 1056"."""
    network = Network(device, batch=batch, side=224, filters=filters)
    return network.build(NORMAL_A, REDUCTION_A, repeats=repeats, stems=2)


def searched(
    device: Device,
    seed: int,
    *,
    batch: int = 32,
    side: int = 32,
    filters: int = 32,
    repeats: int = 2,
) -> Graph:
    """A network of two cells that a search could draw: the seed decides."""
    rng = random.Random(seed)
    normal, reduction = random_cell(rng), random_cell(rng)
    network = Network(device, batch=batch, side=side, filters=filters)
    return network.build(normal, reduction, repeats=repeats)
