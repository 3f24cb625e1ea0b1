# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What benchmarks/gpu/run.sh carries to a machine with a GPU."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import fixtures
from baechi import init

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU = ROOT / "benchmarks" / "gpu"
sys.path.append(str(GPU))

import seeds  # noqa: E402


def test_values_are_made_again_from_their_seeds(tmp_path):
    values = {
        "params/w": init.Uniform((3, 5), "float32", -0.5, 0.5, 7),
        "params/b": init.Constant((4,), "float32", 2.0),
        "batch/x": init.RandInt((6,), "int32", 0, 9, 3),
    }
    seeds.save(tmp_path / "seeds.json", values)
    made = seeds.load(tmp_path / "seeds.json")
    assert made.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(made[name], value.value())
        assert made[name].dtype == value.value().dtype


def test_arguments_are_made_again_from_their_texts():
    kept = json.loads(json.dumps(fixtures.arguments_of(fixtures.text("mlp_tiny"))))
    whole = fixtures.initial_values("mlp_tiny")
    assert len(kept) == len(whole) > 0
    for fields, value in zip(kept, whole, strict=True):
        np.testing.assert_array_equal(fixtures.value_of(*fields), value)


@pytest.fixture
def clone(tmp_path):
    """A clone with nothing but what check reads, and a pack of one empty program."""
    shutil.copytree(GPU, tmp_path / "benchmarks" / "gpu", ignore=shutil.ignore_patterns("records"))
    for folder in ("python", "test/fixtures"):
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


def check(clone, **environment):
    return subprocess.run(
        [clone / "benchmarks/gpu/run.sh", "check"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def test_a_check_without_a_pack_says_what_to_run(clone):
    said = check(clone)
    assert said.returncode == 1
    assert "run 'benchmarks/gpu/run.sh prepare' first" in said.stderr


def pack_of_a_test_that_hangs(clone):
    """The libraries are stand-ins; the tests' program says much and does not end."""
    pack = clone / "build" / "gpu"
    pack.mkdir(parents=True)
    (pack / "commit").write_text("0123456789\n")
    tests = pack / "RuntimeCudaTests"
    tests.write_text("#!/bin/sh\nseq 100000\nexec sleep 600\n")
    tests.chmod(0o755)


def test_a_part_that_hangs_or_fails_does_not_hold_up_the_others(clone):
    pack_of_a_test_that_hangs(clone)
    (copied := clone / "out").mkdir()
    said = check(
        clone,
        BAECHI_CUDA_LIBRARY="libm.so.6",
        BAECHI_GPU_PART_SECONDS="5",
        OUT=str(copied),
    )
    assert said.returncode == 1
    assert "== one program alone" in said.stdout
    assert "lines before: the_driver_s_tests.txt" in said.stdout
    assert "100000\nfailed: ended after 5 s" in said.stdout
    assert "0 passed, 4 failed, 0 left out" in said.stdout
    assert "goals: 0 reached" in said.stdout
    assert (copied / "record.txt").read_text() in said.stdout
    assert (copied / "parts.tar.gz").stat().st_size > 0


def test_what_does_not_fit_is_left_out(clone):
    pack_of_a_test_that_hangs(clone)
    said = check(clone, BAECHI_CUDA_LIBRARY="libm.so.6", BAECHI_GPU_SECONDS="0")
    assert said.returncode == 1
    assert "left out: the time is up (BAECHI_GPU_SECONDS=0)" in said.stdout
    assert "0 passed, 0 failed, 4 left out" in said.stdout
