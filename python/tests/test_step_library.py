# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step as a shared object computes what JAX computed, called through its C
interface."""

import ctypes
import hashlib
import os
import pathlib
import re

import numpy as np
import pytest

import fixtures
import native
from baechi.steps.library import StepLibrary
from baechi.steps.library_file import StepError

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


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The bytes of a library."""
    file = tmp_path_factory.mktemp("library") / "mlp.so"
    (file.parent / "model.mlir").write_text(fixtures.text("mlp_tiny"))
    native.run(RUN, file.parent / "model.mlir", "--costs=roofline", "--emit=so", f"--output={file}")
    assert file.stat().st_mode & 0o002 == 0
    assert sorted(path.name for path in file.parent.iterdir()) == ["mlp.h", "mlp.so", "model.mlir"]
    return file.read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda code: code[:20000] + bytes([code[20000] ^ 1]) + code[20001:], "damaged: its hash"),
        (lambda code: code[:-1000], "does not end with the hash"),
        (lambda code: code[:-200] + code[-100:], "damaged: its hash"),
        (lambda code: b"", "does not end with the hash"),
    ],
)
def test_damaged_code_is_not_mapped(library, damage, message, tmp_path):
    file = tmp_path / "mlp.so"
    file.write_bytes(damage(library))
    with pytest.raises(StepError, match=rf"mlp\.so: .*{message}"):
        StepLibrary(file)


def test_code_that_others_may_write_is_not_run(library, tmp_path):
    file = tmp_path / "mlp.so"
    file.write_bytes(library)
    StepLibrary(file).close()
    file.chmod(0o666)
    with pytest.raises(StepError, match="everybody may write it .mode 666."):
        StepLibrary(file)


def test_pipes_and_devices_are_neither_waited_for_nor_read(tmp_path):
    pipe = tmp_path / "mlp.so"
    os.mkfifo(pipe)
    for file in (pipe, pathlib.Path("/dev/zero")):
        with pytest.raises(StepError, match="no regular file, so no step library"):
            StepLibrary(file)


def test_null_pointers_are_errors(library, tmp_path):
    file = tmp_path / "mlp.so"
    file.write_bytes(library)
    step = StepLibrary(str(file))
    call, size = step._functions, ctypes.c_size_t
    assert call["set_argument"](step._step, size(0), None, size(64)) == 1
    assert call["error"](step._step) == b"a null pointer cannot stand for 64 bytes of data"
    assert call["run"](None) == 1
    assert call["wall_ns"](None) == -1
    assert call["error"](None) == b"the step is not open"
    step.run()
    step.close()


def test_operators_are_timed_when_it_is_asked_for(library, tmp_path):
    file = tmp_path / "mlp.so"
    file.write_bytes(library)
    step = StepLibrary(file)
    counts = [len(device["operators"]) for device in step.program["devices"]]
    step.run()
    assert [step.operator_ns(i) for i in range(len(counts))] == [[0] * n for n in counts]
    step.record_times(True)
    step.run()
    for i, count in enumerate(counts):
        times = step.operator_ns(i)
        assert len(times) == count and sum(times) <= step.wall_ns
        assert count == 0 or sum(times) > 0
    step.record_times(False)
    step.run()
    assert sum(step.operator_ns(0)) == 0
    call, size, times = step._functions, ctypes.c_size_t, (ctypes.c_int64 * 1)()
    assert call["operator_ns"](step._step, size(9), times, size(1)) == 1
    assert call["error"](step._step) == b"there is no device 9; the program has %d" % len(counts)
    assert call["operator_ns"](step._step, size(0), times, size(1)) == 1
    wrong = b"there is room for 1 times, and device 0 has %d operators" % counts[0]
    assert call["error"](step._step) == wrong
    step.close()


def test_a_renamed_library_is_told(library, tmp_path):
    file = tmp_path / "other.so"
    file.write_bytes(library)
    message = (
        r"other\.so: renamed: its functions begin with 'mlp_', by its name with 'other_'; "
        r"call the file mlp\.so, or write it again with .*--output=other\.so"
    )
    with pytest.raises(StepError, match=message):
        StepLibrary(file)
    file.rename(tmp_path / "libmlp.so")
    StepLibrary(tmp_path / "libmlp.so").close()


def test_a_library_of_an_earlier_version_is_told(library, tmp_path):
    file = tmp_path / "mlp.so"
    code = library[:-80].replace(b"\0mlp_call\0", b"\0mlp_none\0")
    assert code != library[:-80]
    digest = hashlib.sha256(code).hexdigest().encode()
    file.write_bytes(code + b"\nbaechi-sha256 " + digest + b"\n")
    message = (
        r"mlp\.so: written by an earlier version of Baechi, without 'mlp_call': write it again "
        r"with baechi-run --emit=so --output=mlp\.so"
    )
    with pytest.raises(StepError, match=message):
        StepLibrary(file)


def test_a_step_in_one_call(library, tmp_path):
    """It is what its parts are."""
    file = tmp_path / "mlp.so"
    file.write_bytes(library)
    apart, whole = StepLibrary(file), StepLibrary(file)
    call, pointer = whole._functions["call"], ctypes.c_void_p
    infos, returned = whole.program["arguments"], whole.program["results"]
    values = [np.ascontiguousarray(value) for value in fixtures.initial_values("mlp_tiny")]
    given = (pointer * len(infos))(*(value.ctypes.data for value in values))
    kept = {i: info["updated_by"] for i, info in enumerate(infos) if "updated_by" in info}
    results = [np.empty(info["bytes"], np.uint8) for info in returned]
    wanted = (pointer * len(returned))(*(value.ctypes.data for value in results))
    for i, value in enumerate(values):
        apart.set_argument(i, value)
    for _ in range(3):
        assert call(whole._step, given, wanted) == 0
        apart.run()
        for k, result in enumerate(results):
            np.testing.assert_array_equal(result, apart.result(k).reshape(-1).view(np.uint8))
        for i in kept:  # what lies there stays
            given[i] = None
    results[-1][:] = 77
    wanted[len(returned) - 1] = None
    assert call(whole._step, given, wanted) == 0
    assert (results[-1] == 77).all()
    assert call(None, given, wanted) == 1


def test_what_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(StepError, match=r"none\.so: cannot be read: No such file"):
        StepLibrary(tmp_path / "none.so")
    code = b"no shared object"
    file = tmp_path / "text.so"
    file.write_bytes(code + b"\nbaechi-sha256 " + hashlib.sha256(code).hexdigest().encode() + b"\n")
    with pytest.raises(StepError, match=r"text\.so: cannot be loaded: .*text\.so"):
        StepLibrary(file)
