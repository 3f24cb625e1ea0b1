# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""baechi.place and its neighbours, against the tool and the oracle."""

import json
import lzma
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import baechi
import needs
from baechi.compiling import tools
from problems import MACHINE, diamond, random_graph

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPH = ROOT / "data" / "graphs" / "inception_v3.json.xz"
LARGE_MACHINE = ROOT / "data" / "graphs" / "machine_4x8GiB.json"


def tool(*words):
    command = [str(word) for word in (tools.find("baechi-place"), *words)]
    return subprocess.run(command, capture_output=True, text=True)


def tool_error(*words):
    done = tool(*words)
    assert done.returncode == 1
    return done.stderr.removeprefix("baechi-place: error: ").rstrip("\n")


def without_seconds(report):
    return {key: value for key, value in report.items() if key != "phases"}


def test_is_what_the_tool_gives(tmp_path):
    files = {kind: tmp_path / f"tool.{kind}" for kind in ("json", "html", "dot", "report", "trace")}
    done = tool(
        *(GRAPH, LARGE_MACHINE, "--budget=200e", "-o", files["json"]),
        *(f"--html={files['html']}", f"--dot={files['dot']}", f"--json={files['report']}"),
        f"--trace={files['trace']}",
    )
    assert done.returncode == 0, done.stderr
    placement = baechi.place(GRAPH, LARGE_MACHINE, budget="200e")
    for kind, suffix in (("report", "report"), ("trace", "trace")):
        placement.save(tmp_path / f"python.{suffix}", kind)
    for suffix in ("json", "html", "dot"):
        placement.save(tmp_path / f"python.{suffix}")
    for suffix in ("json", "html", "dot", "trace"):
        assert (tmp_path / f"python.{suffix}").read_bytes() == files[suffix].read_bytes()
    assert without_seconds(placement.report) == without_seconds(
        json.loads(files["report"].read_text())
    )
    # The seconds of the phases differ.
    assert str(placement).split("\nphases\n")[0] in done.stdout


def test_the_oracle_accepts_what_arrays_say(tmp_path):
    graph = random_graph(seed=5, operators=60)
    placement = baechi.place(graph, MACHINE)
    operators, transfers = placement.operators, placement.transfers
    file = {
        "format": "baechi-placement",
        "version": 1,
        "algorithm": placement.winner,
        "makespan_ns": placement.step_ns,
        "lower_bound_ns": placement.lower_bound_ns,
        "ops": [
            {"id": i, "device": placement.devices[op["device"]], "start_ns": int(op["start"])}
            for i, op in enumerate(operators)
        ],
        "transfers": [
            {
                "op": int(t["operator"]),
                "output": int(t["output"]),
                "from": placement.devices[t["source"]],
                "to": placement.devices[t["target"]],
                "start_ns": int(t["start"]),
                "end_ns": int(t["finish"]),
            }
            for t in transfers
        ],
    }
    paths = [tmp_path / name for name in ("graph.json", "machine.json", "placement.json")]
    for path, content in zip(paths, (graph, MACHINE, file), strict=True):
        path.write_text(json.dumps(content))
    oracle = ROOT / "scripts" / "oracle" / "check_placement.py"
    done = subprocess.run([sys.executable, oracle, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # Times and bytes that the file does not have.
    assert (operators["finish"] - operators["start"]).tolist() == [
        op["time_ns"] for op in graph["ops"]
    ]
    ends = np.concatenate([operators["finish"], transfers["finish"]])
    assert ends.max() == placement.step_ns
    assert transfers["bytes"].tolist() == [
        graph["ops"][t["operator"]]["outputs"][t["output"]] for t in transfers
    ]
    for peak, limit, levels in zip(
        placement.peak_bytes, placement.memory_limit, placement.memory, strict=True
    ):
        assert levels["bytes"].max() == peak <= limit
        assert (np.diff(levels["time"]) > 0).all()
    assert baechi.judge(graph, MACHINE, file).step_ns == placement.step_ns


def test_objects_files_and_dictionaries_are_the_same(tmp_path):
    graph = diamond()
    machine = baechi.Machine(
        [baechi.Device(f"gpu{i}", "cuda", 10_000) for i in range(2)], baechi.Link(10, 1000)
    )
    file = tmp_path / "graph.json.xz"
    file.write_bytes(lzma.compress(json.dumps(graph.to_dict()).encode()))
    answers = [
        baechi.place(of, on)
        for of, on in ((graph, machine), (graph.to_dict(), machine.to_dict()), (file, machine))
    ]
    for answer in answers:
        assert answer.step_ns == 1040
        assert answer.names == ["a", "b", "c", "d"]
        assert set(answer.assignment.values()) == {"gpu0", "gpu1"}
        assert without_seconds(answer.report) == without_seconds(answers[0].report)


def test_fields_of_operators_and_machines():
    graph = baechi.Graph()
    a = graph.add("a", {"cuda": 5, "cpu": 50}, outputs=[baechi.Output(8, memory=0), 16], scratch=3)
    graph.add("b", np.int64(7), inputs=[(a, 1)], after=[a], pin="gpu1", result=True, resident=9)
    assert graph.to_dict()["ops"] == [
        {
            "id": 0,
            "name": "a",
            "time_ns": {"cuda": 5, "cpu": 50},
            "outputs": [{"bytes": 8, "memory": 0, "copy": 8}, 16],
            "scratch": 3,
        },
        {
            "id": 1,
            "name": "b",
            "time_ns": 7,
            "outputs": [],
            "resident": 9,
            "pin": "gpu1",
            "result": True,
        },
    ]
    assert graph.to_dict()["edges"] == [{"from": 0, "to": 1, "output": 1}, {"from": 0, "to": 1}]
    machine = baechi.Machine(
        [baechi.Device("gpu0", "cuda", 100), baechi.Device("gpu1", "cuda", 100)],
        links={("gpu0", "gpu1"): baechi.Link(3, 1000)},
        link_model="duplex",
    )
    placement = baechi.place(graph, machine)
    assert placement.assignment["b"] == "gpu1"


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda graph, machine: graph["ops"][1].pop("time_ns"), []),
        (lambda graph, machine: graph["ops"][1].update(time_ns=-1), []),
        (lambda graph, machine: graph["edges"].append({"from": 3, "output": 0, "to": 0}), []),
        (lambda graph, machine: machine["devices"][0].update(memory="much"), []),
        (lambda graph, machine: graph["ops"][2].update(resident=10**9), []),
        (lambda graph, machine: graph["ops"][2].update(pin="tpu"), []),
        (lambda graph, machine: None, ["--placer=best"]),
        (lambda graph, machine: None, ["--grouping=colocate,nothing"]),
        (lambda graph, machine: None, ["--budget=soon"]),
    ],
)
def test_errors_are_the_tools(tmp_path, monkeypatch, change, options):
    graph, machine = diamond().to_dict(), json.loads(json.dumps(MACHINE))
    change(graph, machine)
    monkeypatch.chdir(tmp_path)
    pathlib.Path("graph").write_text(json.dumps(graph))
    pathlib.Path("machine").write_text(json.dumps(machine))
    # What the tool's own options would do about it, Python does not say.
    expected = tool_error("graph", "machine", *options).split("\nit may fit")[0]
    given = dict(option.removeprefix("--").split("=") for option in options)
    if "grouping" in given:
        given["grouping"] = given["grouping"].split(",")
        expected = (
            expected.removeprefix("--grouping: ").split(":")[0].replace("step", "grouping step")
        )
    with pytest.raises(baechi.PlacementError) as raised:
        baechi.place(graph, machine, **given)
    assert expected.removeprefix("--") in str(raised.value)


def test_the_period_of_steps_that_overlap(tmp_path):
    ops = [{"id": i, "name": f"op{i}", "time_ns": 100, "outputs": [0]} for i in range(4)]
    edges = [{"from": i, "output": 0, "to": i + 1} for i in range(3)]
    graph = {"format": "baechi-graph", "version": 1, "ops": ops, "edges": edges}
    machine = {
        "format": "baechi-machine",
        "version": 1,
        "link_model": "sequential",
        "devices": [{"name": f"d{i}", "kind": "gpu", "memory": 1000} for i in range(2)],
        "link_default": {"latency_ns": 5, "bytes_per_us": 1000},
    }
    placed = baechi.place(graph, machine, objective="period")
    assert placed.period_ns == 205 and placed.step_ns == 405 and placed.lower_bound_ns == 200
    assert placed.report["objective"] == "period"
    assert placed.report["period"] == {"ns": 205, "steps": 1}
    assert pickle.loads(pickle.dumps(placed)).report == placed.report
    placed.save(tmp_path / "placement.json")
    given = tmp_path / "placement.json"
    assert baechi.judge(graph, machine, given, objective="period").period_ns == 205
    assert "period        0.000 ms predicted" in str(placed)
    assert baechi.place(graph, machine).period_ns is None
    with pytest.raises(baechi.PlacementError, match="reasons are of makespan or max-load"):
        placed.explain()


def test_errors_of_python():
    with pytest.raises(TypeError, match="machine: a dictionary, a path or a baechi.Machine"):
        baechi.place(diamond(), 3)
    with pytest.raises(TypeError, match="graph: not JSON data: object is no number"):
        baechi.place({"ops": object()}, MACHINE)
    with pytest.raises(baechi.PlacementError, match="nowhere.json: cannot read: No such file"):
        baechi.place("nowhere.json", MACHINE)
    with pytest.raises(baechi.PlacementError, match="'step': use makespan, max-load or period"):
        baechi.place(diamond(), MACHINE, objective="step")
    with pytest.raises(baechi.PlacementError, match="expert"):
        baechi.place(diamond(), MACHINE, "expert", expert={"a": "nowhere"})
    for wrong, error, message in (
        ({"placer": None}, TypeError, "placer: a name is wanted, not None"),
        ({"budget": None}, TypeError, "budget: a text or a number of seconds is wanted"),
        ({"budget": -1}, ValueError, "budget: unknown budget '-1'"),
        ({"seed": -1}, ValueError, "seed: an integer from 0 to 2"),
        ({"seed": 1.5}, ValueError, "seed: an integer from 0 to 2"),
        ({"expert": 3}, TypeError, "expert: patterns to devices, or a path, is wanted"),
        ({"progress": 3}, TypeError, "progress: a function of a phase's name is wanted"),
        ({"grouping": "nothing"}, ValueError, "unknown grouping step 'nothing'"),
    ):
        with pytest.raises(error, match=message):
            baechi.place(diamond(), MACHINE, **wrong)
    assert issubclass(baechi.PlacementError, ValueError)
    with pytest.raises(ValueError, match="kind 'png' is unknown"):
        baechi.place(diamond(), MACHINE).save("x", "png")


def test_expert_rules(tmp_path):
    rules = {"[ab]": "gpu1", ".*": "gpu0"}
    file = tmp_path / "rules"
    file.write_text("[ab] = gpu1\n.* = gpu0\n")
    for expert in (rules, file):
        placement = baechi.place(diamond(), MACHINE, "expert", budget=0, expert=expert)
        assert placement.assignment == {"a": "gpu1", "b": "gpu1", "c": "gpu0", "d": "gpu0"}


def test_comparison_is_the_tools():
    comparison = baechi.compare(diamond(), MACHINE, ["msct", "single", "default"])
    rows = {row["name"]: row for row in comparison.rows}
    assert set(rows) == {"msct", "single", "default"}
    assert rows["default"]["makespan_ns"] == 1040
    assert rows["single"]["makespan_ns"] == 2020
    assert comparison.best is not None
    assert str(comparison).splitlines()[0].split()[:2] == ["placer", "step"]
    with pytest.raises(baechi.PlacementError, match="unknown placer 'best'"):
        baechi.compare(diamond(), MACHINE, ["best"])


def test_reasons():
    placement = baechi.place(diamond(), MACHINE)
    assert "operator 1" in placement.explain("b") or "'b'" in placement.explain("b")
    (reason,) = placement.reasons("b")
    assert reason["name"] == "b"
    assert reason["device"] == placement.assignment["b"]
    assert [choice["device"] for choice in reason["devices"]] == placement.devices
    with pytest.raises(baechi.PlacementError, match="nobody"):
        placement.explain("nobody")


def test_other_threads_run_meanwhile():
    began, done = threading.Event(), threading.Event()

    def work():
        # The search ends after this many evaluations, whatever the lock does.
        baechi.place(GRAPH, LARGE_MACHINE, budget="300e", progress=lambda phase: began.set())
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    turns = 0
    while not done.is_set():
        turns += 1
        done.wait(0.001)
    thread.join()
    assert turns > 3


@pytest.fixture
def interruptible():
    """Processes that a shell starts in the background ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_control_c_ends_a_search(interruptible):
    phases = []

    def progress(phase):
        phases.append(phase)
        if phase == "search":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        baechi.place(GRAPH, LARGE_MACHINE, budget=60, progress=progress)
    assert phases[-1] == "search"


def test_an_error_of_the_progress_function_comes_through():
    def progress(phase):
        raise RuntimeError(f"in {phase}")

    with pytest.raises(RuntimeError, match="in bound"):
        baechi.place(diamond(), MACHINE, progress=progress)


@needs.tool("baechi-opt")
def test_a_wrong_short_form_of_a_machine():
    with pytest.raises(baechi.PlacementError, match="^machine 'host:0': '0' is not a number of"):
        baechi.place(baechi.Graph(), "host:0")
    with pytest.raises(baechi.PlacementError, match="did you mean 'host:2'"):
        baechi.place(diamond(), "host2")


def test_a_placer_that_is_near_is_suggested():
    with pytest.raises(baechi.PlacementError, match="'mstc' [(]did you mean 'msct'[?][)]"):
        baechi.place(diamond(), MACHINE, placer="mstc")


def test_a_small_budget_is_named_where_few_devices_are_linked():
    graph = baechi.Graph()
    a = graph.add("a", 70, outputs=[1], resident=60)
    b = graph.add("b", 78, outputs=[10], resident=60, inputs=[a])
    c = graph.add("c", 34, outputs=[1], resident=60, inputs=[a, b])
    graph.add("d", 51, outputs=[1], inputs=[a, c])
    pairs = [("gpu1", "gpu2"), ("gpu2", "gpu1"), ("gpu2", "gpu3")]
    machine = {
        **{key: MACHINE[key] for key in ("format", "version", "link_model")},
        "devices": [{"name": f"gpu{i}", "kind": "cuda", "memory": 150} for i in range(4)],
        "links": [{"from": a, "to": b, **MACHINE["link_default"]} for a, b in pairs],
    }
    said = (
        r"can all talk where they must with the budget 0: a larger one \(auto\) may find it; else"
    )
    with pytest.raises(baechi.PlacementError, match=said):
        baechi.place(graph, machine, budget="0")
    assert set(baechi.place(graph, machine).assignment.values()) <= {"gpu1", "gpu2", "gpu3"}
