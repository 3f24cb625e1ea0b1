# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: scripts/fuzz-lowerings."""

from __future__ import annotations

import argparse
import collections
import pathlib
import sys
import tempfile
import time

from lowerings import pieces, stages
from lowerings.generate import program
from lowerings.program import Program
from lowerings.shrink import shrink

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_JOURNAL = _ROOT / "build/fuzz/pieces.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz-lowerings",
        description="Random linalg programs after each of Baechi's lowerings, compared with "
        "upstream's loops (docs/fuzzing.md). Findings are made small and written to a folder.",
    )
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9, help="ends after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument(
        "--pieces",
        action="store_true",
        help="the whole against pieces on 1, 2 and 4 devices alone; goes on where the journal ends",
    )
    parser.add_argument("--journal", type=pathlib.Path, default=_JOURNAL, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="print the first program, and stop")
    parser.add_argument(
        "--findings", type=pathlib.Path, default=_ROOT / "build/fuzz/lowerings", metavar="DIR"
    )
    options = parser.parse_args()
    if options.show:
        print(program(options.seed).text(plain=False))
        return 0
    if options.pieces:
        return _pieces(options)
    if missing := stages.available():
        parser.error(missing)

    end = time.monotonic() + options.seconds
    found: collections.Counter[str] = collections.Counter()
    done = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in range(options.seed, options.seed + options.programs):
            if time.monotonic() > end:
                break
            done += 1
            finding = stages.judge(program(seed), seed, folder)
            if finding is None:
                continue
            found[finding.stage] += 1
            small = _small(seed, finding, folder)
            file = options.findings / f"{seed}.mlir"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"// {finding.stage}: {finding.what}\n{small.text(plain=False)}\n")
            print(f"seed {seed}: {finding.stage}: {finding.what}\n  {file}", flush=True)
    told = ", ".join(f"{n} after {stage}" for stage, n in found.items())
    print(f"{done} programs from seed {options.seed}: {told or 'all equal'}")
    return 1 if found else 0


def _pieces(options: argparse.Namespace) -> int:
    journal = pieces.Journal(options.journal, pieces.revision())
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as name:
        for seeds in pieces.batches(options.seed, options.programs, journal):
            if time.monotonic() > end:
                break
            found = pieces.findings(seeds, pathlib.Path(name))
            journal.add(seeds[0], len(seeds), found)
            for seed, what in found.items():
                print(f"seed {seed}: {what}", flush=True)
    print(journal.summary())
    return 1 if journal.findings else 0


def _small(seed: int, finding: stages.Finding, folder: pathlib.Path) -> Program:
    small = program(seed)

    def still(candidate: Program) -> bool:
        try:
            again = stages.judge(candidate, seed, folder)
        except stages.Refused:
            return False  # Not what upstream takes any more.
        return again is not None and again.stage == finding.stage

    shrink(small, still)
    return small


if __name__ == "__main__":
    sys.exit(main())
