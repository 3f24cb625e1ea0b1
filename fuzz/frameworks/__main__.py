# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: scripts/fuzz-frameworks."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time

from frameworks import driver

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz-frameworks",
        description="Random programs by Baechi and by their framework (docs/fuzzing.md). Goes on "
        "where the journal ends; reports of findings are written beside it.",
    )
    parser.add_argument("framework", choices=("jax", "torch"))
    parser.add_argument("--programs", type=int, default=1000, help="in all, from the first seed on")
    parser.add_argument("--seconds", type=float, default=1e9, help="ends after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--journal", type=pathlib.Path, help="default: build/fuzz/FRAMEWORK.jsonl")
    parser.add_argument("--summary", action="store_true", help="says what the journal has")
    parser.add_argument("--show", action="store_true", help="one program, that of --seed")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    file = options.journal or _ROOT / "build" / "fuzz" / f"{options.framework}.jsonl"
    journal = driver.Journal(file)
    last = options.seed + options.programs
    if options.summary:
        print(journal.totals())
        return 0
    if options.show:
        verdict = driver.show(options.framework, options.seed, options.alone)
        print(f"{verdict.kind}: {verdict.words}")
        return 1 if verdict.is_finding else 0
    if options.worker:
        driver.work(options.framework, journal, options.seed, last, options.until)
        return 0
    with tempfile.TemporaryDirectory(prefix="baechi-fuzz-") as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        until = time.time() + options.seconds
        totals = driver.supervise(options.framework, journal, options.seed, last, until)
    print(totals)
    return 1 if any(totals.kinds[kind] for kind in ("wrong", "failed", "crashed", "broken")) else 0


if __name__ == "__main__":
    sys.exit(main())
