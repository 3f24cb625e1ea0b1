# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expert placements of the model collection, and the command that uses them."""

import json
import re

import pytest

import needs
from baechi import models
from baechi.commands import run_model as command
from baechi.compiling import stepgraph, tools
from baechi.importer.common.errors import ImportFailure
from baechi.models import expert


def device_of(rules: str, name: str) -> str | None:
    """What the rules say of a name (docs/formats.md)."""
    for line in rules.splitlines():
        if line and not line.startswith("#"):
            pattern, _, device = line.rpartition("=")
            if re.search(pattern.strip(), name):
                return device.strip()
    return None


def test_gnmt_puts_whole_layers_on_devices():
    rules = expert.rules("gnmt", ["a", "b", "c", "d"])
    for name, device in {
        "encoder/forward/t3/dot_general": "a",
        "params/encoder/reverse/bias": "a",
        "encoder/l1/t0/dropout/mul": "a",
        "params/encoder/upper/0/state": "a",
        "backward/encoder/l7/t0/add": "b",
        "update/encoder/upper/2/state/sub": "b",
        "decoder/attention/t4/tanh": "b",
        "decoder/l0/t9/add": "b",
        "optimizer/m/decoder/cells/3/bias": "c",
        "backward/decoder/l1/t9/dot_general": "c",
        "loss/reduce_sum": "d",
        "head/dot_general": "d",
    }.items():
        assert device_of(rules, name) == device, name


def test_places_stretch_over_the_devices():
    two = expert.rules("gnmt", ["x", "y"])
    names = ["encoder/l1/t0/add", "encoder/l2/t0/add", "decoder/l1/t0/add", "head/dot_general"]
    assert [device_of(two, name) for name in names] == ["x", "x", "y", "y"]
    one = expert.rules("moe", ["only"])
    assert {device_of(one, f"l0/moe/e{i}/dot") for i in range(8)} == {"only"}


def test_an_expert_of_inception_uses_one_device():
    rules = expert.rules("inception", ["a", "b"])
    assert device_of(rules, "b3/l0/b7x7/l1/convolution") == "a"


def test_every_expert_file_is_of_a_model_and_readable():
    assert set(expert.known()) <= set(models.NAMES)
    for model in expert.known():
        for line in expert.rules(model, ["a", "b", "c", "d"]).splitlines():
            if line and not line.startswith("#"):
                re.compile(line.rpartition("=")[0].strip())


def test_a_model_without_an_expert():
    with pytest.raises(ImportFailure, match="no expert's placement is known for mlp; for: gnmt,"):
        expert.rules("mlp", ["a"])


def test_backward_operators_know_their_forward_ones():
    names = [
        "params/w", "enc/l0/dot_general", "enc/l0/tanh", "loss/sum", "backward/loss/div",
        "backward/enc/l0/t1/mul", "backward/other/add", "update/enc/l0/sub",
    ]  # fmt: skip
    graph = {"ops": [{"id": i, "name": name} for i, name in enumerate(names)]}
    stepgraph.link_backward(graph)
    assert [op.get("forward") for op in graph["ops"]] == [None] * 4 + [3, 2, None, None]
    assert [bool(op.get("backward")) for op in graph["ops"]] == [False] * 4 + [True] * 3 + [False]


needs_tools = needs.tool("baechi-run")


def test_help(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    assert "go to baechi-run" in " ".join(capsys.readouterr().out.split())


@needs_tools
def test_unknown_model(capfd):
    assert command.main(["vgg"]) == 1
    assert "error: unknown model 'vgg'; known: mlp, " in capfd.readouterr().err


@needs_tools
def test_what_baechi_run_does_not_know(capfd):
    pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")
    assert command.main(["mlp", "--machine=gpus:2", "--costs=roofline"]) == 1
    assert "gpus:2" in capfd.readouterr().err


@needs_tools
def test_a_machine_in_short(tmp_path):
    machine = stepgraph.machine("host:3@1GiB")
    assert [device["memory"] for device in machine["devices"]] == [1 << 30] * 3
    runtime = {"step_ns": 60000, "operator_ns": 80, "wake_ns": 9000, "shared_percent": 108}
    file = tmp_path / "with a space.json"
    file.write_text(json.dumps(machine | {"runtime": runtime, "staged_through": "host"}))
    assert stepgraph.machine(file) == json.loads(file.read_text())
    with pytest.raises(tools.CompileError, match="nowhere"):
        stepgraph.machine("nowhere")


@needs_tools
def test_an_expert_placement_runs_and_computes_what_jax_computes(tmp_path, capfd):
    pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")
    report = tmp_path / "report.json"
    code = command.main(
        [
            "gnmt", "--machine=host:2", "--placer=expert", "--check-jax", "--steps=3",
            "--set", "dropout=0.1", f"--keep={tmp_path}", "--costs=roofline", f"--json={report}",
        ]
    )  # fmt: skip
    assert code == 0, capfd.readouterr().err
    told = json.loads(report.read_text())
    assert told["reference"]["agrees"] and told["outputs_agree"]
    assert all(device["operators"] > 0 for device in told["devices"])
    placed = json.loads((tmp_path / "placement.json").read_text())
    where = {op["name"]: op["device"] for op in placed["ops"]}
    assert where["params/encoder/forward/state"] == "host0"
    assert where["params/head/w"] == "host1"
