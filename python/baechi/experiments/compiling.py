# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import and compilation of full-size models for host devices: seconds and memory."""

from __future__ import annotations

import pathlib
import sys
import tempfile

from baechi.experiments import measured
from baechi.experiments.measured import Done
from baechi.experiments.tables import Cell, Setting, Table

MACHINE = "host:2"


def compile_times(setting: Setting) -> Table:
    """From the JAX function to a step library on the disk, with an empty store of
    kernels and with all kernels in it. Nothing is run: the costs are the roofline's."""
    rows: list[dict[str, Cell]] = []
    for benchmark in setting.benchmarks:
        with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
            folder = pathlib.Path(temporary)
            module = folder / "step.mlir"
            setting.tell(f"{benchmark.name}: importing")
            command = [sys.executable, "-m", "baechi.importer", *benchmark.arguments()]
            imported = measured.run([*command, "-o", module], measured.SEARCH)
            measured.checked(imported, benchmark.name)
            compiled: list[Done] = []
            for _ in range(2):
                setting.tell(f"{benchmark.name}: compiling")
                done = measured.tool(
                    "baechi-run", module, f"--machine={MACHINE}", "--costs=roofline", "--emit=so",
                    f"--output={folder / 'step.so'}", f"--store={folder / 'kernels'}",
                )  # fmt: skip
                compiled.append(measured.checked(done, benchmark.name))
        first, second = (done.cost for done in compiled)
        peak = max(imported.cost.peak_mib, first.peak_mib)
        rows.append(
            {
                "model": benchmark.name,
                "import": _text(imported.cost),
                "first": _text(first),
                "together": f"{imported.cost.wall_s + first.wall_s:.0f}",
                "second": _text(second),
                "peak": round(peak),
            }
        )
    return Table(
        "compile",
        "Import and compilation of full-size models",
        [
            f"Seconds, and processor seconds in parentheses, for {MACHINE} on two cores, "
            "quiet; *together*: import and the first compilation. "
            "Placement by m-SCT and its search of about a second is part of both compilations."
        ],
        {
            "model": "model",
            "import": "import",
            "first": "compile, empty store",
            "together": "together",
            "second": "compile, kernels in the store",
            "peak": "peak MiB",
        },
        rows,
    )


def _text(cost: measured.Cost) -> str:
    return f"{cost.wall_s:.1f} ({cost.cpu_s:.1f})"
