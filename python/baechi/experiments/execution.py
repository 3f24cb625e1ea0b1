# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The comparison of steps by execution, on host devices at reduced size."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

from baechi.compiling import caches
from baechi.experiments import measured
from baechi.experiments.benchmarks import Benchmark
from baechi.experiments.placers import TITLES
from baechi.experiments.tables import Cell, Setting, Table

STEPS = 10


def steps_executed(setting: Setting, machine: str) -> Table:
    """Measured beside predicted steps of the placers that baechi-run knows."""
    placers = [name for name in setting.placers if name in ("expert", "mtopo", "metf", "msct")]
    rows: list[dict[str, Cell]] = []
    for benchmark in setting.benchmarks:
        row: dict[str, Cell] = {"model": benchmark.name}
        for name in [*placers, *(["default"] if "default" in setting.placers else [])]:
            setting.tell(f"{benchmark.name}: {TITLES[name]}")
            _run(benchmark, machine, name, row)
        rows.append(row)
    # What failed everywhere has a column, too: its cells say why.
    names = [name for name in TITLES if name != "single" and any(name in row for row in rows)]
    return Table(
        "executed",
        f"Step time by execution on {machine}, reduced models",
        [
            f"Median ms of {STEPS} steps and, in parentheses, the speed-up over one device and the "
            "predicted ms. Results equal one device's bit for bit, and the losses JAX's to "
            "1e-4, or the cell says otherwise. Costs are measured kernels."
        ],
        {"model": "model", "single": TITLES["single"], **{name: TITLES[name] for name in names}},
        rows,
        plot=[f"{name}_ms" for name in ("single", *names) if any(f"{name}_ms" in r for r in rows)],
    )


def _run(benchmark: Benchmark, machine: str, placer: str, row: dict[str, Cell]) -> None:
    with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
        report = pathlib.Path(temporary) / "report.json"
        place = "msct" if placer == "default" else placer
        budget = "auto" if placer == "default" else "0"
        arguments = [
            *benchmark.arguments(),
            f"--machine={machine}",
            f"--placer={place}",
            "--check-jax",
            f"--steps={STEPS}",
            f"--json={report}",
            f"--profile={caches.folder() / 'profile.json'}",
            f"--store={caches.folder() / 'kernels'}",
        ]
        if place != "expert":
            arguments.append(f"--budget={budget}")
        done = measured.run([sys.executable, "-m", "baechi.models", *arguments], measured.SEARCH)
        if not report.exists():
            row[placer] = measured.first_error(done)
            return
        told = json.loads(report.read_text())
    step, alone = told["measured_step_ns"] / 1e6, told["single_device_ns"] / 1e6
    agrees = told["outputs_agree"] and told["reference"]["agrees"]
    row["single"], row["single_ms"] = f"{alone:.1f}", alone
    row[f"{placer}_ms"] = step
    row[f"{placer}_predicted_ms"] = told["predicted_step_ns"] / 1e6
    row[placer] = (
        f"{step:.1f} ({alone / step:.2f}; {told['predicted_step_ns'] / 1e6:.1f})"
        if agrees
        else "wrong results"
    )
