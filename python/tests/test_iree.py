# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE compiles and runs what --baechi-export-iree writes, as it was placed.

The tiny fixtures always; all of them with `pytest -m iree_large`.
"""

import importlib.metadata
import json
import os
import pathlib

import numpy as np
import pytest

import fixtures
import iree_tools
import native

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("BAECHI_TOOLS", ROOT / "build/release/bin"))


def missing() -> str:
    for package in ("iree-base-compiler", "iree-base-runtime"):
        try:
            if importlib.metadata.version(package) != iree_tools.VERSION:
                return f"{package} is not of version {iree_tools.VERSION}"
        except importlib.metadata.PackageNotFoundError:
            return f"{package} is not installed"
    return "" if (TOOLS / "baechi-opt").exists() else f"no baechi-opt in {TOOLS}"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
LARGE = [
    pytest.param(name, 2, marks=pytest.mark.iree_large)
    for name in fixtures.ALL
    if name not in fixtures.TINY
]


def place(name: str, folder: pathlib.Path, devices: int) -> pathlib.Path:
    """A fixture placed on equal devices, whose links make crossing worthwhile."""
    machine = {
        "format": "baechi-machine",
        "version": 1,
        "devices": [
            {"name": f"host{i}", "kind": "host", "memory": 1 << 40} for i in range(devices)
        ],
        "links": [],
        "link_default": {"latency_ns": 100, "bytes_per_us": 100000},
        "link_model": "parallel",
    }
    (folder / "machine.json").write_text(json.dumps(machine))
    (folder / "model.mlir").write_text(fixtures.text(name))
    native.run(
        TOOLS / "baechi-opt",
        folder / "model.mlir",
        "--baechi-form-kernels=row-loops=false",
        "--baechi-annotate-costs",
        "--baechi-colocate",
        f"--baechi-place=msct machine={folder / 'machine.json'} budget=0",
        "--mlir-print-debuginfo",
        "-o",
        folder / "placed.mlir",
    )
    return folder / "placed.mlir"


def export(placed: pathlib.Path) -> pathlib.Path:
    file = placed.with_name("iree.mlir")
    native.run(
        TOOLS / "baechi-opt", placed, "--baechi-export-iree", "--mlir-print-debuginfo", "-o", file
    )
    return file


def devices_of(placed: pathlib.Path) -> dict[str, str]:
    """The device of each operator, from the files that placement writes."""
    translate = TOOLS / "baechi-translate"
    graph = json.loads(native.run(translate, placed, "--baechi-to-graph"))
    placement = json.loads(native.run(translate, placed, "--baechi-to-placement"))
    return {
        operator["name"]: row["device"]
        for operator, row in zip(graph["ops"], placement["ops"], strict=True)
    }


@pytest.mark.parametrize(
    "name, devices",
    [*((name, 2) for name in fixtures.TINY), ("transformer_tiny", 3), *LARGE],
)
def test_runs_where_it_was_placed(name, devices, tmp_path):
    placed = place(name, tmp_path, devices)
    expected = devices_of(placed)
    assert len(set(expected.values())) > 1, "nothing to see on one device"
    library = iree_tools.compile_for_host(export(placed), tmp_path)
    phases = tmp_path / "phases"

    seen = set()
    for names in iree_tools.fused_operators(phases):
        assert len({expected[name] for name in names}) == 1, names
        seen |= names
    arguments = fixtures.text(name).count("baechi.init = ")
    operators = set(list(expected)[arguments:])
    # IREE copies what is concatenated, without a dispatch.
    assert all("concatenate" in name for name in operators - seen)
    rows = list(iree_tools.dispatches(phases))
    assert rows
    for device, names in rows:
        assert names and {expected[name] for name in names} == {device}, names

    if name not in fixtures.TINY:
        return
    arrays = np.load(fixtures.FOLDER / f"{name}.reference.npz")
    rows = fixtures.reference(name)["results"]
    inputs = [arrays[f"arg{i}"] for i in range(sum(key.startswith("arg") for key in arrays))]
    outputs = iree_tools.run_on_host(library, devices, inputs, len(rows))
    for i, (row, actual) in enumerate(zip(rows, outputs, strict=True)):
        native.assert_close(actual, arrays[f"out{i}"], row["name"])
