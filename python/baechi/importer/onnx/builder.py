# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds ONNX nodes in place of one that is expanded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Refused(Exception):
    """A node whose results would not be ONNX's; the message says why and the mend."""


class Builder:
    """The nodes that it adds have the replaced node's name and a number."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        node: onnx.NodeProto,
        opset: int,
        types: Mapping[str, int],
        shapes: Mapping[str, list[int]],
        constants: Mapping[str, np.ndarray],
    ):
        self._graph, self._count = graph, 0
        self._name = node.name or next(filter(None, node.output))
        self._node, self.opset, self._types = node, opset, types
        self._shapes, self._constants = shapes, constants
        given = next((types[name] for name in node.input if types.get(name)), 0)
        self.dtype = helper.tensor_dtype_to_np_dtype(given) if given else np.dtype(np.float32)

    def keep(self) -> None:
        """Leaves the node as it is."""
        self._graph.node.append(self._node)

    def refuse(self, reason: str) -> NoReturn:
        raise Refused(reason)

    def type(self, name: str) -> np.dtype:
        kind = self._types.get(name)
        return helper.tensor_dtype_to_np_dtype(kind) if kind else np.dtype(np.float32)

    def forget(self, name: str) -> None:
        """Of a result whose inferred shape is another than that of what replaces it."""
        for value in [*self._graph.value_info, *self._graph.output]:
            if value.name == name:
                value.type.tensor_type.ClearField("shape")

    def shape(self, name: str) -> list[int]:
        """Empty where it is unknown."""
        return self._shapes.get(name, [])

    def known(self, name: str) -> np.ndarray | None:
        """A constant's value."""
        return self._constants.get(name)

    @property
    def floating(self) -> bool:
        return np.issubdtype(self.dtype, np.floating)

    def least(self):
        return -np.inf if self.floating else np.iinfo(self.dtype).min

    def greatest(self):
        return np.inf if self.floating else np.iinfo(self.dtype).max

    def add(self, operator: str, *inputs: str, output: str = "", **attributes) -> str:
        return self.adds(operator, inputs, [output], **attributes)[0]

    def adds(self, operator: str, inputs, outputs, **attributes) -> list[str]:
        """A node with several results; those without a name get one."""
        self._count += 1
        own = f"{self._name}/{operator}_{self._count}"
        names = [name or (f"{own}.{i}" if i else own) for i, name in enumerate(outputs)]
        self._graph.node.append(helper.make_node(operator, list(inputs), names, own, **attributes))
        return names

    def again(self, inputs, outputs, **changed) -> list[str]:
        """The node itself with other inputs, results and attributes; None: without one."""
        given = {name: value for name, value in (attributes(self._node) | changed).items()}
        given = {name: value for name, value in given.items() if value is not None}
        return self.adds(self._node.op_type, inputs, outputs, **given)

    def reduce(self, operator: str, x: str, axes: list[int], output: str = "") -> str:
        """Keeps the dimensions. The axes are an input from opset 18 on, of a sum 13."""
        if self.opset >= (13 if operator == "ReduceSum" else 18):
            return self.add(operator, x, self.number(axes, np.int64), output=output, keepdims=1)
        return self.add(operator, x, output=output, axes=axes, keepdims=1)

    def slice(self, x: str, dim: int, start: int, end: int, output: str = "") -> str:
        bounds = [self.number([value], np.int64) for value in (start, end, dim)]
        return self.add("Slice", x, *bounds, output=output)

    def reshape(self, x: str, shape: list[int], output: str = "") -> str:
        return self.add("Reshape", x, self.number(shape, np.int64), output=output)

    def number(self, value, dtype=None) -> str:
        """A constant, of the node's type."""
        self._count += 1
        name = f"{self._name}/constant_{self._count}"
        array = np.asarray(value, self.dtype if dtype is None else dtype)
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def given(node: onnx.NodeProto, position: int) -> str:
    """The name of an input; empty where it is left out."""
    return node.input[position] if position < len(node.input) else ""
