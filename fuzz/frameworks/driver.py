# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs by their seeds, several in a step, and keeps a journal of what came of them.

A process of its own does the work, since what Baechi compiles runs in it: where it
crashes or hangs, the journal says at which seed, and another one goes on behind it.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from frameworks.verdict import Verdict

BATCH = {"jax": 16, "torch": 4}  # PyTorch's programs run one after the other
_PATIENCE = 900  # seconds that a batch, or making a finding small, may take on a busy machine
_FRESH = 150  # batches after which a new process begins: libraries stay mapped
_SHRUNK = 3  # reports of findings that say the same


@dataclasses.dataclass
class Journal:
    """A file of lines of JSON: a batch each, and what began."""

    file: pathlib.Path

    def write(self, **entry: Any) -> None:
        with self.file.open("a") as out:
            out.write(json.dumps(entry) + "\n")

    def entries(self) -> Iterator[dict[str, Any]]:
        if self.file.exists():
            for line in self.file.read_text().splitlines():
                yield json.loads(line)

    def next_seed(self, first: int) -> int:
        ends = [e["seed"] + e["programs"] for e in self.entries() if "verdicts" in e]
        return max([first, *ends])

    def began(self) -> dict[str, Any] | None:
        """The batch that began and has not ended, if any."""
        last = None
        for last in self.entries():
            pass
        return last if last and "verdicts" not in last else None

    def totals(self) -> Totals:
        totals = Totals()
        for entry in self.entries():
            if "verdicts" in entry:
                totals.add(entry)
        return totals


@dataclasses.dataclass
class Totals:
    programs: int = 0
    seconds: float = 0.0
    kinds: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    said: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    seeds: dict[str, list[int]] = dataclasses.field(default_factory=dict)

    def add(self, entry: dict[str, Any]) -> None:
        self.programs += entry["programs"]
        self.seconds += entry["seconds"]
        self.kinds.update(entry["verdicts"])
        for seed, signature in entry["said"]:
            self.said[signature] += 1
            self.seeds.setdefault(signature, []).append(seed)

    def __str__(self) -> str:
        rate = 60 * self.programs / self.seconds if self.seconds else 0.0
        counts = ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common())
        lines = [
            f"{self.programs} programs in {self.seconds / 60:.1f} minutes "
            f"({rate:.0f} a minute): {counts}"
        ]
        for signature, n in self.said.most_common():
            seeds = ", ".join(map(str, self.seeds[signature][:5]))
            lines.append(f"{n:6} {signature} (seeds {seeds}{', …' if n > 5 else ''})")
        return "\n".join(lines)


def work(framework: str, journal: Journal, first: int, last: int, until: float) -> None:
    """The batches from a seed on, in this process, until all are done or it is time."""
    generate, run, smallest, reproduction = _front(framework)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    shrunk: collections.Counter[str] = collections.Counter(journal.totals().said)
    for number in range(_FRESH):
        seed = journal.next_seed(first)
        if seed >= last or time.time() > until:
            return
        seeds = range(seed, min(seed + BATCH[framework], last))
        journal.write(seed=seed, programs=len(seeds))
        signal.alarm(_PATIENCE)
        begin = time.monotonic()
        programs = [generate(each) for each in seeds]
        turn = seed // BATCH[framework]
        verdicts = run(programs, turn)
        seconds = time.monotonic() - begin
        for program, verdict in zip(programs, verdicts, strict=True):
            known = verdict.kind != "wrong" and shrunk[verdict.signature] >= _SHRUNK
            shrunk[verdict.signature] += 1
            if verdict.is_finding and not known:
                signal.alarm(_PATIENCE)
                small = smallest(program, verdict, turn)
                text = reproduction(small, verdict, turn)
                _file_of(journal, framework, program.seed).write_text(text)
                print(
                    f"{framework} seed {program.seed}: {verdict.kind}: {verdict.words}\n{text}",
                    flush=True,
                )
        signal.alarm(0)
        journal.write(**_entry(seed, seeds, verdicts, seconds))


def _entry(seed: int, seeds: range, verdicts: list[Verdict], seconds: float) -> dict[str, Any]:
    quiet = ("equal", "rounding")
    return {
        "seed": seed,
        "programs": len(seeds),
        "verdicts": dict(collections.Counter(v.kind for v in verdicts)),
        "said": [
            [s, v.signature] for s, v in zip(seeds, verdicts, strict=True) if v.kind not in quiet
        ],
        "seconds": round(seconds, 2),
    }


def supervise(framework: str, journal: Journal, first: int, last: int, until: float) -> Totals:
    """Lets processes work until all programs are done or it is time."""
    journal.file.parent.mkdir(parents=True, exist_ok=True)
    while journal.next_seed(first) < last and time.time() < until:
        begin = time.monotonic()
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "frameworks",
            framework,
            "--worker",
            f"--journal={journal.file}",
            f"--seed={first}",
            f"--programs={last - first}",
            f"--until={until}",
        ]
        ended = subprocess.run(command, env=_environment())
        open_ = journal.began()
        if ended.returncode == 0:
            continue
        if open_ is None:
            raise SystemExit(f"fuzz: a worker ended with {ended.returncode} between two batches")
        seeds = range(open_["seed"], open_["seed"] + open_["programs"])
        words = _ending(ended.returncode)
        print(f"{framework} seeds {seeds.start}–{seeds.stop - 1}: {words}", flush=True)
        if ended.returncode < 0:
            guilty = _guilty(framework, seeds)
            verdicts = [
                Verdict(guilty[s], words) if s in guilty else Verdict("equal") for s in seeds
            ]
        else:  # an error of the fuzzer's own, which the worker has told
            verdicts = [Verdict("broken", words)] * len(seeds)
        journal.write(**_entry(seeds.start, seeds, verdicts, time.monotonic() - begin))
    return journal.totals()


def _guilty(framework: str, seeds: range) -> dict[int, str]:
    """Which programs end the process by themselves, and whether the framework's compiler alone
    does ('xla'); the first if only all of them do."""
    found = {seed: "crashed" for seed in seeds if _ends(framework, seed)}
    if framework == "jax":
        found |= {seed: "xla" for seed in found if _ends(framework, seed, "--alone")}
    return found or {seeds.start: "crashed"}


def _ends(framework: str, seed: int, *further: str) -> bool:
    command = [sys.executable, "-W", "ignore", "-m", "frameworks", framework, "--show"]
    try:
        done = subprocess.run(
            [*command, f"--seed={seed}", *further],
            env=_environment(),
            stdout=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode < 0


def _ending(code: int) -> str:
    if code == -signal.SIGALRM:
        return f"hangs for {_PATIENCE} s"
    return f"ends by {signal.Signals(-code).name}" if code < 0 else f"ends with {code}"


def show(framework: str, seed: int, alone: bool) -> Verdict:
    """One program and its verdict. alone: of `jax.jit` only, which is asked for nothing but to
    end."""
    generate, run, _, reproduction = _front(framework)
    program, turn = generate(seed), seed // BATCH[framework]
    print(program.source, flush=True)
    if alone:
        importlib.import_module(f"frameworks.of_{framework}.batch").alone(program)
        return Verdict("equal")
    (verdict,) = run([program], turn)
    print(reproduction(program, verdict, turn))
    return verdict


def _front(framework: str) -> tuple[Any, Any, Any, Any]:
    """What makes programs, runs them, makes them small and writes them down."""
    package = f"frameworks.of_{framework}"
    generate = importlib.import_module(f"{package}.generate").generate
    run = importlib.import_module(f"{package}.batch").run
    report = importlib.import_module(f"{package}.report")
    return generate, run, report.smallest, report.reproduction


def _file_of(journal: Journal, framework: str, seed: int) -> pathlib.Path:
    return journal.file.with_name(f"{framework}-{seed}.py")


def _environment() -> dict[str, str]:
    """XLA compiles quickly; the kernels of random programs stay out of the user's store."""
    found = dict(os.environ)
    found.setdefault("JAX_PLATFORMS", "cpu")
    found.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    return found
