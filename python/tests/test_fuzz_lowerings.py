# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A slice of scripts/fuzz-lowerings, and that it finds a lowering which is wrong."""

import pathlib
import sys

import pytest

import needs

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
from lowerings import stages  # noqa: E402
from lowerings.generate import program  # noqa: E402
from lowerings.shrink import shrink  # noqa: E402

pytestmark = [
    needs.tool("baechi-run"),
    pytest.mark.skipif(bool(stages.available()), reason=stages.available()),
]


@pytest.mark.parametrize("seed", range(6))
def test_programs(tmp_path, seed):
    assert stages.judge(program(seed), seed, tmp_path) is None


def test_a_wrong_lowering_is_found_and_named(tmp_path, monkeypatch):
    formed = stages._formed

    def wrong(candidate, options):
        return formed(candidate, options).replace("arith.addf", "arith.subf")

    def by_forming(candidate, seed):
        finding = stages.judge(candidate, seed, tmp_path)
        return finding is not None and finding.stage == "form-kernels"

    monkeypatch.setattr(stages, "_formed", wrong)
    seed = next(s for s in range(50) if by_forming(program(s), s))
    small = program(seed)
    before = small.text(plain=False)
    shrink(small, lambda candidate: by_forming(candidate, seed))
    after = small.text(plain=False)
    assert "arith.addf" in after or "matmul" in after
    assert len(after.splitlines()) < len(before.splitlines())
