# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of ONNX models that are made after the first calls, of what these took."""

import numpy as np
import pytest

import needs
import replan_support
from replan_support import CALLS, FIRST, SECOND, devices

onnx = pytest.importorskip("onnx")
pytest.importorskip("torch_mlir")
pytest.importorskip("baechi._placement")

from onnx import parser  # noqa: E402

import baechi.onnx  # noqa: E402

pytestmark = needs.tool("baechi-run")

# `b` is an input with a default.
MODEL = """
<ir_version: 9, opset_import: ["" : 18]>
net (float[4, 8] x, float[16] b) => (float[4, 16] y)
<float[16] b = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> {
  left = MatMul(x, w)
  right = MatMul(x, v)
  sum = Add(left, right)
  y = Add(sum, b)
}
"""


def test_the_first_calls_are_of_one_device_and_the_bits_stay(tmp_path):
    random = np.random.default_rng(3)
    made = parser.parse_model(MODEL)
    weights = [random.standard_normal((8, 16)).astype(np.float32) for _ in "wv"]
    for name, value in zip("wv", weights, strict=True):
        made.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    model = baechi.onnx.compile(made, **replan_support.options(tmp_path))
    assert devices(model) == {"host0"} and FIRST in model.report()
    x = random.standard_normal((4, 8)).astype(np.float32)
    first = model(x)
    other = model(x, b=np.zeros(16, np.float32))
    found = [model(x) for _ in range(CALLS)]  # planned within these
    assert devices(model) == {"host0", "host1"} and SECOND in model.report()
    for each in found:
        np.testing.assert_array_equal(each, first)
    np.testing.assert_array_equal(model(x, b=np.zeros(16, np.float32)), other)
    np.testing.assert_array_equal(model(x), first)
    np.testing.assert_allclose(other, x @ weights[0] + x @ weights[1], rtol=1e-4, atol=1e-5)
