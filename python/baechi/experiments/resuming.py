# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rows were made of: whether those of an earlier run are still what a new one would make."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.machinery
import importlib.metadata
import pathlib
import sys
from collections.abc import Sequence

import baechi
from baechi.compiling import tools
from baechi.experiments import inputs
from baechi.experiments.benchmarks import Benchmark
from baechi.experiments.tables import Cell, Setting, Table

MADE_OF = "made_of"  # of a row; no column
_TOOLS = ("baechi-opt", "baechi-translate", "baechi-place", "baechi-run")
_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
# What imports models and computes their steps.
_FRAMEWORKS = ("jax", "jaxlib", "torch", "torch-mlir", "onnx", "numpy")


def _extensions() -> list[pathlib.Path]:
    endings = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    folders = [pathlib.Path(folder) for folder in baechi.__path__]
    return sorted(
        {file for each in folders for file in each.iterdir() if file.name.endswith(endings)}
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def state_of_code(modules: Sequence[str]) -> str:
    """Of all code that makes rows: the tools, this package with its extension modules, imported
    modules beside it, and the frameworks' versions."""
    files = [tools.find(name) for name in _TOOLS]
    files += sorted(_PACKAGE.rglob("*.py"))
    files += _extensions()
    files += [pathlib.Path(path) for name in modules if (path := sys.modules[name].__file__)]
    known = hashlib.sha256(repr([_version(name) for name in _FRAMEWORKS]).encode())
    for file in files:
        known.update(hashlib.sha256(file.read_bytes()).digest())
    return known.hexdigest()[:12]


def made_of(name: str, benchmark: Benchmark, setting: Setting, others: str) -> str:
    """Of all that a model's rows of a table depend on; `others`: what `setting` does not say."""
    given = [
        name,
        inputs.version(benchmark, setting.machine.roofline),
        setting.machine,
        list(setting.placers),
        setting.evaluations,
        others,
    ]
    return hashlib.sha256(repr(given).encode()).hexdigest()[:12]


def kept(before: Table | None, benchmark: Benchmark, stamp: str) -> list[dict[str, Cell]]:
    """A model's rows of an earlier run, where they were made of the same; else none."""
    rows = [row for row in before.rows if row["model"] == benchmark.name] if before else []
    return rows if all(row.get(MADE_OF) == stamp for row in rows) else []


def stamped(table: Table, stamp: str) -> Table:
    """The table with what its rows were made of."""
    return dataclasses.replace(table, rows=[{**row, MADE_OF: stamp} for row in table.rows])
