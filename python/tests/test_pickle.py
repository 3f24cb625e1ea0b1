# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results and errors go between processes: pickle, copy, multiprocessing."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import baechi
from baechi.compiling.tools import Message
from baechi.graphs.native import _placement
from baechi.importer.common.errors import Unsupported, UnsupportedOperations
from problems import MACHINE, diamond, random_graph

KINDS = ["placement", "report", "trace", "page", "dot"]


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def assert_same(found, expected, folder):
    for kind in KINDS:
        files = [folder / f"{kind}{i}" for i in range(2)]
        for file, each in zip(files, (found, expected), strict=True):
            each.save(file, kind)
        assert files[0].read_bytes() == files[1].read_bytes(), kind
    assert str(found) == str(expected) and repr(found) == repr(expected)
    for field in ("operators", "transfers"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    for levels, wanted in zip(found.memory, expected.memory, strict=True):
        np.testing.assert_array_equal(levels, wanted)
    assert found.explain() == expected.explain()


@pytest.mark.parametrize("go", [through_pickle, copy.deepcopy, copy.copy])
def test_a_placement(go, tmp_path):
    """With every option that a result keeps, on a graph with transfers and notes."""
    graph = random_graph(seed=3, operators=40)
    machine = {**MACHINE, "devices": [{**d, "memory": 10**9} for d in MACHINE["devices"]]}
    options = {"budget": "50e", "seed": 7, "objective": "max-load"}
    options |= {"placer": "expert", "expert": {".*": "gpu1"}}
    for given in ({}, options):
        placement = baechi.place(graph, machine, **given)
        assert_same(go(placement), placement, tmp_path)


def test_a_judged_placement(tmp_path):
    baechi.place(diamond(), MACHINE).save(tmp_path / "given")
    judged = baechi.judge(diamond(), MACHINE, tmp_path / "given")
    assert_same(through_pickle(judged), judged, tmp_path)


def test_a_comparison():
    compared = baechi.compare(diamond(), MACHINE)
    again = through_pickle(compared)
    assert str(again) == str(compared) and again.rows == compared.rows


def test_an_evaluator():
    evaluator = baechi.Evaluator(diamond(), MACHINE)
    again = through_pickle(evaluator)
    devices = [0, 0, 1, 0]
    assert again.step_ns(devices) == evaluator.step_ns(devices)
    assert again.names == evaluator.names


def _placed(graph):
    return baechi.place(graph, MACHINE)


def test_processes_give_placements():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.map(_placed, [diamond()])
    assert found.report["makespan_ns"] == _placed(diamond()).report["makespan_ns"]


def test_a_damaged_one_is_refused():
    placement = baechi.place(diamond(), MACHINE)
    problem, placed, *rest = placement._result.__getstate__()
    broken = _placement.Result.__new__(_placement.Result)
    with pytest.raises(baechi.PlacementError, match="pickle"):
        broken.__setstate__((problem, placed.replace('"gpu0"', '"gpu7"'), *rest))


@pytest.mark.parametrize(
    "error",
    [
        baechi.StepError("device host1 failed"),
        baechi.CompileError("no", [Message("error", "m.py:1:2", "no")]),
        baechi.CheckError("wrong", "loss", 0.5, 1e-5, "mul", "m.py:3"),
        baechi.PlacementError("does not fit"),
        UnsupportedOperations([Unsupported("stablehlo.fft", "f/fft", "m.py:1:2")], "guide", ["x"]),
    ],
)
def test_errors(error):
    again = through_pickle(error)
    assert type(again) is type(error) and str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_compiled_step_says_why_not():
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match="holds threads and devices' memory"):
        pickle.dumps(baechi.jit(lambda x: jax.numpy.sin(x)))
