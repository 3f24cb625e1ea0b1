# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of ONNX whose lengths are known, as the tensors that are in them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import onnx

from baechi.importer.onnx.builder import attributes, given


class Flat(Protocol):
    """The graph that is written."""

    known: dict[str, np.ndarray]
    shapes: dict[str, list[int]]
    sequences: dict[str, list[str]]

    def add(self, operator: str, inputs: list[str], outputs: list[str], **options) -> None: ...

    def constant(self, name: str, value) -> str: ...

    def stack(self, parts: list[str], output: str, axis: int) -> None: ...


def take(node: onnx.NodeProto, flat: Flat) -> bool:
    """Writes what a node of sequences does; False for other nodes, and where a place or a
    length is not known."""
    if node.domain not in ("", "ai.onnx"):
        return False
    kind, output = node.op_type, next(filter(None, node.output), "")
    if kind == "SequenceEmpty":
        flat.sequences[output] = []
        return True
    if kind == "SequenceConstruct":
        flat.sequences[output] = list(node.input)
        return True
    if kind == "SplitToSequence":
        return _split(node, flat)
    items = flat.sequences.get(given(node, 0))
    if items is None:
        return False
    if kind == "Identity":
        flat.sequences[output] = items
    elif kind == "SequenceLength":
        flat.constant(output, np.array(len(items), np.int64))
    elif kind == "ConcatFromSequence":
        return _concatenated(node, items, flat)
    elif kind in ("SequenceAt", "SequenceInsert", "SequenceErase"):
        return _at(node, items, flat)
    else:
        return False
    return True


def _at(node: onnx.NodeProto, items: list[str], flat: Flat) -> bool:
    """An element, or the sequence with one more or one less."""
    (output,) = node.output
    insert = node.op_type == "SequenceInsert"
    position = given(node, 2 if insert else 1)
    if position and position not in flat.known:
        return False
    count = len(items)
    default = count if insert else count - 1
    place = int(flat.known[position].item()) if position else default
    place += count if place < 0 else 0
    if not 0 <= place <= default:
        return False  # an error in ONNX
    if insert:
        flat.sequences[output] = items[:place] + [node.input[1]] + items[place:]
    elif node.op_type == "SequenceErase":
        flat.sequences[output] = items[:place] + items[place + 1 :]
    else:
        flat.add("Identity", [items[place]], [output])
    return True


def _concatenated(node: onnx.NodeProto, items: list[str], flat: Flat) -> bool:
    options = attributes(node)
    if not items:
        return False
    if options.get("new_axis", 0):
        flat.stack(items, node.output[0], options["axis"])
    else:
        flat.add("Concat", items, [node.output[0]], axis=options["axis"])
    return True


def _split(node: onnx.NodeProto, flat: Flat) -> bool:
    options, output = attributes(node), node.output[0]
    shape, lengths = flat.shapes.get(node.input[0]), given(node, 1)
    if not shape or lengths and lengths not in flat.known:
        return False
    axis = options.get("axis", 0)
    size = shape[axis]
    if not lengths:
        sizes = [1] * size
    elif flat.known[lengths].ndim:
        sizes = flat.known[lengths].tolist()
    else:
        each = int(flat.known[lengths])
        sizes = [min(each, size - start) for start in range(0, size, each)]
    parts = [f"{output}/{i}" for i in range(len(sizes))]
    flat.sequences[output] = parts
    if lengths or options.get("keepdims", 1):
        cut = parts
    else:
        cut = [f"{part}/line" for part in parts]
    sizes_name = flat.constant(f"{output}/sizes", np.array(sizes, np.int64))
    flat.add("Split", [node.input[0], sizes_name], cut, axis=axis)
    if cut is not parts:
        axes = flat.constant(f"{output}/axes", np.array([axis], np.int64))
        for line, part in zip(cut, parts):
            flat.add("Squeeze", [line, axes], [part])
    return True
