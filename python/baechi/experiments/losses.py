# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loss curves on host devices beside jax.jit's: with a memory limit, and in pieces."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

from baechi.compiling import caches
from baechi.experiments import measured
from baechi.experiments.benchmarks import Benchmark
from baechi.experiments.tables import Cell, Setting, Table

STEPS = 50
MACHINES = ("host:1", "host:2", "host:4")
# Of what one device needs at its peak: too little for one, enough for several.
LIMITS = (0.9, 0.75, 0.6, 0.5)
# The last two cut whatever can be cut, without regard to time.
MODES = ("none", "exact", "any", "canonical:2", "micro:2", "exact-forced:2", "forced:2")


def loss_curves(setting: Setting) -> Table:
    """Every model's losses over STEPS steps on one, two and four devices, each operator's
    group on another device than the last one's: the placement with most transfers."""
    rows: list[dict[str, Cell]] = []
    for benchmark in setting.benchmarks:
        with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
            rows.append(_curve(setting, benchmark, pathlib.Path(temporary)))
    return Table(
        "losses",
        f"Losses of {STEPS} steps against jax.jit",
        [
            "The largest relative difference to JAX's losses on the CPU, groups dealt to the "
            "devices in turn; and the largest memory limit of those tried "
            f"({', '.join(f'{limit:.0%}' for limit in LIMITS)} of one device's peak) that one "
            "device refuses and two or four hold, with the difference there."
        ],
        {
            "model": "model",
            "first": "first loss",
            "last": "last loss",
            **{machine: machine for machine in MACHINES},
            "limit": "limit of a device",
            "limited": "met by",
        },
        rows,
    )


def loss_curves_in_pieces(setting: Setting) -> Table:
    """Every model's losses over STEPS steps on two devices, by what may be cut."""
    rows: list[dict[str, Cell]] = []
    for benchmark in setting.benchmarks:
        with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
            training = _Training(setting, benchmark, pathlib.Path(temporary))
            row = training.row()
            for mode in MODES:
                told = training.run("host:2", "--placer=metf", f"--splits={mode}")
                row[mode] = _difference(told) + _if_whole(told)
            rows.append(row)
    return Table(
        "losses-pieces",
        f"Losses of {STEPS} steps in pieces against jax.jit",
        [
            "The largest relative difference to JAX's losses on the CPU, on host:2, by `splits`. "
            "*whole*: the step is predicted to be faster so. The last two cut whatever can be cut."
        ],
        {"model": "model", "first": "first loss", "last": "last loss"}
        | {mode: f"`{mode}`" for mode in MODES},
        rows,
    )


class _Training:
    """A model's step, and JAX's losses."""

    def __init__(self, setting: Setting, benchmark: Benchmark, folder: pathlib.Path):
        self.setting, self.name, self.folder = setting, benchmark.name, folder
        self.module, self.reference = folder / "step.mlir", folder / "reference.json"
        setting.tell(f"{self.name}: JAX")
        command = [sys.executable, "-m", "baechi.importer", *benchmark.arguments()]
        further = ["-o", self.module, f"--reference={self.reference}", f"--steps={STEPS}"]
        measured.checked(measured.run([*command, *further], measured.SEARCH), self.name)

    def row(self) -> dict[str, Cell]:
        losses = json.loads(self.reference.read_text())["losses"]
        return {"model": self.name, "first": f"{losses[0]:.4f}", "last": f"{losses[-1]:.4f}"}

    def run(self, machine: str, *options: str) -> dict[str, Any] | str:
        """The report, or the error."""
        self.setting.tell(f"{self.name}: {' '.join([machine, *options[1:]])}")
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        done = measured.tool(
            "baechi-run", self.module, f"--machine={machine}", f"--steps={STEPS}",
            "--costs=roofline", "--budget=0", "--check-single=false",
            f"--reference={self.reference}", f"--json={report}",
            f"--store={caches.folder() / 'kernels'}", *options,
        )  # fmt: skip
        return json.loads(report.read_text()) if report.exists() else measured.first_error(done)


def _curve(setting: Setting, benchmark: Benchmark, folder: pathlib.Path) -> dict[str, Cell]:
    training = _Training(setting, benchmark, folder)
    row, run = training.row(), training.run
    peak = 0
    for machine in MACHINES:
        told = run(machine, "--placer=round-robin")
        row[machine] = _difference(told)
        if isinstance(told, dict) and machine == "host:1":
            peak = told["devices"][0]["peak_bytes"]
    for share in LIMITS if peak else ():
        if row.get("limited"):
            break
        limit = int(peak * share)
        if isinstance(run(f"host:1@{limit}", "--placer=msct"), dict):
            continue  # another order of its operators needs less
        for devices in (2, 4):
            told = run(f"host:{devices}@{limit}", "--placer=msct")
            if isinstance(told, dict):
                row["limit"] = f"{share:.0%}, {limit:,} bytes"
                row["limited"] = f"host:{devices}, {_difference(told)}"
                break
    return row


def _difference(told: dict[str, Any] | str) -> str:
    """The largest relative one, or what went wrong."""
    if isinstance(told, str):
        return told
    reference = told["reference"]
    text = f"{reference['largest_relative_difference']:.1e}"
    return text if reference["agrees"] else f"{text}: too far"


def _if_whole(told: dict[str, Any] | str) -> str:
    pieces = told.get("pieces") if isinstance(told, dict) else None
    return ", whole" if pieces and not (pieces["kept"] and pieces["classes"]) else ""
