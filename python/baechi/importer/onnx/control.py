# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose turns are known and branches whose conditions are: the nodes of their bodies,
once a turn; sequences as the tensors in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from baechi.importer.onnx import sequences
from baechi.importer.onnx.builder import attributes, given
from baechi.importer.onnx.graph import (
    MOST_FOLDED,
    every_node,
    known_results,
    known_shapes,
    small_values,
)

# More turns would be programs of many thousands of operations.
MOST_TURNS = 128


def flatten(model: onnx.ModelProto, unsettled: Collection[str]) -> bool:
    """In place; the model's types must be inferred. False if there was nothing to do. What
    is left has more turns, or depends on values."""
    flat = _Flat(model, unsettled)
    for node in model.graph.node:
        flat.take(node)
    graph = model.graph
    if not flat.changed or any(value.name in flat.sequences for value in graph.output):
        return False
    del graph.node[:]
    graph.node.extend(flat.nodes)
    used = {name for node in every_node(graph) for name in node.input}
    used |= {value.name for value in graph.output}
    graph.initializer.extend(t for name, t in flat.made.items() if name in used)
    del graph.value_info[:]
    return True


class _Flat:
    """The nodes of a graph, as they are taken over."""

    def __init__(self, model: onnx.ModelProto, unsettled: Collection[str]):
        self.nodes: list[onnx.NodeProto] = []
        self.made: dict[str, onnx.TensorProto] = {}  # initializers
        self.known = small_values(model.graph, unsettled)
        self.shapes = known_shapes(model.graph)
        self.sequences: dict[str, list[str]] = {}
        self.changed = False
        self._model = model

    def take(self, node: onnx.NodeProto) -> None:
        """Takes it apart where that can be done."""
        kind = node.op_type if node.domain in ("", "ai.onnx") else ""
        if kind == "If":
            done = self._branch(node)
        elif kind == "Loop":
            done = self._loop(node)
        elif kind == "Scan":
            done = self._scan(node)
        elif kind == "SequenceMap":
            done = self._map(node)
        else:
            done = sequences.take(node, self)
        if not done:
            self.nodes.append(node)
        self.changed = self.changed or done

    def add(self, operator: str, inputs: list[str], outputs: list[str], **options) -> None:
        self._put(
            helper.make_node(operator, inputs, outputs, f"{outputs[0]}/{operator}", **options)
        )

    def constant(self, name: str, value) -> str:
        array = np.asarray(value)
        self.made[name] = numpy_helper.from_array(array, name)
        if array.size <= MOST_FOLDED:
            self.known[name] = array
        return name

    def _put(self, node: onnx.NodeProto) -> None:
        """As its results where they are known: the next turn may depend on them."""
        values = known_results(self._model, node, self.known, self.shapes)
        if values is None:
            self.take(node)
            return
        for name, value in zip(node.output, values):
            if name:
                self.constant(name, value)

    def _paste(
        self, body: onnx.GraphProto, arguments: list[str], place: str, turn: str
    ) -> list[str]:
        """Its results' names. Its own constants are there once for all turns."""
        names = {value.name: name for value, name in zip(body.input, arguments, strict=True)}
        for tensor in body.initializer:
            names[tensor.name] = f"{place}/{tensor.name}"
            self.constant(names[tensor.name], numpy_helper.to_array(tensor))
        prefix = f"{place}/{turn}" if turn else place
        for node in body.node:
            names |= {name: f"{prefix}/{name}" for name in node.output if name}
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.name = f"{prefix}/{node.name.lstrip('/')}" if node.name else ""
            rename(copy, names)
            del copy.output[:]
            copy.output.extend(names.get(name, "") for name in node.output)
            self._put(copy)
        return [names.get(value.name, value.name) for value in body.output]

    def _connect(self, results: list[str], outputs: list[str]) -> None:
        for result, output in zip(results, outputs, strict=True):
            if output:
                self.add("Identity", [result], [output])

    def _branch(self, node: onnx.NodeProto) -> bool:
        condition = self.known.get(node.input[0])
        if condition is None:
            return False
        chosen = "then_branch" if condition.all() else "else_branch"
        self._connect(self._paste(attributes(node)[chosen], [], _place(node), ""), node.output)
        return True

    def _loop(self, node: onnx.NodeProto) -> bool:
        body, place = attributes(node)["body"], _place(node)
        count, condition = given(node, 0), given(node, 1)
        if not (count or condition) or any(
            name and name not in self.known for name in (count, condition)
        ):
            return False
        turns = int(self.known[count].item()) if count else MOST_TURNS + 1
        going = bool(self.known[condition].item()) if condition else True
        carried, collected = list(node.input[2:]), len(body.output) - len(node.input) + 1
        results: list[list[str]] = [[] for _ in range(collected)]
        before, self.nodes = self.nodes, []
        turn = 0
        while going and turn < turns:
            number = np.array(turn).reshape([1] * len(body.input[0].type.tensor_type.shape.dim))
            arguments = [
                self.constant(f"{place}/{turn}/number", number),
                self.constant(f"{place}/{turn}/condition", np.array(True)),
                *carried,
            ]
            new = self._paste(body, arguments, place, str(turn))
            turn += 1
            if new[0] not in self.known or turn > MOST_TURNS:
                self.nodes = before
                return False
            going = bool(self.known[new[0]].item())
            carried = new[1 : 1 + len(carried)]
            for result, name in zip(results, new[1 + len(carried) :], strict=True):
                result.append(name)
        last = list(node.output[len(carried) :])
        if not turn and any(last):  # results without elements
            self.nodes = before
            return False
        self.nodes = before + self.nodes
        self._connect(carried, node.output[: len(carried)])
        for output, parts in zip(last, results):
            if output:
                self.stack(parts, output, 0)
        return True

    def _scan(self, node: onnx.NodeProto) -> bool:
        options, place = attributes(node), _place(node)
        body, count = options["body"], options["num_scan_inputs"]
        states, scanned = list(node.input[:-count]), node.input[-count:]
        axes = options.get("scan_input_axes", [0] * count)
        backwards = options.get("scan_input_directions", [0] * count)
        shapes = [self.shapes.get(name, []) for name in scanned]
        lengths = {shape[axis] for shape, axis in zip(shapes, axes) if shape}
        if not all(shapes) or len(lengths) != 1 or max(lengths) > MOST_TURNS:
            return False
        (turns,) = lengths
        outputs = node.output[len(states) :]
        results: list[list[str]] = [[] for _ in outputs]
        for turn in range(turns):
            elements = []
            for i, name in enumerate(scanned):
                element = f"{place}/{turn}/element_{i}"
                number = turns - 1 - turn if backwards[i] else turn
                number_name = self.constant(f"{element}/number", np.array(number, np.int64))
                self.add("Gather", [name, number_name], [element], axis=axes[i])
                elements.append(element)
            new = self._paste(body, states + elements, place, str(turn))
            for result, name in zip(results, new[len(states) :], strict=True):
                result.append(name)
            states = new[: len(states)]
        self._connect(states, node.output[: len(states)])
        axes = options.get("scan_output_axes", [0] * len(outputs))
        backwards = options.get("scan_output_directions", [0] * len(outputs))
        for output, parts, axis, back in zip(outputs, results, axes, backwards):
            if output:
                self.stack(parts[::-1] if back else parts, output, axis)
        return True

    def _map(self, node: onnx.NodeProto) -> bool:
        body, place = attributes(node)["body"], _place(node)
        first = self.sequences.get(node.input[0])
        if first is None:
            return False
        results: list[list[str]] = [[] for _ in node.output]
        for turn in range(len(first)):
            arguments = [
                self.sequences[name][turn] if name in self.sequences else name
                for name in node.input
            ]
            for result, name in zip(results, self._paste(body, arguments, place, str(turn))):
                result.append(name)
        self.sequences |= zip(node.output, results)
        return True

    def stack(self, parts: list[str], output: str, axis: int) -> None:
        """Side by side in a new dimension."""
        axes = self.constant(f"{output}/axes", np.array([axis], np.int64))
        lines = [f"{output}/{i}" for i in range(len(parts))]
        for part, line in zip(parts, lines):
            self.add("Unsqueeze", [part, axes], [line])
        self.add("Concat", lines, [output], axis=axis)


def _place(node: onnx.NodeProto) -> str:
    return node.name.lstrip("/") or f"{next(filter(None, node.output))}/{node.op_type}"


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Its inputs, and what its branches take from around them."""
    inputs = [names.get(name, name) for name in node.input]
    del node.input[:]
    node.input.extend(inputs)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            graph = attribute.g
            own = {value.name for value in [*graph.input, *graph.initializer]}
            own |= {name for inner in graph.node for name in inner.output}
            outer = {name: new for name, new in names.items() if name not in own}
            for inner in graph.node:
                rename(inner, outer)
            for value in graph.output:
                value.name = outer.get(value.name, value.name)
