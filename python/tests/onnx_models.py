# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small ONNX models in ONNX's text, compared with ONNX's reference."""

import numpy as np
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import baechi.onnx


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
