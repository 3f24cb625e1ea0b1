# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random steps, placed on two devices, compute what LLVM's own tools make of
them; scripts/soak goes on with many more."""

import os
import pathlib

import numpy as np
import pytest

import fixtures
import native
import random_models

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = pathlib.Path(os.environ.get("BAECHI_TOOLS", ROOT / "build/release/bin")) / "baechi-run"
SEEDS = range(8)


def test_models_differ_and_repeat():
    texts = [random_models.model(seed) for seed in SEEDS]
    assert len(set(texts)) == len(texts)
    assert texts == [random_models.model(seed) for seed in SEEDS]


@pytest.mark.skipif(not RUN.exists(), reason=f"{RUN} is not built")
@native.needs_tools
@pytest.mark.parametrize("seed", SEEDS)
def test_computes_what_others_compute(seed, tmp_path):
    text = random_models.model(seed)
    (tmp_path / "model.mlir").write_text(text)
    outputs = tmp_path / "outputs.npz"
    options = ("--machine=host:2", "--costs=roofline", "--steps=1", f"--outputs={outputs}")
    native.run(RUN, tmp_path / "model.mlir", *options)
    arrays = np.load(outputs)
    ours = [arrays[f"out{i}"] for i in range(len(arrays.files))]
    theirs = native.compile_step(text, tmp_path)(fixtures.initial_values_of(text), ours)
    for i, (actual, expected) in enumerate(zip(ours, theirs, strict=True)):
        native.assert_close(actual, expected, f"result {i}", floor=1e-2)
