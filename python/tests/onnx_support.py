# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of ONNX's operators, for tests; importing it skips without ONNX."""

import numpy as np
import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
onnx = pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

from onnx import helper, numpy_helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import baechi.onnx  # noqa: E402

needs_tools = needs.tool("baechi-run")


def model(opset, text, ir=8, domains="", **constants):
    """With arrays as initializers, and functions of its own after the graph."""
    made = parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}{domains}]>\n{text}')
    for name, value in constants.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return made


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def compile(made, **options):
    return baechi.onnx.compile(made, costs="roofline", budget="0", **options)


def compare(made, expected=None, sizes=None, tolerance=1e-5, **given):
    """With what is expected, or with what ONNX's reference gives."""
    if expected is None:
        expected = ReferenceEvaluator(made).run(None, given)
    results = compile(made, sizes=sizes)(**given)
    for result, right in zip(
        results if isinstance(results, tuple) else (results,), expected, strict=True
    ):
        assert (result.dtype, result.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(result, right, rtol=tolerance, atol=tolerance / 10)


def recurrent(kind, direction, steps=4, batch=3, **options):
    """A node's model and what it is given, without its lengths."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    count, hidden, size = 2 if direction == "bidirectional" else 1, 5, 2
    shapes = [
        (steps, batch, size),
        (count, gates * hidden, size),
        (count, gates * hidden, hidden),
        (count, 2 * gates * hidden),
    ]
    given = {f"i{k}": random(*shape) for k, shape in enumerate(shapes)}
    outputs = ["y", "h", "c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(
        kind, [*given, "lengths"], outputs, kind, hidden_size=hidden, direction=direction, **options
    )
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape)
        for name, value in given.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    made = helper.make_graph([node], "g", inputs, results)
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(whole), given
