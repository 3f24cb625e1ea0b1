# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of imported modules, for placing."""

import pathlib

import pytest

import baechi
from baechi.compiling.tools import CompileError

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "mlp.mlir"
MACHINE = baechi.Machine(
    [baechi.Device(f"gpu{i}", "cuda", 2**30) for i in range(2)], baechi.Link(10, 1_000_000)
)


def test_an_example_becomes_a_graph():
    graph = baechi.graph_of(EXAMPLE)
    assert baechi.graph_of(EXAMPLE.read_text()) == graph
    names = [op["name"] for op in graph["ops"]]
    assert [name for name in names if name.startswith("tower")] == [
        "tower_a/layer1",
        "tower_a/layer2",
        "tower_b/layer1",
        "tower_b/layer2",
    ]
    placement = baechi.place(graph, MACHINE)
    where = placement.assignment
    assert where["tower_a/layer1"] == where["tower_a/layer2"]
    assert where["tower_a/layer1"] != where["tower_b/layer1"]


def test_other_rooflines():
    slow = baechi.graph_of(EXAMPLE, roofline="tpu:1:1:500")
    product = next(op for op in slow["ops"] if op["name"] == "tower_a/layer1")
    # 2 * 256 * 512 * 512 operations at one a nanosecond, and the launch.
    assert product["time_ns"] == {"tpu": 2 * 256 * 512 * 512 + 500}


def test_machines_in_short():
    graph = baechi.graph_of(EXAMPLE)
    placement = baechi.place(graph, "host:3@2GiB")
    assert placement.devices == ["host0", "host1", "host2"]
    assert placement.memory_limit.tolist() == [2**31] * 3
    with pytest.raises(baechi.PlacementError, match="'much' is not a size"):
        baechi.place(graph, "host:3@much")
    with pytest.raises(baechi.PlacementError, match="unknown kind 'tpu'"):
        baechi.place(graph, "tpu:3")


def test_errors_are_the_tools(tmp_path):
    with pytest.raises(CompileError, match="nowhere.mlir"):
        baechi.graph_of(tmp_path / "nowhere.mlir")
    with pytest.raises(CompileError, match="error"):
        baechi.graph_of("this is\nno module\n")
    with pytest.raises(CompileError, match="roofline"):
        baechi.graph_of(EXAMPLE, roofline="fast")


def test_a_jax_step_is_placed_without_running_it():
    jax = pytest.importorskip("jax")

    def step(params, x):
        with jax.named_scope("first"):
            x = x @ params["first"]
        with jax.named_scope("second"):
            return x @ params["second"]

    params = {"first": jax.numpy.ones((64, 32)), "second": jax.numpy.ones((32, 16))}
    jitted = baechi.jit(step, machine="host:1", costs="roofline", budget="0")
    graph = baechi.graph_of(jitted.lower(params, jax.numpy.ones((8, 64))))
    assert {"first/dot_general", "second/dot_general"} <= {op["name"] for op in graph["ops"]}
    assert baechi.Evaluator(graph, MACHINE)([0] * len(graph["ops"])).fits
