# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LSTM, GRU and RNN of ONNX: what torch-mlir's lowering ignores, step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import onnx

from baechi.importer.onnx.builder import Builder, attributes, given

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "HardSigmoid", "Elu")
# Longer ones would be programs of many thousands of operations.
_MOST_STEPS = 128


def _recurrent(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir lowers what is plain, a direction at a time; the rest is unrolled."""
    options = attributes(node)
    kind = node.op_type
    shape = build.shape(node.input[0])
    if len(shape) != 3 or not build.shape(node.input[2]):
        return build.keep()
    if options.get("activation_alpha") or options.get("activation_beta"):
        build.refuse("activation_alpha and activation_beta are not supported: leave them out")
    if kind == "LSTM" and options.get("clip"):
        build.refuse("clip, of which runtimes have different ideas in an LSTM: leave it out")
    direction = options.get("direction", b"forward").decode()
    count = 2 if direction == "bidirectional" else 1
    names = [name.decode() for name in options.get("activations", [])] or _DEFAULTS[kind] * count
    if strange := [name for name in names if name not in _ACTIVATIONS]:
        known = ", ".join(_ACTIVATIONS)
        build.refuse(f"the activation {strange[0]} is not supported: take one of {known}")
    layout = options.get("layout", 0)
    steps, batch = (shape[1], shape[0]) if layout else shape[:2]
    lengths = given(node, 4)
    known = build.known(lengths) if lengths else None
    if known is not None and (known == steps).all():
        lengths = ""
    whole = not (lengths or given(node, 7) or options.get("clip") or options.get("input_forget"))
    usual = {"Sigmoid", "Tanh", "Relu"} if kind != "GRU" else set()
    plain = whole and (names == _DEFAULTS[kind] * count or set(names) <= usual)
    if plain and (direction == "forward" or kind == "LSTM" and count == 2):
        inputs = [name if i != 4 else "" for i, name in enumerate(node.input)]
        while not inputs[-1]:
            inputs.pop()
        build.again(inputs, node.output)
        return
    if not plain and steps > _MOST_STEPS:
        build.refuse(
            f"sequence_lens, peepholes, clip, input_forget or other activations over {steps} "
            f"steps: at most {_MOST_STEPS}; leave them out or give shorter sequences"
        )
    x, states = node.input[0], [given(node, 5), given(node, 6)]
    if layout:
        x = build.add("Transpose", x, perm=[1, 0, 2])
        states = [build.add("Transpose", s, perm=[1, 0, 2]) if s else "" for s in states]
    each = len(_DEFAULTS[kind])
    parts = []
    for number in range(count):
        own = _Direction(
            build, node, number, steps, batch, direction == "reverse" or number == 1,
            names[number * each : (number + 1) * each], lengths, states,
        )  # fmt: skip
        parts.append(own.forward(x) if plain else own.unrolled(x))
    for position, output in enumerate(node.output):
        if output:
            # The directions are Y's second dimension and the first of the last states.
            axis, order = (0, [1, 0, 2]) if position else (1, [2, 0, 1, 3])
            joined = [part[position] for part in parts]
            last = "" if layout else output
            result = build.add("Concat", *joined, axis=axis, output=last)
            if layout:
                build.add("Transpose", result, perm=order, output=output)


@dataclasses.dataclass
class _Direction:
    build: Builder
    node: onnx.NodeProto
    number: int
    steps: int
    batch: int
    reverse: bool
    names: list[str]
    lengths: str
    states: list[str]

    def forward(self, x: str) -> list[str]:
        """As a node of one direction, over the reversed sequence where it is the other."""
        build, count = self.build, len(self.node.output)
        last = np.arange(self.steps)[::-1]
        if self.reverse:
            x = build.add("Gather", x, build.number(last, np.int64), axis=0)
        inputs = [x, self._own(1), self._own(2), self._own(3), ""]
        inputs += [self._part(state) for state in self.states]
        while not inputs[-1]:
            inputs.pop()
        results = build.again(
            inputs, [""] * count, direction="forward", layout=None, activations=self.names
        )
        if self.reverse:
            results[0] = build.add("Gather", results[0], build.number(last, np.int64), axis=0)
        return results

    def _part(self, name: str) -> str:
        """Its own of a tensor of both directions."""
        if not name or self.build.shape(self.node.input[1])[0] == 1:
            return name
        return self.build.slice(name, 0, self.number, self.number + 1)

    def _own(self, position: int) -> str:
        return self._part(given(self.node, position))

    def unrolled(self, x: str) -> list[str]:
        build, kind = self.build, self.node.op_type
        hidden = build.shape(self.node.input[2])[-1]
        width = _GATES[kind] * hidden
        features = build.shape(self.node.input[1])[-1]
        forward = build.reshape(self._own(1), [width, features])
        self._again = build.add(
            "Transpose", build.reshape(self._own(2), [width, hidden]), perm=[1, 0]
        )
        both = build.reshape(self._own(3), [2 * width]) if self._own(3) else ""
        zeros = build.number(np.zeros(width))
        self._bias = build.slice(both, 0, width, 2 * width) if both else zeros
        flat = build.reshape(x, [self.steps * self.batch, features])
        given_all = build.add("MatMul", flat, build.add("Transpose", forward, perm=[1, 0]))
        if both:
            given_all = build.add("Add", given_all, build.slice(both, 0, 0, width))
        self._given, self._hidden = given_all, hidden
        nothing = build.number(np.zeros((self.batch, hidden)))
        state = [
            build.reshape(self._part(name), [self.batch, hidden]) if name else nothing
            for name in self.states[: 2 if kind == "LSTM" else 1]
        ]
        peepholes = self._own(7)
        self._peepholes = build.reshape(peepholes, [3 * hidden]) if peepholes else ""
        results = [""] * self.steps
        order = range(self.steps)
        for step in reversed(order) if self.reverse else order:
            new = getattr(self, f"_{kind.lower()}")(step, *state)
            result = new[0]
            if self.lengths:
                now = build.number(step, np.int64)
                lengths = build.add("Cast", self.lengths, to=onnx.TensorProto.INT64)
                within = build.add("Less", now, build.reshape(lengths, [self.batch, 1]))
                new = [build.add("Where", within, n, old) for n, old in zip(new, state)]
                result = build.add("Where", within, result, nothing)
            results[step] = build.reshape(result, [1, 1, self.batch, hidden])
            state = new
        last = [build.reshape(each, [1, self.batch, hidden]) for each in state]
        return [build.add("Concat", *results, axis=0), *last]

    def _input(self, step: int) -> str:
        return self.build.slice(self._given, 0, step * self.batch, (step + 1) * self.batch)

    def _gates(self, x: str) -> list[str]:
        count, size = _GATES[self.node.op_type], self._hidden
        return [self.build.slice(x, 1, i * size, (i + 1) * size) for i in range(count)]

    def _apply(self, position: int, x: str) -> str:
        """An activation; `clip` bounds what it is given."""
        build, name = self.build, self.names[position]
        if bound := attributes(self.node).get("clip"):
            low, high = build.number(-bound), build.number(bound)
            x = build.add("Where", build.add("Less", x, low), low, x)
            x = build.add("Where", build.add("Less", high, x), high, x)
        if name == "Softsign":
            size = build.add("Add", build.add("Abs", x), build.number(1))
            return build.add("Div", x, size)
        return build.add(name, x)

    def _rnn(self, step: int, h: str) -> list[str]:
        build = self.build
        again = build.add("Add", build.add("MatMul", h, self._again), self._bias)
        return [self._apply(0, build.add("Add", self._input(step), again))]

    def _gru(self, step: int, h: str) -> list[str]:
        build, size = self.build, self._hidden
        z, r, own = self._gates(self._input(step))
        again = build.add("Add", build.add("MatMul", h, self._again), self._bias)
        update, reset, linear = self._gates(again)
        z = self._apply(0, build.add("Add", z, update))
        r = self._apply(0, build.add("Add", r, reset))
        if attributes(self.node).get("linear_before_reset", 0):
            again = build.add("Mul", r, linear)
        else:
            weights = build.slice(self._again, 1, 2 * size, 3 * size)
            bias = build.slice(self._bias, 0, 2 * size, 3 * size)
            again = build.add("MatMul", build.add("Mul", r, h), weights)
            again = build.add("Add", again, bias)
        new = self._apply(1, build.add("Add", own, again))
        rest = build.add("Mul", build.add("Sub", build.number(1), z), new)
        return [build.add("Add", rest, build.add("Mul", z, h))]

    def _lstm(self, step: int, h: str, c: str) -> list[str]:
        build, size = self.build, self._hidden
        again = build.add("Add", build.add("MatMul", h, self._again), self._bias)
        i, o, f, new = self._gates(build.add("Add", self._input(step), again))

        def peeped(gate: str, cell: str, position: int) -> str:
            if not self._peepholes:
                return gate
            weights = build.slice(self._peepholes, 0, position * size, (position + 1) * size)
            return build.add("Add", gate, build.add("Mul", weights, cell))

        i = self._apply(0, peeped(i, c, 0))
        if attributes(self.node).get("input_forget", 0):
            f = build.add("Sub", build.number(1), i)
        else:
            f = self._apply(0, peeped(f, c, 2))
        kept = build.add("Mul", f, c)
        cell = build.add("Add", kept, build.add("Mul", i, self._apply(1, new)))
        o = self._apply(0, peeped(o, cell, 1))
        return [build.add("Mul", o, self._apply(2, cell)), cell]


EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
}
