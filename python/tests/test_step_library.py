# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step as a shared object computes what JAX computed, called through its C
interface."""

import ctypes
import os
import pathlib
import re

import numpy as np
import pytest

import fixtures
import native

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

    library = ctypes.CDLL(str(file))
    library.model_open.restype = ctypes.c_void_p
    library.model_error.restype = ctypes.c_char_p
    step = ctypes.c_void_p(library.model_open(None, ctypes.c_size_t(0)))
    assert step

    def call(function, position, array):
        data = array.ctypes.data_as(ctypes.c_void_p)
        at, size = ctypes.c_size_t(position), ctypes.c_size_t(array.nbytes)
        assert function(step, at, data, size) == 0, library.model_error(step)

    for i, value in enumerate(fixtures.initial_values(name)):
        call(library.model_set_argument, i, np.ascontiguousarray(value))
    loss = np.zeros((), np.float32)
    losses = []
    for _ in fixtures.reference(name)["losses"]:
        assert library.model_run(step) == 0, library.model_error(step)
        call(library.model_get_result, loss_at, loss)
        losses.append(float(loss))
    np.testing.assert_allclose(losses, fixtures.reference(name)["losses"], rtol=1e-4)

    assert library.model_run(step) == 0 and library.model_error(step) == b""
    wrong = ctypes.c_size_t(10**6)
    assert library.model_get_result(step, wrong, None, wrong) == 1
    assert b"result 1000000 does not exist" in library.model_error(step)
    library.model_close(step)
