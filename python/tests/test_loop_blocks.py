# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of MLIR in blocks on several devices, beside NumPy, one entry after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import needs
from baechi.compiling import tools

ORACLE = Path(__file__).parents[2] / "scripts" / "oracle" / "run_loops.py"

pytestmark = needs.tool("baechi-run")


@pytest.mark.parametrize(
    ("seed", "machines"), [(1, ["host:1", "host:2", "host:4"]), (2, ["host:1", "host:2"])]
)
def test_random_loops_are_as_the_serial_run(seed, machines):
    command = [sys.executable, ORACLE, tools.find("baechi-run"), "20", str(seed), *machines]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("0 wrong") == len(machines)
