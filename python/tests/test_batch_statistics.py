# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""benchmarks/placement/batch_statistics.py cuts steps by hand (docs/splitting.md)."""

import importlib.util
import pathlib

import pytest

from baechi.compiling import tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINE = ROOT / "python/baechi/experiments/machines/socc2020.json"


@pytest.fixture
def script():
    path = ROOT / "benchmarks/placement/batch_statistics.py"
    spec = importlib.util.spec_from_file_location("batch_statistics", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def graph():
    """A module of two branches: a convolution, its statistics, and what they scale."""
    ops, edges = [], []

    def add(name, ns, size, *reads):
        ops.append({"id": len(ops), "name": name, "time_ns": {"cuda": ns}, "outputs": [size]})
        edges.extend({"from": read, "output": 0, "to": len(ops) - 1} for read in reads)
        return len(ops) - 1

    image, weight = add("batch/x", 0, 400_000), add("params/a0/w", 0, 4000)
    for branch in ("left", "right"):
        name = f"a0/l0/{branch}/l0"
        conv = add(f"{name}/convolution/conv_general_dilated", 4_005_000, 400_000, image, weight)
        mean = add(f"{name}/norm/reduce_sum", 405_000, 256, conv)
        variance = add(f"{name}/norm/reduce_sum#1", 405_000, 256, conv, mean)
        add(f"{name}/max", 805_000, 400_000, conv, mean, variance)
    return {"ops": ops, "edges": edges}


def test_pieces_wait_for_the_sums_of_all(script):
    whole = script.Whole(graph())
    apart = script.Pieces(whole, {"a0": 4}, script.Messages())
    joined = script.Pieces(whole, {"a0": 4}, script.Messages(siblings=True))
    alone = script.Pieces(whole, {}, script.Messages())

    def messages(pieces):
        device = {op["id"]: op["pin"] for op in pieces.ops}
        across = (each for each in pieces.edges if device[each["from"]] != device[each["to"]])
        return len({(each["from"], each["output"], device[each["to"]]) for each in across})

    # Two exchanges in pairs for each of four pieces; of both branches at once, half of them.
    assert messages(apart) == 2 * 4 * 2 and messages(joined) == 4 * 2 and messages(alone) == 0
    tool = tools.find("baechi-place")
    # All computing, four launches a branch and, of four, four transfers one after the other.
    assert script.step_ms(tool, MACHINE, alone) == pytest.approx(2 * 5.62)
    work, message = 2 * (5.6 / 4 + 4 * 0.005), 0.134
    assert work < script.step_ms(tool, MACHINE, joined) <= work + 4 * message + 0.01
    assert script.step_ms(tool, MACHINE, apart) >= work
