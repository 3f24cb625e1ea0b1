# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE compiles and runs what --baechi-export-iree writes, as it was placed.

Small fixtures always; larger ones with `pytest -m nightly` and `-m iree_large`.
"""

import functools
import importlib.metadata
import json
import os
import pathlib
import re

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
# A minute and more each.
LARGE = ["gnmt_small", "gnmt_large"]
# As their smaller ones.
REPEATING = ["transformer_small"]
# IREE folds what moe computes of constants, runs a gradient of convnet's on another device and
# cannot transfer the booleans that resnet and inception keep for the backward pass.
OUTSIDE = ["moe_tiny", "convnet_tiny", "resnet_tiny", "inception_tiny"]
CASES = [
    *((name, 2) for name in fixtures.ALL if name not in LARGE + OUTSIDE + REPEATING),
    *(pytest.param(name, 2, marks=pytest.mark.nightly) for name in REPEATING),
    pytest.param("transformer_tiny", 3, marks=pytest.mark.nightly),
    *(pytest.param(name, 2, marks=pytest.mark.iree_large) for name in LARGE),
]


@functools.cache
def module_text(name: str) -> str:
    """A fixture, or the same without the loops of look-ups' gradients."""
    if "scf.for" not in fixtures.text(name):
        return fixtures.text(name)
    pytest.importorskip("jax")
    from baechi import models
    from baechi.importer.jax import step as importer

    model, preset = name.split("_")
    module = models.load(model)
    step = module.training_step(module.PRESETS[preset])
    return importer.import_step(*step, name=model, loops=False).text


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
    (folder / "model.mlir").write_text(module_text(name))
    native.run(
        TOOLS / "baechi-opt",
        folder / "model.mlir",
        "--baechi-form-kernels=row-loops=false max-buffers=24",
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


@pytest.mark.parametrize("name, devices", CASES)
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
    arguments = module_text(name).count("baechi.init = ")
    operators = set(list(expected)[arguments:])
    # IREE copies what is concatenated, and repeats a sum with an LSTM's first state, without a
    # dispatch.
    undispatched = [
        name for name in operators - seen if not re.search("concatenate|/t0/dot_general#", name)
    ]
    assert not undispatched
    rows = list(iree_tools.dispatches(phases))
    assert rows
    for device, names in rows:
        assert names and {expected[name] for name in names} == {device}, names

    inputs, wanted = known_step(name, tmp_path)
    outputs = iree_tools.run_on_host(library, devices, inputs, len(wanted))
    for row, actual, value in zip(
        fixtures.reference(name)["results"], outputs, wanted, strict=True
    ):
        # Longer sums of numbers that nearly cancel: a bias' first gradient.
        tolerance = 1e-4 if name in fixtures.TINY else 1e-3
        native.assert_close(actual, value, row["name"], tolerance)


def known_step(name: str, folder: pathlib.Path):
    """Inputs and results of one step: JAX's where they were kept, else what
    Baechi's own runtime computes on one device."""
    results = len(fixtures.reference(name)["results"])
    if name in fixtures.TINY:
        arrays = np.load(fixtures.FOLDER / f"{name}.reference.npz")
        inputs = [arrays[f"arg{i}"] for i in range(sum(key.startswith("arg") for key in arrays))]
        return inputs, [arrays[f"out{i}"] for i in range(results)]
    native.run(
        TOOLS / "baechi-run",
        folder / "model.mlir",
        "--machine=host:1",
        "--costs=roofline",
        "--check-single=false",
        "--steps=1",
        f"--outputs={folder / 'outputs.npz'}",
    )
    arrays = np.load(folder / "outputs.npz")
    wanted = [arrays[f"out{i}"] for i in range(results)]
    assert float(wanted[0]) == pytest.approx(fixtures.reference(name)["losses"][0], rel=1e-5)
    return fixtures.initial_values(name), wanted


# Two chains of products that meet at the end.
CHAINS = """
func.func @step(%x: T {baechi.name = "x"}, %y: T {baechi.name = "y"}) -> T {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : T
  %f = linalg.fill ins(%zero : f32) outs(%e : T) -> T
  %a0 = linalg.matmul ins(%x, %x : T, T) outs(%f : T) -> T loc("a0")
  %a1 = linalg.matmul ins(%a0, %x : T, T) outs(%f : T) -> T loc("a1")
  %b0 = linalg.matmul ins(%y, %y : T, T) outs(%f : T) -> T loc("b0")
  %b1 = linalg.matmul ins(%b0, %y : T, T) outs(%f : T) -> T loc("b1")
  %j = linalg.matmul ins(%a1, %b1 : T, T) outs(%f : T) -> T loc("join")
  return %j : T
}
""".replace("T", "tensor<64x64xf32>")


@pytest.mark.parametrize("barriers", [True, False])
def test_independent_chains_do_not_wait_for_each_other(barriers, tmp_path):
    (tmp_path / "chains.mlir").write_text(CHAINS)
    placed = tmp_path / "placed.mlir"
    native.run(
        TOOLS / "baechi-opt",
        tmp_path / "chains.mlir",
        "--baechi-form-kernels=row-loops=false",
        "--baechi-annotate-costs",
        "--baechi-constrain=pins=x=host0,a?=host0,y=host1,b?=host1,join=host0",
        "--baechi-place=msct machine=host:2 budget=0",
        "--mlir-print-debuginfo",
        "-o",
        placed,
    )
    source = export(placed)
    if not barriers:  # the same without what the export adds for this
        barrier = r'"flow.tensor.barrier"\((%\w+)\) <.*> : \((.*)\) -> (\S+)'
        text = re.sub(barrier, r"tensor.cast \1 : \2 to \3", source.read_text())
        assert "barrier" not in text
        source.write_text(text)
    iree_tools.compile_for_host(source, tmp_path)
    rows = iree_tools.executions(tmp_path / "phases")
    of = {name: i for i, (_, names, _) in enumerate(rows) for name in names}
    assert [rows[of[name]][0] for name in ("a0", "b0", "join")] == ["host0", "host1", "host0"]
    assert of["b1"] in rows[of["join"]][2]

    def waits(name, other):
        return of[other] in rows[of[name]][2]

    free = not any(waits(a, b) or waits(b, a) for a in ("a0", "a1") for b in ("b0", "b1"))
    assert free == barriers
