# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The policy that is trained once: on graphs that it has not seen, against random choices and
all on one device; its training, its file, and what it sees; and the graphs of cells."""

import random

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed; run scripts/python-env")

import baechi  # noqa: E402
from baechi import learned  # noqa: E402
from baechi.learned import __main__ as command  # noqa: E402
from baechi.learned import features, nasnet, policy, pretraining, scene, training_set  # noqa: E402
from baechi.learned.backward import add_backward  # noqa: E402
from problems import MACHINE, random_graph  # noqa: E402

GPU = nasnet.Device(10_000, 448, 5_000)
LINKS = {"link_default": {"latency_ns": 20_000, "bytes_per_us": 12_000}}
UNSEEN = (
    MACHINE
    | LINKS
    | {"devices": [{"name": f"gpu{i}", "kind": "cuda", "memory": 2**40} for i in range(3)]}
)


def scene_of(graph, machine=UNSEEN, grouping="auto"):
    evaluator = baechi.Evaluator(graph, machine)
    view = features.view(graph, machine, evaluator, grouping)
    return evaluator, view, scene.scene(graph, machine, view)


@pytest.mark.parametrize("seed", [101, 103, 106])
def test_unseen_cells_are_placed_without_training(seed):
    """The first walk is no worse than the best device, and with others better than it and than
    ten times as many random placements."""
    graph = nasnet.searched(GPU, seed, batch=64)
    first = learned.learn(graph, UNSEEN, "trained", evaluations=1)
    found = learned.learn(graph, UNSEEN, "trained", evaluations=50)
    chance = learned.learn(graph, UNSEEN, "random", evaluations=500)
    alone = baechi.place(graph, UNSEEN, "single").single_device_ns
    assert (first.evaluations, found.evaluations) == (1, 50)
    assert first.placement.step_ns <= alone
    assert found.placement.step_ns < alone
    assert found.placement.step_ns < chance.placement.step_ns


def test_graphs_that_training_sees_are_others():
    """Seeds that the experiments and these tests use are not drawn for training."""
    made = [p.graph.to_dict() for p in training_set.problems(0, pretraining.PROBLEMS)]
    for seed in (1, 2, 101, 102):
        assert nasnet.searched(GPU, seed).to_dict() not in made
    assert nasnet.nasnet_a(GPU).to_dict() not in made


def test_problems_are_of_all_kinds_and_valid():
    found = training_set.problems(5, 12)
    assert found[:4] == training_set.problems(5, 4)
    assert found != training_set.problems(6, 12)
    assert len({problem.name.rstrip("0123456789") for problem in found}) == 4
    for problem in found:
        for device in problem.machine.devices:
            device.memory = 2**40
        placement = baechi.place(problem.graph, problem.machine, "metf", budget=0)
        assert placement.step_ns >= placement.lower_bound_ns > 0


def test_training_is_deterministic_and_learns(tmp_path):
    """On one problem some rounds make the first walk better than that of no training."""
    chosen = training_set.problems(3, 4)[3:]
    once, again = (pretraining.train(1, rounds=2, chosen=chosen) for _ in range(2))
    for name, value in policy._flat(once).items():
        assert np.array_equal(value, policy._flat(again)[name]), name
    steps = []
    for rounds in (0, 40):
        file = tmp_path / f"{rounds}.npz"
        policy.save(pretraining.train(1, rounds=rounds, chosen=chosen), file)
        _, graph, machine = chosen[0]
        found = learned.learn(graph, machine, "trained", evaluations=1, policy=file)
        steps.append(found.placement.step_ns)
    assert steps[1] < steps[0]


def test_the_file_of_a_policy(tmp_path, capsys):
    file = tmp_path / "policy.npz"
    assert command.main([f"--output={file}", "--seed=1", "--rounds=0"]) == 0
    assert command.main([f"--output={tmp_path / 'again.npz'}", "--seed=1", "--rounds=0"]) == 0
    assert file.read_bytes() == (tmp_path / "again.npz").read_bytes()
    read = policy.load(file)
    written = policy.init(np.random.default_rng(1))
    assert all(np.array_equal(a, policy._flat(written)[n]) for n, a in policy._flat(read).items())

    (tmp_path / "no.npz").write_bytes(b"no")
    with pytest.raises(ValueError, match="no.npz: no policy can be read from it"):
        policy.load(tmp_path / "no.npz")
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    with pytest.raises(ValueError, match="not the parameters of this version's policy: train it"):
        policy.load(tmp_path / "other.npz")
    assert command.main([f"--output={tmp_path / 'none' / 'p.npz'}", "--rounds=0"]) == 1
    assert "No such file or directory" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([f"--output={file}", "--seed=x"])


def test_no_problem_that_can_be_trained_on():
    with pytest.raises(ValueError, match="problems: none has at most 48 groups, 4 devices"):
        graph = baechi.Graph()
        graph.add("alone", 10)
        pretraining.train(0, rounds=1, chosen=[training_set.Problem("one", graph, UNSEEN)])


def test_what_a_policy_sees_is_in_shares():
    """All times, bytes and memories tenfold: the same scene. More devices: the same columns."""
    graph = random_graph(seed=4, operators=60)
    larger = {**graph, "ops": [dict(op) for op in graph["ops"]]}
    for op in larger["ops"]:
        op["time_ns"] *= 10
        op["resident"] = op.get("resident", 0) * 10
        op["outputs"] = [
            {key: value * 10 for key, value in output.items()}
            if isinstance(output, dict)
            else output * 10
            for output in op["outputs"]
        ]
    machine = MACHINE | {
        "devices": [{**device, "memory": device["memory"] * 10} for device in MACHINE["devices"]],
        "link_default": {"latency_ns": 100, "bytes_per_us": 1000},
    }
    _, view, one = scene_of(graph, MACHINE)
    _, _, ten = scene_of(larger, machine)
    for name in ("static", "times", "sends", "when", "held"):
        assert np.allclose(getattr(one, name), getattr(ten, name), atol=1e-5), name
    assert one.static.shape == (view.count, policy._STATIC)
    assert np.isclose(one.when.sum(), 1) and np.isclose(one.times[:, 0].sum(), 1)


def test_devices_are_treated_alike_and_padding_changes_nothing():
    """With devices renamed the chances are renamed; with groups and devices that stand for
    nothing they are the same."""
    graph = random_graph(seed=5, operators=40)
    _, view, seen = scene_of(graph)
    params = policy.shipped()
    rng = np.random.default_rng(0)
    placement = rng.integers(0, 3, view.count).astype(np.int32)
    for group in (0, view.count // 2, view.count - 1):
        chances = np.exp(policy.log_policy(params, policy.seen(seen), placement, group))
        turned = np.exp(policy.log_policy(params, policy.seen(seen), (placement + 1) % 3, group))
        assert np.allclose(np.roll(chances, 1), turned, atol=1e-5)
        wide = np.zeros(view.count + 5, np.int32)
        wide[: view.count] = placement
        padded = policy.seen(seen.padded(view.count + 5, 5))
        assert np.allclose(
            np.exp(policy.log_policy(params, padded, wide, group)), [*chances, 0, 0], atol=1e-5
        )


def test_nasnet_a_is_the_published_one():
    """Penultimate filters 1,056; about 5.3 million weights, as the paper's table 2 has them, with
    statistics of batch normalization and biases left out here."""
    graph = nasnet.nasnet_a(GPU)
    names = [op.name for op in graph.ops]
    assert len(set(names)) == len(names)
    concat = graph.ops[names.index("g2/cell3/concat")]
    assert concat.outputs == [32 * 7 * 7 * 1056 * 4]
    weights = sum(op.resident for op in graph.ops) / 2 / 4
    assert weights == pytest.approx(5.3e6, rel=0.03)
    forward = [op for op in graph.ops if not op.backward]
    assert len(graph.ops) - len(forward) == len(forward) - 1  # all but the images


def test_cells_of_a_search():
    cells = {nasnet.random_cell(random.Random(seed)) for seed in range(20)}
    assert len(cells) == 20
    for cell in cells:
        assert len(cell.blocks) == 5 and 6 in cell.joined
        for b, block in enumerate(cell.blocks):
            assert all(0 <= index < 2 + b for index, _ in block)
    assert nasnet.searched(GPU, 7).to_dict() == nasnet.searched(GPU, 7).to_dict()
    assert nasnet.searched(GPU, 7).to_dict() != nasnet.searched(GPU, 8).to_dict()
    assert nasnet.Device.of("cuda:10070:448:5000").time_ns(10070.0 * 7, 0) == 5007


def test_backward_operators_read_gradients():
    graph = baechi.Graph()
    a = graph.add("a", 5, outputs=[8])
    b = graph.add("b", 10, inputs=[a], outputs=[16], group="b")
    graph.add("c", 20, inputs=[a, b], outputs=[4])
    add_backward(graph)
    names = [op.name for op in graph.ops]
    assert names == ["a", "b", "c", "c/backward", "b/backward"]
    c, b = graph.ops[3:]
    assert (c.time_ns, c.outputs, c.forward, c.backward) == (40, [8, 16], 2, True)
    assert (b.time_ns, b.outputs, b.forward, b.group) == (20, [8], 1, "b")
    # c's begins with what c made; b's reads the gradient by b, c's second output.
    assert {e for e in graph.edges if e[2] == 3} == {(0, 0, 3), (1, 0, 3), (2, 0, 3)}
    assert {e for e in graph.edges if e[2] == 4} == {(0, 0, 4), (3, 1, 4)}
