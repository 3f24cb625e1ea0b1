# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The committed modules compute what JAX computed when they were imported."""

import json
import lzma
import pathlib

import native
import numpy as np
import pytest

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "test" / "fixtures"
TINY = ["mlp_tiny", "transformer_tiny"]

needs_tools = pytest.mark.skipif(
    bool(native.missing_tools()), reason=f"missing: {', '.join(native.missing_tools())}"
)


def assert_close(actual, expected, name):
    """Within 1e-4 of the tensor's largest element."""
    scale = max(float(np.abs(expected).max()), 1e-6)
    error = float(np.abs(actual.astype(np.float64) - expected).max())
    assert error <= 1e-4 * scale, f"{name}: error {error} at scale {scale}"


@needs_tools
@pytest.mark.parametrize("name", TINY)
def test_native_code_computes_what_jax_computes(name, tmp_path):
    arrays = np.load(FIXTURES / f"{name}.reference.npz")
    reference = json.loads((FIXTURES / f"{name}.reference.json").read_text())
    inputs = [arrays[f"arg{i}"] for i in range(sum(key.startswith("arg") for key in arrays))]
    expected = [arrays[f"out{i}"] for i in range(len(reference["results"]))]
    outputs = [np.zeros_like(value) for value in expected]

    library = native.compile_step(FIXTURES / f"{name}.mlir", tmp_path)
    native.call_step(library, [value.copy() for value in inputs], outputs)

    for row, actual, value in zip(reference["results"], outputs, expected):
        assert_close(actual, value, row["name"])
    assert float(outputs[0]) == pytest.approx(reference["losses"][0], rel=1e-5)
