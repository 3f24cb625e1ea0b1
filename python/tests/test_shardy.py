# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is exported for Shardy, as jaxlib's dialects read it and JAX executes it."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax")

from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import sdy  # noqa: E402

import fixtures  # noqa: E402
import native  # noqa: E402
import needs  # noqa: E402
import shardy_tools  # noqa: E402
from baechi.compiling import tools  # noqa: E402

pytestmark = needs.tool("baechi-opt")
FOLDER = pathlib.Path(__file__).resolve().parent


def optimized(source, target, *flags):
    native.run(tools.find("baechi-opt"), source, *flags, "-o", target)
    return target


def placed_step(name, folder, devices, pieces):
    """A fixture, in pieces or whole, placed on equal devices with fast links."""
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
    return optimized(
        folder / "model.mlir",
        folder / "placed.mlir",
        f"--baechi-split=forced=true reductions=true pieces={pieces}",
        "--baechi-form-kernels",
        "--baechi-annotate-costs",
        "--baechi-colocate",
        f"--baechi-place=msct machine={folder / 'machine.json'} budget=0",
        "--mlir-print-debuginfo",
    )


@pytest.mark.parametrize(
    ("name", "devices", "pieces"),
    [("mlp_tiny", 2, 0), ("transformer_tiny", 3, 0), ("mlp_tiny", 2, 2), ("mlp_tiny", 3, 3)],
)
@native.needs_tools
def test_mpmd_is_the_placed_step(name, devices, pieces, tmp_path):
    placed = placed_step(name, tmp_path, devices, pieces)
    text = optimized(
        placed, tmp_path / "mpmd.mlir", "--baechi-export-mpmd", "--mlir-print-op-generic"
    ).read_text()
    assert "baechi." not in text
    module = shardy_tools.parse(text)

    translate = tools.find("baechi-translate")
    graph = json.loads(native.run(translate, placed, "--baechi-to-graph"))
    placement = json.loads(native.run(translate, placed, "--baechi-to-placement"))
    arguments = fixtures.text(name).count("baechi.init = ")
    assert len({op["device"] for op in placement["ops"]}) > 1, "nothing to see on one device"
    expected = {
        operator["name"]: (row["device"], row["start_ns"])
        for operator, row in list(zip(graph["ops"], placement["ops"], strict=True))[arguments:]
    }
    fragments = shardy_tools.operations(module, "mpmd.fragment")
    found = {shardy_tools.origin_of(each): each for each in fragments}
    assert set(expected) == {each for each in found if not re.fullmatch(r"result\d+", each)}
    lately = collections.defaultdict(int)
    for operator, fragment in found.items():
        if operator in expected:
            device, start = expected[operator]
            assert fragment.attributes["mesh_name"].value == device, operator
            assert lately[device] <= start, operator
            lately[device] = start

    transfers = shardy_tools.operations(module, "mpmd.transfer")
    moved = collections.Counter(
        (shardy_tools.mesh_of(each.operands[0]), shardy_tools.mesh_of(each.results[0]))
        for each in transfers
    )
    assert moved == collections.Counter(
        (each["from"], each["to"]) for each in placement["transfers"]
    )

    plain = shardy_tools.without_meshes(module)
    arrays = np.load(fixtures.FOLDER / f"{name}.reference.npz")
    inputs = [arrays[f"arg{i}"] for i in range(arguments)]
    rows = fixtures.reference(name)["results"]
    wanted = [arrays[f"out{i}"] for i in range(len(rows))]
    outputs = native.compile_step(plain, tmp_path)(inputs, wanted)
    for row, actual, value in zip(rows, outputs, wanted, strict=True):
        native.assert_close(actual, value, row["name"])


def test_jaxlib_refuses_a_fragment_on_another_mesh(tmp_path):
    """Its verifier looks: the test above would see a fragment on a wrong device."""
    placed = placed_step("mlp_tiny", tmp_path, 2, 0)
    text = optimized(
        placed, tmp_path / "mpmd.mlir", "--baechi-export-mpmd", "--mlir-print-op-generic"
    ).read_text()
    wrong = text.replace('mesh_name = "host0"', 'mesh_name = "host1"', 1)
    assert wrong != text
    with pytest.raises(ir.MLIRError, match="mesh"):
        shardy_tools.parse(wrong)


@pytest.mark.parametrize("name", ["mlp_tiny", "transformer_tiny", "convnet_tiny", "gnmt_tiny"])
def test_sdy_is_what_jaxlib_accepts(name, tmp_path):
    (tmp_path / "model.mlir").write_text(fixtures.text(name))
    plan = tmp_path / "plan.json"
    text = optimized(
        tmp_path / "model.mlir",
        tmp_path / "sdy.mlir",
        "--baechi-constrain=splits=" + ASKED[name],
        f"--baechi-export-sdy=machine=host:2 choose=false plan={plan}",
        "--mlir-print-op-generic",
    ).read_text()
    assert "baechi." not in text
    module = shardy_tools.parse(text)
    (mesh,) = shardy_tools.operations(module, "sdy.mesh")
    assert str(mesh.attributes["mesh"]) == '#sdy.mesh<["devices"=2]>'
    (step,) = shardy_tools.operations(module, "func.func")
    said = json.loads(plan.read_text())
    for part, shared in (("arg_attrs", "arguments"), ("res_attrs", "results")):
        annotated = [sdy.TensorShardingAttr(each["sdy.sharding"]) for each in step.attributes[part]]
        cut = [
            [bool(sdy.DimensionShardingAttr(dim).axes) for dim in each.dimension_shardings]
            for each in annotated
        ]
        assert [row.index(True) if any(row) else None for row in cut] == said[shared]
    assert any(dim is not None for dim in said["arguments"])
    with pytest.raises(ir.MLIRError, match="unknown axis"):
        shardy_tools.parse(text.replace('[{"devices"}', '[{"others"}', 1))


# The batch of each.
ASKED = {
    "mlp_tiny": "batch/x=0:2",
    "transformer_tiny": "batch/tokens=0:2",
    "convnet_tiny": "batch/x=0:2",
    "gnmt_tiny": "batch/source=0:2",
}

ENVIRONMENT = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


def on_two_devices(*command):
    environment = ENVIRONMENT | {"PYTHONPATH": str(FOLDER.parent)}
    return subprocess.run(
        [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def executed():
    """What `shardy_steps.py` found on XLA's CPU with two devices."""
    done = on_two_devices(FOLDER / "shardy_steps.py")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


STEPS = ["mlp", "mlp_chosen", "columns", "attention", "heads", "normalised", "keys"]


@pytest.mark.parametrize("name", STEPS)
def test_jax_executes_the_plan(name, executed):
    row = executed[name]
    assert row["error"] <= 1e-5
    assert row["cut_arguments"] and row["as_planned"]
    # What crosses between the devices is what was planned; of batch statistics XLA joins one
    # sum twice.
    planned = [
        [*key, count + (name == "normalised" and key == ["all-reduce", 24])]
        for *key, count in row["planned"]
    ]
    assert row["collectives"] == planned


def test_xla_alone_moves_no_less(executed):
    """Compared with XLA's own propagation from the batch alone."""
    # Data parallel it is the same; columns of weights it does not find.
    for name in ("mlp", "mlp_chosen", "attention", "normalised", "keys"):
        assert executed[name]["elements"] == executed[name]["elements_from_batch"], name
    assert executed["columns"]["elements"] < executed["columns"]["elements_from_batch"] / 4


def test_refusals(executed):
    refused = executed["refused"]
    assert "equal pieces, 2 here" in refused["uneven"]
    assert "nothing is cut" in refused["whole"]
    assert "of kind 'host' and 'd1' of kind 'cuda'" in refused["kinds"]
    assert "operators on devices of their own" in refused["pinned"]
    assert "has 3 devices and JAX 2" in refused["many"]
    assert "takes a lowered step" in refused["function"]
    assert "give 'any' or 'none'" in refused["word"]
