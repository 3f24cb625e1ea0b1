# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A slice of scripts/fuzz-lowerings, and that it finds a lowering which is wrong."""

import pathlib
import sys

import pytest

import needs

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
from lowerings import pieces, stages  # noqa: E402
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


def test_the_journal_goes_on_where_it_ends(tmp_path):
    file = tmp_path / "pieces.jsonl"
    journal = pieces.Journal(file, "one")
    journal.add(0, 8, {})
    journal.add(8, 8, {9: "2 pieces on 4: result 0 is 1, not 2"})
    again = pieces.Journal(file, "one")
    assert [list(seeds) for seeds in pieces.batches(0, 20, again)] == [[16, 17, 18, 19]]
    assert again.summary().startswith("16 programs in pieces on 1, 2 and 4 devices at one: 1 wrong")
    # What another build has done does not count.
    assert len(list(pieces.batches(0, 16, pieces.Journal(file, "two")))) == 2


def test_a_wrong_piece_is_found_in_its_program(tmp_path, monkeypatch):
    assert pieces.findings(range(2), tmp_path) == {}
    run = stages.run

    def wrong(candidate, values, folder, options):
        found = run(candidate, values, folder, options)
        if "--machine=host:4" in options:
            found[-1] = found[-1] + 1
        return found

    monkeypatch.setattr(stages, "run", wrong)
    found = pieces.findings(range(2), tmp_path)
    assert sorted(found) == [0, 1]
    assert all(": result " in what and "pieces on 4" in what for what in found.values())
