# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The committed modules compute what JAX computed when they were imported."""

import numpy as np
import pytest

import fixtures
import native


@pytest.mark.parametrize("name", fixtures.ALL)
def test_losses_fall(name):
    losses = fixtures.reference(name)["losses"]
    assert len(losses) == 20
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", fixtures.ALL)
def test_module_names_no_files(name):
    assert ".py" not in fixtures.text(name)


@native.needs_tools
@pytest.mark.parametrize("name", fixtures.ALL)
def test_parses(name, tmp_path):
    file = tmp_path / "module.mlir"
    file.write_text(fixtures.text(name))
    native.run("mlir-opt-22", file, "-o", "/dev/null")


@native.needs_tools
@pytest.mark.parametrize("name", fixtures.SHORT)
def test_native_code_computes_what_jax_computes(name, tmp_path):
    arrays = np.load(fixtures.FOLDER / f"{name}.reference.npz")
    reference = fixtures.reference(name)
    inputs = [arrays[f"arg{i}"] for i in range(sum(key.startswith("arg") for key in arrays))]
    expected = [arrays[f"out{i}"] for i in range(len(reference["results"]))]

    outputs = native.compile_step(fixtures.text(name), tmp_path)(inputs, expected)

    for row, actual, value in zip(reference["results"], outputs, expected):
        native.assert_close(actual, value, row["name"])
    assert float(outputs[0]) == pytest.approx(reference["losses"][0], rel=1e-5)
