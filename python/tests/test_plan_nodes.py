# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of steps for machines of nodes, from Python."""

import json
import pathlib
import sys

import pytest

import baechi
import fixtures
import native
import needs

pytestmark = [needs.tool("baechi-opt"), needs.tool("baechi-place")]
ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINE = {
    "format": "baechi-machine",
    "version": 1,
    "nodes": 2,
    "devices_per_node": 4,
    "device": {"kind": "cuda", "memory": 1 << 36},
    "inside": {"latency_ns": 2000, "bytes_per_us": 300_000},
    "between": {"latency_ns": 5000, "bytes_per_us": 25_000},
    "link_model": "duplex",
}


def test_a_module_is_planned(tmp_path):
    plan = baechi.plan_nodes(fixtures.text("mlp_tiny"), MACHINE, parts=2, budget=0)
    assert plan.devices == plan.replicas * plan.stages * plan.stage_devices <= 8
    assert plan.lower_bound_ns <= plan.step_ns == plan.report["makespan_ns"]
    assert {op["part"] for op in plan.graph["ops"] if "part" in op} == {0, 1}
    assert f"{plan.devices} of 8 devices" in str(plan)
    assert len(repr(plan)) < 300

    files = []
    for name, content in (("graph", plan.graph), ("machine", MACHINE), ("plan", plan.placement)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(content))
    oracle = ROOT / "scripts" / "oracle" / "check_placement.py"
    assert "makespan" in native.run(sys.executable, oracle, *files)


def test_the_machine_s_kind_and_rooflines():
    machine = MACHINE | {"device": {"kind": "tpu", "memory": 1 << 36}}
    plan = baechi.plan_nodes(
        fixtures.text("mlp_tiny"), machine, parts=2, pieces=(2,), roofline="tpu:1:1:500", budget=0
    )
    assert plan.report["devices"][0]["name"] == "n0.tpu0"
    assert set(plan.ways) <= {"data/2", "tensor/2"}


def test_a_step_of_jax_is_planned():
    jax = pytest.importorskip("jax")
    numpy = jax.numpy

    def step(w, x, y):
        def loss(w):
            return ((numpy.tanh(x @ w["a"]) @ w["b"] - y) ** 2).mean()

        value, slopes = jax.value_and_grad(loss)(w)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, slopes), value

    w = {"a": numpy.ones((32, 64)), "b": numpy.ones((64, 16))}
    lowered = baechi.jit(step).lower(w, numpy.ones((48, 32)), numpy.ones((48, 16)))
    plan = baechi.plan_nodes(lowered, MACHINE, parts=4, budget=0)
    assert {op.get("part", 0) for op in plan.graph["ops"]} == {0, 1, 2, 3}
    with pytest.raises(baechi.CompileError, match="does not divide into 5 equal parts: take par"):
        baechi.plan_nodes(lowered, MACHINE, parts=5)


def test_what_is_no_machine_of_nodes_is_an_error():
    text = fixtures.text("mlp_tiny")
    with pytest.raises(ValueError, match="the machine has no nodes: state nodes"):
        baechi.plan_nodes(text, "host:2", parts=2)
    with pytest.raises(ValueError, match="parts is 0"):
        baechi.plan_nodes(text, MACHINE, parts=0)
    with pytest.raises(baechi.CompileError, match="devices_per_node"):
        baechi.plan_nodes(text, {k: v for k, v in MACHINE.items() if "_per_" not in k}, parts=2)
    small = MACHINE | {"device": {"kind": "cuda", "memory": 1000}}
    told = "no plan was found that fits 8 devices of 1000 B each: operators hold .* on one device"
    for budget in (0, "auto"):
        with pytest.raises(baechi.CompileError, match=told):
            baechi.plan_nodes(text, small, parts=2, budget=budget)


def test_what_is_pinned_is_there():
    names = [
        op["name"]
        for op in baechi.plan_nodes(fixtures.text("mlp_tiny"), MACHINE, parts=2, budget=0).graph[
            "ops"
        ]
    ]
    pinned = next(name for name in names if "/" in name and "." not in name)
    plan = baechi.plan_nodes(
        fixtures.text("mlp_tiny"), MACHINE, parts=2, pin={pinned: "n1.cuda2"}, budget=0
    )
    assert plan.replicas == 1
    assert {op["pin"] for op in plan.graph["ops"] if "pin" in op} == {"n1.cuda2"}
    with pytest.raises(baechi.CompileError, match="nowhere"):
        baechi.plan_nodes(
            fixtures.text("mlp_tiny"), MACHINE, parts=2, pin={pinned: "nowhere"}, budget=0
        )


def test_loops_are_written_out_unless_a_pin_names_them():
    jax = pytest.importorskip("jax")
    numpy = jax.numpy

    def step(w, x):
        def part(slope, x):
            return slope + jax.grad(lambda w: numpy.tanh(x @ w).sum())(w), None

        slope, _ = jax.lax.scan(part, numpy.zeros_like(w), x.reshape(4, -1, 32))
        return w - 0.1 * slope

    lowered = baechi.jit(step).lower(numpy.ones((32, 64)), numpy.ones((48, 32)))
    plan = baechi.plan_nodes(lowered, MACHINE, parts=2, budget=0)
    assert plan.parts == 2 and any(".turn3" in op["name"] for op in plan.graph["ops"])
    plan = baechi.plan_nodes(lowered, MACHINE, parts=1, pin={"while": "n1.cuda0"}, budget=0)
    assert [op["name"] for op in plan.graph["ops"] if "pin" in op] == ["while"]


def test_a_step_without_a_batch_has_one_part():
    text = """
    func.func @step(%x: tensor<1x300xf32>,
                    %w: tensor<300x301xf32> {baechi.updated_by = 1 : i64}) -> (
        tensor<1x301xf32>, tensor<300x301xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<1x301xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x301xf32>) -> tensor<1x301xf32>
      %y = linalg.matmul ins(%x, %w : tensor<1x300xf32>, tensor<300x301xf32>)
        outs(%z : tensor<1x301xf32>) -> tensor<1x301xf32>
      return %y, %w : tensor<1x301xf32>, tensor<300x301xf32>
    }"""
    plan = baechi.plan_nodes(text, MACHINE, parts=1, budget=0)
    assert (plan.parts, plan.devices) == (1, 1)
    with pytest.raises(baechi.CompileError, match="no batch to cut in 2 parts"):
        baechi.plan_nodes(text, MACHINE, parts=2, budget=0)


@pytest.mark.parametrize(
    "device", [None, "cuda", [1], {"memory": 1}, {"kind": 3, "memory": 1}, {"kind": ""}]
)
def test_a_device_without_a_kind_is_told(device):
    with pytest.raises(ValueError, match="the machine's device is .*: state its kind and memory"):
        baechi.plan_nodes(fixtures.text("mlp_tiny"), MACHINE | {"device": device}, parts=2)


def test_statistics_of_the_batch_are_told():
    text = """
    func.func @step(%x: tensor<64x32xf32>, %w: tensor<32xf32> {baechi.updated_by = 1 : i64}) -> (
        tensor<64x32xf32>, tensor<32xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<32xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
      %s = linalg.reduce ins(%x : tensor<64x32xf32>) outs(%z : tensor<32xf32>) dimensions = [0]
        (%a: f32, %sum: f32) { %t = arith.addf %a, %sum : f32  linalg.yield %t : f32 }
      %b = tensor.empty() : tensor<64x32xf32>
      %all = linalg.broadcast ins(%s : tensor<32xf32>) outs(%b : tensor<64x32xf32>) dimensions = [0]
      %n = linalg.sub ins(%x, %all : tensor<64x32xf32>, tensor<64x32xf32>)
        outs(%b : tensor<64x32xf32>) -> tensor<64x32xf32>
      return %n, %w : tensor<64x32xf32>, tensor<32xf32>
    }"""
    with pytest.warns(UserWarning, match="planned in 1 part, not in 4: something in it needs"):
        plan = baechi.plan_nodes(text, MACHINE, parts=4, budget=0)
    assert plan.parts == 1
