# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""baechi.learned: placers that learn, against random choices, the judge and the oracle."""

import functools
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed; run scripts/python-env")

import baechi  # noqa: E402
from baechi import learned  # noqa: E402
from baechi.learned import features, placeto  # noqa: E402
from baechi.learned.trials import Trials  # noqa: E402
from problems import MACHINE, diamond, random_graph  # noqa: E402

ORACLE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "oracle" / "check_placement.py"
METHODS = [name for name in learned.METHODS if name != "random"]
every_method = pytest.mark.parametrize("method", METHODS)
EVALUATIONS = 480
SEEDS = {
    "random": 0,
    "colocrl": 0,
    "hierarchical": 0,
    "placeto": 2,
    "placeto-ends": 1,
    "trained": 0,
}


def towers(resident=0):
    """Two chains of eight operators that share nothing; what they hand on is slow to send.
    The best puts a chain on each device: 8 us."""
    graph = baechi.Graph()
    for i in range(16):
        name, read = f"t{i // 8}/l{i % 8}", [i - 1] if i % 8 else []
        graph.add(name, 1000, inputs=read, outputs=[100], resident=resident)
    return graph


MACHINE_OF_TOWERS = MACHINE | {"link_default": {"latency_ns": 900, "bytes_per_us": 1000}}


@functools.cache
def on_towers(method):
    """Trained once, looked at by several tests."""
    told = []
    return train(method, progress=told.append), told


def train(method, **options):
    options = {"evaluations": EVALUATIONS, "seed": SEEDS[method]} | options
    return learned.learn(towers(), MACHINE_OF_TOWERS, method, **options)


@every_method
def test_beats_random_choices_at_equal_evaluations(method):
    found, _ = on_towers(method)
    random, _ = on_towers("random")
    assert found.evaluations == random.evaluations == EVALUATIONS
    assert 8000 <= found.placement.step_ns < random.placement.step_ns


@pytest.mark.parametrize("method", learned.METHODS)
def test_the_curve_and_what_is_told(method):
    found, told = on_towers(method)
    curve = found.curve
    assert curve.dtype == learned.POINT
    for field in ("evaluations", "seconds"):
        assert (np.diff(curve[field]) >= 0).all()
    assert (np.diff(curve["best_ns"]) <= 0).all() and (np.diff(curve["best_ns"])[:-1] < 0).all()
    assert curve["best_ns"][-1] == found.placement.step_ns
    assert curve["evaluations"][-1] == EVALUATIONS and found.groups == 16
    assert told[-1].startswith(f"{learned.TITLES[method]}: {EVALUATIONS} of {EVALUATIONS} eval")
    assert f"best {found.placement.step_ns / 1e6:.3f} ms" in told[-1]


@every_method
def test_the_same_seed_gives_the_same_curve(method):
    found, _ = on_towers(method)
    again = train(method)
    other = train(method, seed=1 + SEEDS[method])
    for field in ("evaluations", "best_ns"):
        assert again.curve[field].tolist() == found.curve[field].tolist()
    assert again.placement.assignment == found.placement.assignment
    assert other.curve.tolist() != found.curve.tolist()


@pytest.mark.parametrize(
    "method, evaluations", [("placeto", 16), ("placeto-ends", 1)], ids=["decisions", "ends"]
)
def test_what_an_episode_of_placeto_costs(method, evaluations, monkeypatch):
    """Each update is of four episodes over 16 groups; four evaluations are of the first ones."""
    updates, update = [], placeto._update

    def count(params, state, seen, before, actions, better):
        assert before.shape == (16, 4, 16) and actions.shape == better.shape == (16, 4)
        # An end is credited to all decisions alike.
        assert (np.ptp(better, axis=0) == 0).all() == (method == "placeto-ends")
        updates.append(1)
        return update(params, state, seen, before, actions, better)

    monkeypatch.setattr(placeto, "_update", count)
    train(method, evaluations=4 + 3 * 4 * evaluations + 1)
    assert len(updates) == 3


@every_method
def test_pins_groups_and_limits_hold(method, tmp_path):
    """One device cannot hold both towers' parameters, and a pin and a group constrain them."""
    graph = towers(resident=900)
    graph.ops[3].pin = "gpu1"
    graph.add("end", 10, group="ends")
    graph.ops[8].group = "ends"
    machine = MACHINE_OF_TOWERS | {
        "devices": [{"name": f"gpu{i}", "kind": "cuda", "memory": 8200} for i in range(2)]
    }
    found = learned.learn(graph, machine, method, evaluations=EVALUATIONS)
    placement = found.placement
    assert found.groups == 16 and placement.winner == method
    assert placement.assignment["t0/l3"] == "gpu1"
    assert placement.assignment["t1/l0"] == placement.assignment["end"]
    assert (placement.peak_bytes <= 8200).all()

    placement.save(tmp_path / "placement.json")
    for name, content in (("graph", graph.to_dict()), ("machine", machine)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = [tmp_path / f"{name}.json" for name in ("graph", "machine", "placement")]
    done = subprocess.run([sys.executable, ORACLE, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert baechi.judge(graph, machine, files[2]).step_ns == placement.step_ns


@every_method
def test_nothing_fits(method):
    graph = towers(resident=2000)  # four or five of sixteen on a device
    with pytest.raises(baechi.PlacementError) as raised:
        learned.learn(graph, MACHINE_OF_TOWERS, method, evaluations=20)
    title = learned.TITLES[method]
    assert str(raised.value).startswith(
        f"{title} found no placement within the memory limits in 20 evaluations (in the closest"
    )
    assert "bytes above its limit" in str(raised.value)


def test_what_fits_only_when_it_waits():
    """No order of urgency fits by itself; with waiting for memory one does."""
    graph = baechi.Graph()
    for name in "ab":
        read = graph.add(name, 10, outputs=[6000])
        graph.add(f"use {name}", 1000, inputs=[read])
    machine = MACHINE | {"devices": MACHINE["devices"][:1]}
    found = learned.learn(graph, machine, "random", evaluations=5)
    assert found.placement.peak_bytes.tolist() == [6000]
    assert found.curve.tolist()[0][::2] == (5, found.placement.step_ns) and len(found.curve) == 1


def test_devices_that_cannot_talk():
    machine = {key: value for key, value in MACHINE.items() if key != "link_default"}
    found = learned.learn(diamond(), machine, "random", evaluations=100)
    assert found.placement.step_ns == 2020


def test_more_devices_than_operators_and_unlike_ones():
    devices = [{"name": f"d{i}", "kind": f"k{i}", "memory": 10_000} for i in range(6)]
    graph = baechi.Graph()
    graph.add("a", {f"k{i}": 100 + i for i in range(1, 6)})
    found = learned.learn(graph, MACHINE | {"devices": devices}, "random", evaluations=40)
    assert found.placement.assignment == {"a": "d1"}


def view_of(graph, grouping, machine=MACHINE):
    evaluator = baechi.Evaluator(graph, machine)
    return evaluator, features.view(graph, machine, evaluator, grouping)


def test_groups_keep_units_and_follow_the_order():
    graph = random_graph(seed=3, operators=300)
    for grouping, most in (("units", 300), ("coplace", 256), ("auto", 256)):
        evaluator, view = view_of(graph, grouping)
        units = len(evaluator.allowed)
        assert view.count == len(view.features) == len(view.allowed) <= min(units, most)
        assert (view.count == units) == (grouping == "units")
        for unit in range(units):
            assert len(set(view.of_operator[evaluator.units == unit])) == 1
        assert np.isfinite(view.features).all() and np.abs(view.features).max() < 100
        assert (view.edges[:, 0] != view.edges[:, 1]).all()
    chain = baechi.Graph()
    for i in range(5):
        chain.add(f"op{i}", 10, inputs=[i - 1] if i else [], outputs=[8])
    chain.ops[2].time_ns = 0
    _, view = view_of(chain, "auto")
    assert view.of_operator.tolist() == [0, 1, 2, 3, 4]
    assert (view.adjacency() > 0).astype(int).tolist() == np.eye(5, k=1, dtype=int).tolist()
    assert view.work_ns == 40 and np.isfinite(view.features).all()


def test_costs_punish_what_is_over_a_limit():
    graph = towers(resident=900)
    evaluator, view = view_of(graph, "units", MACHINE_OF_TOWERS)
    trials = Trials(evaluator, view, 3, "x", lambda text: None)
    rows = np.zeros((4, 16), np.int32)
    rows[:, view.of_operator] = [[0] * 16, [0] * 8 + [1] * 8, [0] * 12 + [1] * 4, [1] * 16]
    alone, half, most, *rest = trials.costs(rows)
    assert not rest and trials.left == 0  # the fourth was above the budget
    assert half == pytest.approx((8000 / 16000) ** 0.5)
    assert alone > most > 1 + half
    assert trials.best_ns == 8000


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ({"method": "ppo"}, ValueError, "unknown method 'ppo': use one of colocrl, hierarchical"),
        ({"evaluations": 0}, ValueError, "evaluations: an integer from 1 to 2.31 - 1 is wanted"),
        ({"evaluations": 1.5}, ValueError, "evaluations: an integer"),
        ({"evaluations": True}, ValueError, "evaluations: an integer"),
        ({"seed": -1}, ValueError, "seed: an integer from 0"),
        ({"grouping": "fuse"}, ValueError, "unknown grouping 'fuse': use one of auto, units"),
        ({"policy": "p.npz"}, ValueError, "policy: 'colocrl' begins with none; leave it out"),
        ({"progress": 3}, TypeError, "progress: a function of a text is wanted"),
        ({"machine": MACHINE | {"devices": []}}, ValueError, "device"),
        ({"graph": {"ops": 3}}, ValueError, "graph"),
        ({"graph": baechi.Graph()}, ValueError, "graph: it has no operators"),
    ],
)
def test_errors(wrong, error, message):
    with pytest.raises(error, match=message):
        learned.learn(**({"graph": diamond(), "machine": MACHINE} | wrong))


def test_an_error_of_the_progress_function_comes_through():
    def progress(text):
        raise RuntimeError(text)

    with pytest.raises(RuntimeError, match="random: 5 of 5"):
        learned.learn(diamond(), MACHINE, "random", evaluations=5, progress=progress)
