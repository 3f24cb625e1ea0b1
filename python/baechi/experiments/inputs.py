# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graphs of the benchmarks: imported from JAX at full size, costs by a roofline; NASNet's
are generated.

They are kept in the cache folder and made again when the importer, the models,
the compiler or the machine's roofline change.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import sys

from baechi.compiling import caches, compiler, stepgraph, tools
from baechi.experiments import measured
from baechi.experiments.benchmarks import GENERATED, Benchmark
from baechi.learned import nasnet

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Input:
    """A benchmark's graph file, and what making it took."""

    benchmark: Benchmark
    module: pathlib.Path  # of what is imported
    graph: pathlib.Path
    operations: int  # linalg operations that were imported
    operators: int  # calls of kernels
    kernels: int  # distinct ones
    import_cpu_s: float
    import_peak_mib: float
    form_cpu_s: float
    form_peak_mib: float


def make(benchmark: Benchmark, roofline: str) -> Input:
    """The graph of a benchmark, from the cache where nothing changed.

    Raises CompileError, and ImportFailure's text in one where the import fails.
    """
    folder = caches.folder() / "experiments" / f"{benchmark.name}-{version(benchmark, roofline)}"
    told = folder / "input.json"
    module, graph = folder / "step.mlir", folder / "graph.json"
    if not told.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if benchmark.model == GENERATED:
            made = _generate(benchmark, roofline, graph)
        else:
            made = _make(benchmark, roofline, module, graph)
        told.write_text(json.dumps(made))
    return Input(benchmark, module, graph, **json.loads(told.read_text()))


def _make(
    benchmark: Benchmark, roofline: str, module: pathlib.Path, graph: pathlib.Path
) -> dict[str, float]:
    command = [sys.executable, "-m", "baechi.importer", *benchmark.arguments(), "-o", module]
    imported = measured.checked(measured.run(command, measured.SEARCH), benchmark.name)
    costs = module.with_suffix(".costs.mlir")
    passes = (f"--pass-pipeline={compiler.pipeline(stepgraph.passes(roofline))}",)
    formed = measured.checked(
        measured.tool("baechi-opt", module, *passes, "--mlir-print-debuginfo", "-o", costs),
        benchmark.name,
    )
    measured.checked(
        measured.tool("baechi-translate", costs, "--baechi-to-graph", "-o", graph), benchmark.name
    )
    costs.unlink()
    linked = json.loads(graph.read_text())
    stepgraph.link_backward(linked)
    graph.write_text(json.dumps(linked))
    counts = stepgraph.counts(formed.errors)
    return {
        "operations": int(imported.errors.split(" linalg operations")[0].split()[-1]),
        "operators": counts.operators,
        "kernels": counts.kernels,
        "import_cpu_s": imported.cost.cpu_s,
        "import_peak_mib": imported.cost.peak_mib,
        "form_cpu_s": formed.cost.cpu_s,
        "form_peak_mib": formed.cost.peak_mib,
    }


def _generate(benchmark: Benchmark, roofline: str, graph: pathlib.Path) -> dict[str, float]:
    settings = dict(benchmark.changes)
    make = nasnet.nasnet_a if benchmark.preset == "a" else nasnet.searched
    made = make(nasnet.Device.of(roofline), **settings)
    graph.write_text(json.dumps(made.to_dict()))
    nothing = dict.fromkeys(("import_cpu_s", "import_peak_mib", "form_cpu_s", "form_peak_mib"), 0.0)
    return nothing | {"operations": 0, "operators": len(made.ops), "kernels": 0}


def version(benchmark: Benchmark, roofline: str) -> str:
    """Of all that a graph depends on."""
    known = hashlib.sha256(f"{benchmark} {roofline}".encode())
    if benchmark.model == GENERATED:
        for name in ("nasnet", "backward"):
            known.update((_PACKAGE / "learned" / f"{name}.py").read_bytes())
        return known.hexdigest()[:12]
    sources = [_PACKAGE / "init.py", _PACKAGE / "compiling" / "stepgraph.py"]
    for part in ("importer", "models"):
        sources += sorted((_PACKAGE / part).rglob("*.py"))
    for source in sources:
        known.update(source.read_bytes())
    for name in ("baechi-opt", "baechi-translate"):
        state = tools.find(name).stat()
        known.update(f"{state.st_size} {state.st_mtime_ns}".encode())
    return known.hexdigest()[:12]
