# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/oracle/pipedream_to_graph.py reads PipeDream's profiles."""

import lzma
import pathlib
import sys

import pytest

import baechi

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROFILES = ROOT / "data" / "pipedream"
sys.path.insert(0, str(ROOT / "scripts" / "oracle"))

import pipedream_to_graph as pipedream  # noqa: E402


@pytest.mark.parametrize("profile", sorted(PROFILES.glob("*.xz")), ids=lambda path: path.name)
def test_all_of_a_profile_is_in_its_graph(profile):
    """Times and parameters are those that the profile's lines add up to."""
    with lzma.open(profile, "rt") as file:
        fields = [
            dict(part.split("=") for part in line.rsplit(" -- ", 1)[1].strip().split(", "))
            for line in file
            if line.startswith("node")
        ]
    graph = pipedream.convert(*pipedream.read(profile), [2, 4])
    times = sum(op["time_ns"] for op in graph["ops"])
    milliseconds = sum(
        float(f[f"{way}_compute_time"]) for f in fields for way in ("forward", "backward")
    )
    assert times == pytest.approx(milliseconds * 1e6)
    resident = sum(op.get("resident", 0) for op in graph["ops"])
    assert resident == 3 * sum(round(float(f["parameter_size"])) for f in fields)
    for op in graph["ops"]:
        for way, count in zip(op["alternatives"], (2, 4), strict=True):
            assert len(way["pieces"]) == count
            assert 0 <= count * way["pieces"][0]["time_ns"] - op["time_ns"] < count


def test_a_chain(tmp_path):
    """One layer behind the other: forward passes, then backward passes that read what they need."""
    profile = tmp_path / "chain.txt"
    layer = (
        "forward_compute_time=1.0, backward_compute_time=2.0, activation_size={}, parameter_size={}"
    )
    profile.write_text(
        "node2 -- Linear(4, 4) -- " + layer.format("[60.0; 4.0]", "16.0") + "\n"
        "node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, "
        "activation_size=0.0, parameter_size=0.0\n"
        "node3 -- Linear(4, 2) -- " + layer.format("32.0", "8.0") + "\n"
        "\tnode1 -- node2\n\tnode2 -- node3\n"
    )
    graph = pipedream.convert(*pipedream.read(profile), [])
    names = [op["name"] for op in graph["ops"]]
    assert names == ["Input.1", "Linear.2", "Linear.3", "backward/Linear.3", "backward/Linear.2"]
    reads = {(names[edge["from"]], names[edge["to"]]) for edge in graph["edges"]}
    assert reads == {
        ("Input.1", "Linear.2"),
        ("Linear.2", "Linear.3"),
        ("Linear.2", "backward/Linear.3"),
        ("Linear.3", "backward/Linear.3"),
        ("Input.1", "backward/Linear.2"),
        ("Linear.2", "backward/Linear.2"),
        ("backward/Linear.3", "backward/Linear.2"),
    }
    assert [o["bytes"] for o in graph["ops"][3]["outputs"]] == [64]  # its gradient of Linear.2
    assert graph["ops"][4]["outputs"] == [] and graph["ops"][4]["forward"] == 1
    placement = baechi.place(graph, pipedream.machine_of(1, 1000, 1e9), placer="single")
    assert placement.step_ns == 6_000_000


@pytest.mark.parametrize(
    "line, message",
    [
        ("node1 ~ Linear", "p.txt:1: neither a node nor an edge"),
        ("\tnode1 -- node2", "an edge has node1, which is no node"),
    ],
)
def test_other_files_are_refused(tmp_path, line, message):
    profile = tmp_path / "p.txt"
    profile.write_text(line + "\n")
    with pytest.raises(SystemExit, match=message):
        pipedream.read(profile)
