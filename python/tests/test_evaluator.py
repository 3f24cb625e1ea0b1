# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""baechi.Evaluator: what assignments are worth."""

import threading

import numpy as np
import pytest

import baechi
from problems import MACHINE, diamond, random_graph


def random_assignment(evaluator, rng):
    of_unit = rng.integers(len(evaluator.devices), size=evaluator.units.max() + 1)
    return of_unit[evaluator.units]


def test_the_step_of_a_given_assignment():
    evaluator = baechi.Evaluator(diamond(), MACHINE)
    # a, a transfer of 10 + 10 ns, c beside b, a transfer back, d.
    apart = evaluator([0, 0, 1, 0])
    assert apart == (10 + 20 + 1000 + 20 + 10, apart.peak_bytes, True)
    assert apart.peak_bytes.tolist() == [30, 20]
    together = evaluator({"a": "gpu1", "b": "gpu1", "c": "gpu1", "d": "gpu1"})
    assert together.step_ns == 2020
    assert together.peak_bytes.tolist() == [0, 30]
    assert baechi.evaluate(diamond(), MACHINE, [0, 0, 1, 0]).step_ns == apart.step_ns


def test_agrees_with_placements():
    evaluator = baechi.Evaluator(random_graph(seed=7, operators=80), MACHINE)
    rng = np.random.default_rng(1)
    rows = np.array([random_assignment(evaluator, rng) for _ in range(20)])
    steps, peaks = evaluator.many(rows)
    assert steps.shape == (20,) and peaks.shape == (20, 2)
    for row, step, peak in zip(rows, steps, peaks, strict=True):
        one = evaluator(row)
        assert (one.step_ns, one.peak_bytes.tolist()) == (step, peak.tolist())
        assert evaluator.step_ns(row) == step
        placement = evaluator.place(row)
        assert placement.operators["device"].tolist() == row.tolist()
        if one.fits:
            assert placement.step_ns == step
            assert placement.peak_bytes.tolist() == peak.tolist()


def test_a_placer_s_answer_is_worth_what_it_says():
    graph = random_graph(seed=3, operators=50)
    placement = baechi.place(graph, MACHINE, "metf", budget=0)
    found = baechi.Evaluator(graph, MACHINE)
    order = np.argsort(placement.operators["start"], kind="stable")
    assert found.step_ns(placement.operators["device"], order) <= placement.step_ns * 1.1
    assert found.step_ns(placement.operators["device"]) >= placement.lower_bound_ns


def test_the_order_decides():
    graph = baechi.Graph()
    a = graph.add("a", 10, outputs=[10])
    graph.add("b", 1000, inputs=[a])
    c = graph.add("c", 1000, outputs=[10], inputs=[a])
    graph.add("d", 1000, inputs=[c])
    evaluator = baechi.Evaluator(graph, MACHINE)
    assert evaluator.step_ns([0, 0, 0, 1], order=["a", "b", "c", "d"]) == 3030
    assert evaluator.step_ns([0, 0, 0, 1], order=[0, 2, 1, 3]) == 2030
    assert evaluator.step_ns([0, 0, 0, 1]) == 2030
    assert evaluator.step_ns(["gpu0", "gpu0", "gpu0", "gpu1"]) == 2030


def test_what_may_be_where():
    graph = diamond()
    graph.ops[1].group = graph.ops[2].group = "both"
    graph.ops[3].pin = "gpu1"
    evaluator = baechi.Evaluator(graph, MACHINE)
    assert evaluator.units[1] == evaluator.units[2]
    assert len(set(evaluator.units.tolist())) == 3
    assert evaluator.allowed.dtype == bool
    assert evaluator.allowed[evaluator.units[3]].tolist() == [False, True]
    assert evaluator.allowed[evaluator.units[0]].tolist() == [True, True]
    for wrong, message in (
        ([0, 0, 1, 1], "an operator group needs one device"),
        ([0, 0, 0, 0], "operator 3 'd' is pinned to gpu1 and cannot be on gpu0"),
        ([0, 0, 0], "the assignment has 3 entries and the graph 4 operators"),
        ([0, 0, 0, 2], "there is no device 2"),
        ({"a": "gpu0"}, "names no device for the operator 'b'"),
        (dict.fromkeys("abcd", "tpu"), "there is no device 'tpu': they are gpu0, gpu1"),
        (["gpu0", "gpu7", "gpu0", "gpu1"], "there is no device 'gpu7': they are gpu0, gpu1"),
    ):
        with pytest.raises(baechi.PlacementError, match=message):
            evaluator(wrong)
    with pytest.raises(baechi.PlacementError, match="row 1: operator 3"):
        evaluator.many([[0, 0, 0, 1], [0, 0, 0, 0]])
    with pytest.raises(ValueError, match=r"shape \(1, 3\): \[n, 4\]"):
        evaluator.many([[0, 0, 0]])
    with pytest.raises(TypeError, match="float64"):
        evaluator([0.5, 0.5, 0.5, 0.5])
    with pytest.raises(TypeError, match="float64"):
        evaluator.many([[0.5, 0.5, 0.5, 0.5]])
    # No number becomes another one silently.
    for wrong in ([2**32, 0, 0, 1], [0, 0, 0, 1 - 2**32]):
        with pytest.raises(baechi.PlacementError, match="no 32-bit integer"):
            evaluator(wrong)
    with pytest.raises(baechi.PlacementError, match="the order has 0 entries and the graph 4"):
        evaluator([0, 0, 0, 1], order=[])
    with pytest.raises(baechi.PlacementError, match="there is no operator 'e'"):
        evaluator([0, 0, 0, 1], order=["a", "b", "c", "e"])


def test_memory_limits():
    graph = baechi.Graph()
    for name in "ab":
        read = graph.add(name, 10, outputs=[6000])
        graph.add(f"use {name}", 1000, inputs=[read])
    evaluator = baechi.Evaluator(graph, MACHINE)
    found = evaluator([0, 1, 0, 1])
    assert found.peak_bytes[1] == 12000 and not found.fits
    placement = evaluator.place([0, 1, 0, 1])
    assert placement.peak_bytes[1] == 6000
    assert placement.step_ns > found.step_ns
    machine = MACHINE | {"devices": [d | {"memory": 5999} for d in MACHINE["devices"]]}
    with pytest.raises(baechi.PlacementError, match="no order was found in which the assignment"):
        baechi.Evaluator(graph, machine).place([0, 0, 0, 0])


def test_relays_where_there_is_no_link():
    graph = baechi.Graph()
    read = graph.add("read", 5, outputs=[100])
    graph.add("use", 7, inputs=[read])
    machine = {
        "format": "baechi-machine",
        "version": 1,
        "link_model": "unlimited",
        "devices": [{"name": name, "kind": "gpu", "memory": 1000} for name in "ABC"],
        "links": [
            {"from": "A", "to": "B", "latency_ns": 10, "bytes_per_us": 100},
            {"from": "B", "to": "C", "latency_ns": 10, "bytes_per_us": 100},
        ],
    }
    evaluator = baechi.Evaluator(graph, machine)
    relayed = evaluator(["A", "C"])
    assert relayed.step_ns == 5 + 1010 + 1010 + 7 and relayed.fits and not relayed.problem
    assert relayed.peak_bytes.tolist() == [100, 100, 100]
    assert evaluator.place(["A", "C"]).step_ns == relayed.step_ns
    graph.ops[0].pin, graph.ops[1].pin = "A", "C"
    assert baechi.place(graph, machine).step_ns == relayed.step_ns

    # The way back does not exist: that row alone does not fit.
    why = "'read' on C and operator 1 'use' on A, which reads it, have no link"
    back = evaluator(["C", "A"])
    assert not back.fits and why in back.problem
    found = evaluator.many([[0, 2], [2, 0], [1, 1]])
    assert found.fits.tolist() == [True, False, True]
    assert list(found.problems) == [1] and why in found.problems[1]
    steps, peaks = found
    assert steps[0] == relayed.step_ns and steps[2] == 12
    assert peaks[0].tolist() == relayed.peak_bytes.tolist()
    assert steps.argmax() == 1
    for call in (evaluator.step_ns, evaluator.place):
        with pytest.raises(baechi.PlacementError, match="have no link"):
            call(["C", "A"])


def test_threads_may_share_one():
    evaluator = baechi.Evaluator(random_graph(seed=7, operators=80), MACHINE)
    rng = np.random.default_rng(2)
    rows = np.array([random_assignment(evaluator, rng) for _ in range(200)])
    expected, _ = evaluator.many(rows)
    found = np.zeros((2, len(rows)), np.int64)

    def work(k):
        for i, row in enumerate(rows):
            found[k, i] = evaluator(row).step_ns

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found == expected).all()
