# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: scripts/check-accesses."""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from accesses.watch import Refused, available, kernels_of, watch
from baechi.compiling import tools
from lowerings.generate import program

# As for one GPU: small updates are joined, which changes no other kernel.
_FORMS = ["--baechi-inline-step", "--baechi-form-kernels", "--baechi-cuda-products=updates=true"]


def formed(text: str) -> str:
    done = subprocess.run(
        [str(tools.find("baechi-opt")), *_FORMS],
        input=text,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Refused(done.stderr.strip().split("\n")[0])
    return kernels_of(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/check-accesses",
        description="Runs the GPU code of random programs, or of models, on the host and compares "
        "each byte that it touches with the accesses by which the runtime orders commands "
        "(docs/fuzzing.md).",
    )
    parser.add_argument("models", nargs="*", type=pathlib.Path, help="MLIR files instead")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    options = parser.parse_args()
    if missing := available():
        parser.error(missing)
    given = [(str(file), file.read_text()) for file in options.models]
    if not given:
        seeds = range(options.seed, options.seed + options.programs)
        given = [(f"seed {seed}", program(seed).text(plain=False)) for seed in seeds]
    wrong = launches = refused = 0
    with tempfile.TemporaryDirectory() as name:
        for what, text in given:
            try:
                *found, last = watch(formed(text), pathlib.Path(name)).strip().split("\n")
            except Refused as error:
                refused += 1
                print(f"{what}: {error}", flush=True)
                continue
            for line in found:
                print(f"{what}: {line}", flush=True)
            if counted := re.match(r"(\d+) launches, .* (\d+) wrong", last):
                launches += int(counted[1])
                wrong += int(counted[2])
    print(f"{len(given)} programs, {launches} launches: {wrong} wrong, {refused} programs refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
