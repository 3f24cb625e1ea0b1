# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step as a shared object computes what JAX computed, called through its C
interface."""

import os
import pathlib
import re

import numpy as np
import pytest

import fixtures
import native
from baechi.library import StepError, StepLibrary

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = pathlib.Path(os.environ.get("BAECHI_TOOLS", ROOT / "build/release/bin")) / "baechi-run"
pytestmark = pytest.mark.skipif(not RUN.exists(), reason=f"{RUN} is not built")


@pytest.mark.parametrize("name", fixtures.TINY)
def test_learns_like_jax(name, tmp_path):
    (tmp_path / "model.mlir").write_text(fixtures.text(name))
    file = tmp_path / "model.so"
    options = ("--machine=host:2", "--costs=roofline", "--emit=so", f"--output={file}")
    native.run(RUN, tmp_path / "model.mlir", *options)
    loss_at = int(re.search(r"RESULT_LOSS = (\d+)", (tmp_path / "model.h").read_text())[1])

    step = StepLibrary(file)
    for i, value in enumerate(fixtures.initial_values(name)):
        step.set_argument(i, np.ascontiguousarray(value))
    losses = []
    for _ in fixtures.reference(name)["losses"]:
        step.run()
        losses.append(float(step.result(loss_at)))
    np.testing.assert_allclose(losses, fixtures.reference(name)["losses"], rtol=1e-4)

    step.program["results"].append({"shape": [], "type": "f32"})
    beyond = len(step.program["results"]) - 1
    with pytest.raises(StepError, match=f"result {beyond} does not exist"):
        step.result(beyond)
    step.run()  # goes on after an error
    step.close()
