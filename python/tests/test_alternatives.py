# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graph files with alternatives by baechi-place, replayed by the oracle, which expands them by
itself."""

import json
import pathlib
import random
import subprocess
import sys

import pytest

import needs
from baechi.compiling import tools

pytestmark = needs.tool("baechi-place")
ORACLE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "oracle"


def _sizes(rng, extent, slices):
    cuts = sorted(rng.sample(range(1, extent), slices - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, extent])]


def _cut(rng, shape, pieces):
    """A random layout, or none."""
    if not shape or rng.random() < 0.3:
        return {}
    along = rng.randrange(len(shape))
    cut = {"along": along}
    slices = rng.choice([n for n in range(1, pieces + 1) if pieces % n == 0])
    if slices > shape[along] or shape[along] < pieces or rng.random() < 0.7:
        cut["sizes"] = _sizes(rng, shape[along], min(slices, shape[along]))
        if pieces % len(cut["sizes"]):
            cut["sizes"] = [shape[along]]
    return cut


def _alternative(rng, name, op, reads):
    pieces = rng.choice([1, 2, 2, 3, 4])
    made = []
    for output in op["outputs"]:
        if rng.random() < 0.25:
            made.append({"partial": True})
        else:
            made.append(_cut(rng, output["shape"], pieces))
        if rng.random() < 0.2:
            made[-1]["extra"] = rng.randrange(1, 50)
    found = {
        "name": name,
        "pieces": [
            {
                "time_ns": rng.choice([rng.randrange(40), {"cpu": rng.randrange(40)}]),
                "scratch": rng.randrange(30),
                "resident": rng.randrange(30),
            }
            for _ in range(pieces)
        ],
        "outputs": made,
        "inputs": [
            {"from": f, "output": o, **_cut(rng, shape, pieces)}
            for f, o, shape in reads
            if rng.random() < 0.8
        ],
        "sum_ns": rng.randrange(10),
    }
    for read in found["inputs"]:
        if rng.random() < 0.2:
            read["extra"] = rng.randrange(1, 50)
    if pieces % 2 == 0 and rng.random() < 0.3:
        found |= {"replicas": 2, "exchange": rng.randrange(1, 100)}
    return found


def _graph(rng):
    ops, edges = [], []
    for i in range(rng.randrange(2, 8)):
        outputs = [
            {
                "bytes": rng.randrange(1, 500),
                "memory": rng.randrange(500),
                "copy": rng.randrange(500),
                "shape": [rng.randrange(2, 9) for _ in range(rng.randrange(3))],
            }
            for _ in range(rng.randrange(3))
        ]
        op = {"id": i, "name": f"op{i}", "time_ns": rng.randrange(100), "outputs": outputs}
        op["result"] = rng.random() < 0.2
        if rng.random() < 0.1:
            op["group"] = f"own{i}"
        made = [(j, o) for j in range(i) for o in range(len(ops[j]["outputs"]))]
        picked = rng.sample(made, min(len(made), rng.randrange(4)))
        edges += [{"from": j, "output": o, "to": i} for j, o in picked]
        if i and rng.random() < 0.2:
            edges.append({"from": rng.randrange(i), "to": i})
        reads = [(j, o, ops[j]["outputs"][o]["shape"]) for j, o in picked]
        op["alternatives"] = [
            _alternative(rng, f"way{k}", op, reads) for k in range(rng.randrange(3))
        ]
        ops.append(op)
    return {"format": "baechi-graph", "version": 1, "ops": ops, "edges": edges}


def _machine(rng):
    return {
        "format": "baechi-machine",
        "version": 1,
        "devices": [{"name": f"d{d}", "kind": "cpu", "memory": 10**6} for d in range(3)],
        "link_default": {"latency_ns": rng.randrange(10), "bytes_per_us": 5000},
        "link_model": rng.choice(["sequential", "duplex", "parallel", "unlimited"]),
    }


def _place(folder, *options):
    words = [tools.find("baechi-place"), folder / "g.json", folder / "m.json", *options]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)


def _replayed(folder):
    words = [sys.executable, ORACLE / "check_placement.py"]
    words += [folder / name for name in ("g.json", "m.json", "p.json")]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.parametrize("seed", range(40))
def test_the_oracle_expands_and_replays_whatever_was_chosen(tmp_path, seed):
    rng = random.Random(seed)
    graph = _graph(rng)
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (tmp_path / "m.json").write_text(json.dumps(_machine(rng)))
    # Ways that no planner would choose are expanded alike.
    choices = [
        {"id": op["id"], "alternative": rng.choice(op["alternatives"])["name"]}
        for op in graph["ops"]
        if op["alternatives"] and rng.random() < 0.8
    ]
    (tmp_path / "c.json").write_text(
        json.dumps({"format": "baechi-placement", "version": 1, "choices": choices})
    )
    for given in (tmp_path / "c.json", "auto", "none"):
        done = _place(
            tmp_path, f"--alternatives={given}", "--budget=0", f"--output={tmp_path / 'p.json'}"
        )
        assert done.returncode == 0, done.stderr
        assert _replayed(tmp_path) == ""
        # And what was written is read back.
        again = _place(tmp_path, f"--placement={tmp_path / 'p.json'}")
        assert again.returncode == 0, again.stderr


def test_the_oracle_refuses_a_piece_that_has_not_what_it_reads(tmp_path):
    graph = {
        "format": "baechi-graph",
        "version": 1,
        "ops": [
            {
                "id": 0,
                "name": "a",
                "time_ns": 100,
                "outputs": [{"bytes": 80, "shape": [4]}],
                "alternatives": [
                    {
                        "name": "two",
                        "pieces": [{"time_ns": 50}, {"time_ns": 50}],
                        "outputs": [{"along": 0}],
                    }
                ],
            },
            {"id": 1, "name": "b", "time_ns": 1, "outputs": []},
        ],
        "edges": [{"from": 0, "output": 0, "to": 1}],
    }
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (tmp_path / "m.json").write_text(json.dumps(_machine(random.Random(0))))
    done = _place(tmp_path, f"--output={tmp_path / 'p.json'}")
    assert done.returncode == 0, done.stderr
    assert "two: 1 operators in 2 pieces: a" in done.stdout
    assert _replayed(tmp_path) == ""
    placement = json.loads((tmp_path / "p.json").read_text())
    assert placement["choices"] == [{"id": 0, "alternative": "two"}]
    assert [op["name"] for op in placement["ops"]] == ["a#0", "a#1", "b"]
    placement["transfers"] = []
    (tmp_path / "p.json").write_text(json.dumps(placement))
    assert "tensor never moved" in _replayed(tmp_path)


def _piper_node(number, before, after):
    def way(name, degree, time, kept):
        return {
            "id": name,
            "timePerSample": time / degree,
            "parameterSize": 4e6 / degree,
            "memoryUsageA": kept / degree,
            "memoryUsageB": 1e6,
            "syncTimeFw": {str(other): 500.0 * (degree - 1) for other in before},
            "syncTimeBw": {str(other): 700.0 * (degree - 1) for other in after},
        }

    degrees = {
        str(t): [way("vanilla", t, 1e-3, 2e6), way("activation recomp", t, 1.3e-3, 1e5)]
        for t in (1, 2)
    }
    return {"id": number, "name": "layer", "TMPCs": degrees}


def test_inputs_of_piper_are_graphs_with_alternatives(tmp_path):
    given = {
        "maxMemoryPerDevice": 2e7,
        "maxDevices": 4,
        "bandwidth": 1e9,
        "mbsInBatch": 8,
        "nodes": [_piper_node(7, [], [9]), _piper_node(9, [7], [])],
        "edges": [{"sourceId": 7, "destId": 9, "communicationCost": 1000.0}],
    }
    (tmp_path / "piper.json").write_text(json.dumps(given))
    words = [sys.executable, ORACLE / "piper_to_graph.py"]
    words += [tmp_path / name for name in ("piper.json", "g.json", "m.json")]
    subprocess.run(list(map(str, words)), check=True)
    graph = json.loads((tmp_path / "g.json").read_text())
    first, second = graph["ops"]
    names = [way["name"] for way in first["alternatives"]]
    assert names == [
        "t1 d1 again",
        *("t1 d2", "t1 d2 again", "t1 d4", "t1 d4 again"),
        *("t2 d1", "t2 d1 again", "t2 d2", "t2 d2 again"),
    ]
    # Four micro-batches in flight, all of them at each of one replica's devices.
    assert first["resident"] == 9_000_000
    way = second["alternatives"][names.index("t2 d2")]
    assert way["pieces"] == [{"time_ns": {"accelerator": 250_000}, "resident": 3_000_000}] * 4
    assert way["inputs"] == [{"from": 0, "output": 0, "along": 0, "sizes": [2, 2], "extra": 500}]
    assert (way["replicas"], way["exchange"]) == (2, 250_000)
    made = first["alternatives"][names.index("t2 d1")]["outputs"]
    assert made == [{"extra": 1400}]
    assert first["outputs"][0]["bytes"] == 2000
    done = _place(tmp_path, "--objective=max-load", f"--output={tmp_path / 'p.json'}")
    assert done.returncode == 0, done.stderr
    assert _replayed(tmp_path) == ""
    placement = json.loads((tmp_path / "p.json").read_text())
    # Nothing computes where transfers are only staged through.
    assert {op["device"] for op in placement["ops"]} <= {f"acc{d}" for d in range(4)}
    # The second layer has half of the work behind it, so half of the devices.
    subprocess.run([*map(str, words), "--in-flight=work"], check=True)
    first, second = json.loads((tmp_path / "g.json").read_text())["ops"]
    assert (first["resident"], second["resident"]) == (9_000_000, 5_000_000)
