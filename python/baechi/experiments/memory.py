# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TensorFlowMem's figures at a small size: larger models, and less memory, by a pool."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from baechi.compiling import caches
from baechi.experiments import measured
from baechi.experiments.tables import Cell, Table
from baechi.importer.common.errors import ImportFailure

STEPS = 12
POOL = "pool:8GiB"
SHARE = 0.4  # of the memory without a limit
Sizes = Mapping[str, int | str]
DISTURBED = "*Disturbed*: other programs had the processors, which may change ratios by factors."


@dataclasses.dataclass(frozen=True)
class Growth:
    """A model that is made larger and keeps the memory of the smaller one."""

    name: str  # of the row
    model: str
    small: Sizes
    large: Sizes
    counted: str  # what is larger
    published: str
    count: Callable[[Sizes], int] | None = None  # none: the bytes of the parameters


def _depth(sizes: Sizes) -> int:
    return 9 * int(str(sizes["blocks"]).split("-")[0]) + 2


def _length(sizes: Sizes) -> int:
    return int(sizes["sequence"])


_MOE: Sizes = {
    "hidden": 128, "heads": 2, "layers": 2, "expert_hidden": 1024, "sequence": 32, "batch": 8,
    "vocabulary": 256,
}  # fmt: skip
_RESNET: Sizes = {"stem": "cifar", "image": 16, "width": 16, "classes": 10}
_SPEECH: Sizes = {"layers": 3, "hidden": 256, "features": 40, "batch": 64}
_WGAN: Sizes = {"image": 32, "width": 16, "batch": 16}

GROWTHS = (
    Growth(
        "moe", "moe", {**_MOE, "experts": 4}, {**_MOE, "experts": 48},
        "parameters", "10.4 × parameters, 10 × time",
    ),
    Growth(
        "resnet-16", "resnet",
        {**_RESNET, "batch": 16, "blocks": "2-2-2"}, {**_RESNET, "batch": 16, "blocks": "9-9-9"},
        "layers", "3.8 × layers", _depth,
    ),
    Growth(
        "resnet-32", "resnet",
        {**_RESNET, "batch": 32, "blocks": "2-2-2"}, {**_RESNET, "batch": 32, "blocks": "10-10-10"},
        "layers", "4.3 × layers", _depth,
    ),
    Growth(
        "recurrent", "speech", {**_SPEECH, "sequence": 10}, {**_SPEECH, "sequence": 20},
        "length", "1.6 to 2 × length, 1.30 to 1.36 × time an element", _length,
    ),
)  # fmt: skip
LESS: Mapping[str, tuple[str, Sizes]] = {
    "moe": ("moe", {**_MOE, "experts": 16}),
    "transformer": (
        "transformer",
        {"hidden": 128, "heads": 2, "layers": 4, "sequence": 128, "batch": 4, "vocabulary": 1000},
    ),
    "resnet": ("resnet", {**_RESNET, "batch": 32, "blocks": "3-3-3"}),
    "wgan": ("wgan", _WGAN),
    "recurrent": ("speech", {**_SPEECH, "sequence": 12}),
}


def tables(names: Sequence[str], tell: Callable[[str], object]) -> list[Table]:
    """Of rows by name, all where none is given."""
    known = {each.name for each in GROWTHS} | set(LESS)
    if unknown := [name for name in names if name not in known]:
        raise ImportFailure(f"unknown model '{unknown[0]}'; known: {', '.join(sorted(known))}")
    with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
        runs = Runs(pathlib.Path(temporary), tell)
        larger = [_larger(runs, each) for each in GROWTHS if not names or each.name in names]
        less = [_less(runs, name) for name in LESS if not names or name in names]
    made = [_growth_table(larger)] if larger else []
    return made + ([_less_table(less)] if less else [])


class Runs:
    """Models as modules in a folder, and what running them tells."""

    def __init__(self, folder: pathlib.Path, tell: Callable[[str], object], steps: int = STEPS):
        self._folder, self._tell, self._steps = folder, tell, steps

    def module(self, name: str, words: Sequence[str]) -> pathlib.Path:
        """Of what the importer is told."""
        self._tell(f"{name}: import")
        file = self._folder / f"{name}.mlir"
        command = [sys.executable, "-m", "baechi.importer", *words]
        measured.checked(measured.run([*command, "-o", file], measured.SEARCH), name)
        return file

    def run(
        self, name: str, module: pathlib.Path, machine: str, results: str | None = None
    ) -> dict[str, Any] | str:
        """The report of a run, or why there is none. Its last results stay under a name."""
        self._tell(f"{name}: {machine}")
        report = self._folder / "report.json"
        report.unlink(missing_ok=True)
        kept = [f"--outputs={self._folder / results}.npz"] if results else []
        done = measured.tool(
            "baechi-run", module, f"--machine={machine}", f"--steps={self._steps}", "--budget=0",
            f"--json={report}", "--costs=roofline",
            f"--store={caches.folder() / 'kernels'}", "--check-single=false", *kept,
        )  # fmt: skip
        return json.loads(report.read_text()) if report.exists() else measured.first_error(done)

    def same(self, one: str, other: str) -> bool:
        """Whether results that stayed are the same, bit for bit."""
        with (
            np.load(self._folder / f"{one}.npz") as a,
            np.load(self._folder / f"{other}.npz") as b,
        ):
            return a.files == b.files and all(a[k].tobytes() == b[k].tobytes() for k in a.files)


def _words(model: str, sizes: Sizes) -> list[str]:
    return [model, "--preset=small", *(f"--set={key}={value}" for key, value in sizes.items())]


def _larger(runs: Runs, growth: Growth) -> dict[str, Cell]:
    row: dict[str, Cell] = {"model": growth.name, "published": growth.published}
    small = runs.module(f"{growth.name}-small", _words(growth.model, growth.small))
    large = runs.module(f"{growth.name}-large", _words(growth.model, growth.large))
    free = runs.run(growth.name, small, "host:1")
    if isinstance(free, str):
        return {**row, "runs": free}
    limit = free["devices"][0]["peak_bytes"]
    row |= {"counted": growth.counted, "memory": mib(limit)}
    alone = runs.run(growth.name, large, f"host:1@{limit}")
    row["alone"] = "does not fit" if isinstance(alone, str) else "fits"
    told = runs.run(growth.name, large, f"host:1@{limit}+{POOL}")
    ample = runs.run(growth.name, large, "host:1")
    if isinstance(told, str) or isinstance(ample, str):
        return {**row, "runs": next(each for each in (told, ample) if isinstance(each, str))}
    if growth.count:
        before, after = growth.count(growth.small), growth.count(growth.large)
    else:
        before, after = (each["devices"][0]["resident_bytes"] for each in (free, ample))
    times = after / before
    row |= {
        "ratio": f"{times:.1f}",
        "ample": mib(ample["devices"][0]["peak_bytes"]),
        "runs": f"{_milliseconds(told):.1f}",
        "slower": ratio(told, ample),
        "each": ratio(told, free, times),
    }
    return row


def _less(runs: Runs, name: str) -> dict[str, Cell]:
    model, sizes = LESS[name]
    module = runs.module(name, _words(model, sizes))
    ample = runs.run(name, module, "host:1")
    row: dict[str, Cell] = {"model": name}
    if isinstance(ample, str):
        return {**row, "alone": ample}
    peak = ample["devices"][0]["peak_bytes"]
    limit = int(SHARE * peak)
    row |= {"ample": mib(peak), "memory": mib(limit), "alone_ms": _milliseconds(ample)}
    row["alone"] = f"{_milliseconds(ample):.1f}"
    told = runs.run(name, module, f"host:1@{limit}+{POOL}")
    if isinstance(told, str):
        return {**row, "limited": told}
    return {
        **row,
        "limited": f"{_milliseconds(told):.1f}",
        "limited_ms": _milliseconds(told),
        "slower": ratio(told, ample),
    }


def mib(count: int) -> str:
    return f"{count / 2**20:.2f}"


def _milliseconds(told: dict[str, Any]) -> float:
    return float(told["measured_fastest_ns"]) / 1e6


def ratio(told: dict[str, Any], than: dict[str, Any], times: float = 1) -> str:
    """How much longer a step takes for each of so many times: as measured, and as planned."""
    text = f"{_slower(told, than) / times:.2f} ({_planned(told, than) / times:.2f})"
    disturbed = any("others_processors" in report for report in (told, than))
    return f"{text}, disturbed" if disturbed else text


def _slower(told: dict[str, Any], than: dict[str, Any]) -> float:
    return float(told["measured_fastest_ns"] / than["measured_fastest_ns"])


def _planned(told: dict[str, Any], than: dict[str, Any]) -> float:
    return float(told["predicted_step_ns"] / than["predicted_step_ns"])


def _growth_table(rows: list[dict[str, Cell]]) -> Table:
    return Table(
        "memory",
        "Larger models in the memory of smaller ones (executed, small)",
        [
            f"One host device; the larger model has what the smaller one needs without a limit, "
            f"and a pool beside it. The fastest of {STEPS} steps; in parentheses what the plan "
            "says with roofline costs. *Slower*: than the larger model with ample memory. *An "
            "element*: the time for each byte of parameters, layer or place, over the smaller "
            f"model's. {DISTURBED}",
            "",
            "Published: TensorFlowMem, as an author's talk has it, on a TitanX of 12 GB with full "
            "models; these have a few thousandths of that: compare ratios.",
        ],
        {
            "model": "model",
            "counted": "larger in",
            "ratio": "times",
            "memory": "memory, MiB",
            "ample": "needs, MiB",
            "alone": "without a pool",
            "runs": "step, ms",
            "slower": "slower, times",
            "each": "time an element",
            "published": "published",
        },
        rows,
    )


def _less_table(rows: list[dict[str, Cell]]) -> Table:
    return Table(
        "memory-less",
        f"Models in {SHARE:.0%} of their memory (executed, small)",
        [
            f"One host device, and the same with {SHARE:.0%} of what it needed and a pool. The "
            f"fastest of {STEPS} steps; in parentheses what the plans say with roofline costs. "
            f"{DISTURBED} Published: "
            "1.3 to 2.4 times the step, at mostly 30 to 40 %, for five models.",
        ],
        {
            "model": "model",
            "ample": "needs, MiB",
            "memory": "has, MiB",
            "alone": "step with all, ms",
            "limited": "step with the pool, ms",
            "slower": "slower, times",
        },
        rows,
        plot=["alone_ms", "limited_ms"],
    )
