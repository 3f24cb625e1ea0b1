# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in pieces on 1, 2 and 4 devices against the whole, many in one module, with a journal
that goes on where it ends."""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
from collections.abc import Iterator

import numpy as np

from baechi.compiling import tools
from lowerings import stages
from lowerings.generate import program
from lowerings.program import Block, Program

DEVICES = (1, 2, 4)
#: Programs of one module: a process costs as much as compiling two or three of them.
BATCH = 8


def together(programs: list[Program]) -> Program:
    """One program that does what all of them do, each with its own arguments and results."""
    bodies = [p.body for p in programs]
    return Program(
        Block(
            [v for body in bodies for v in body.arguments],
            [op for body in bodies for op in body.ops],
            [v for body in bodies for v in body.yields],
        )
    )


def judge(seeds: list[int], folder: pathlib.Path) -> stages.Finding | None:
    """The first number of devices on which pieces give something else than the whole."""
    programs = [program(seed) for seed in seeds]
    values: list[np.ndarray] = []
    for seed, each in zip(seeds, programs, strict=True):
        values += stages.inputs(each, seed)
    all_of = together(programs)
    # Kernels that an earlier run of the batch compiled are not compiled again.
    store = folder / "kernels"
    shutil.rmtree(store, ignore_errors=True)
    pieces = 2 + seeds[0] // BATCH % 3
    stage = "whole"
    try:
        expected = stages.run(all_of, values, folder, ["--machine=host:1", f"--store={store}"])
        for devices in DEVICES:
            stage = f"{pieces} pieces on {devices}"
            options = [f"--machine=host:{devices}", f"--splits=forced:{pieces}", f"--store={store}"]
            if devices > 1:
                options.append("--placer=round-robin")
            wrong = stages.differ(stages.run(all_of, values, folder, options), expected)
            if wrong:
                return stages.Finding(stage, wrong)
    except stages.Refused as refusal:
        return stages.Finding(stage, str(refusal))
    return None


def revision() -> str:
    """Of what is tested: a hash of the compiler's program, whatever the checkout has since."""
    return hashlib.sha256(tools.find("baechi-run").read_bytes()).hexdigest()[:12]


class Journal:
    """A line for every batch: its first seed, how many programs, and those that differ."""

    def __init__(self, file: pathlib.Path, of: str) -> None:
        self.file, self.of = file, of
        self.done: dict[int, int] = {}
        self.findings: dict[int, str] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                if entry["revision"] == of:
                    self._take(entry)

    def _take(self, entry: dict) -> None:
        self.done[entry["seed"]] = entry["programs"]
        self.findings.update({int(seed): what for seed, what in entry["findings"].items()})

    def add(self, seed: int, programs: int, findings: dict[int, str]) -> None:
        entry = {"revision": self.of, "seed": seed, "programs": programs, "findings": findings}
        self._take(entry)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            out.write(json.dumps(entry) + "\n")

    def summary(self) -> str:
        total, wrong = sum(self.done.values()), len(self.findings)
        return f"{total} programs in pieces on 1, 2 and 4 devices at {self.of}: {wrong} wrong"


def batches(first: int, programs: int, journal: Journal) -> Iterator[range]:
    """The seeds that the journal does not have yet."""
    for seed in range(first, first + programs, BATCH):
        if seed not in journal.done:
            yield range(seed, min(seed + BATCH, first + programs))


def findings(seeds: range, folder: pathlib.Path) -> dict[int, str]:
    """What is wrong with a batch, told a program; each by itself where the batch is not equal."""
    batch = judge(list(seeds), folder)
    if batch is None:
        return {}
    found = {}
    for seed in seeds:
        if (finding := judge([seed], folder)) is not None:
            found[seed] = f"{finding.stage}: {finding.what}"
    # Wrong together and right alone is the batch's own.
    return found or {seeds[0]: f"with {len(seeds) - 1} more, {batch.stage}: {batch.what}"}
