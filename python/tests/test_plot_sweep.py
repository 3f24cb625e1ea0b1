# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/plot-sweep on reports of every form, sound and broken."""

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "plot-sweep"


def point(devices, memory=100, speed=1.0, valid=True):
    result = {
        "devices": devices,
        "memory_bytes": memory,
        "link_speed": speed,
        "valid": valid,
        "lower_bound_ns": 500 if valid else None,
    }
    if valid:
        result |= {"makespan_ns": 1000, "max_load_ns": 900, "gap": 1.0, "peak_bytes": 50}
    return result


def report(points, least=()):
    return {
        "format": "baechi-sweep",
        "version": 1,
        "objective": "makespan",
        "points": list(points),
        "least_memory": list(least),
    }


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def draw(folder, data, name):
    source, target = folder / "report.json", folder / name
    source.write_text(json.dumps(data))
    done = run(source, "-o", target)
    assert (done.returncode, done.stderr) == (0, "")
    return target.read_bytes()


LEAST = [
    {"devices": 1, "bytes": None, "proven_bytes": 80},
    {"devices": 2, "bytes": 60, "proven_bytes": 50},
]
FULL = report(
    [
        point(1, valid=False),
        point(1, memory=200),
        point(2),
        point(2, memory=200),
        point(2, memory=200, speed=0.5),
    ],
    LEAST,
)


@pytest.mark.parametrize("name, magic", [("p.svg", b"<?xml"), ("p.png", b"\x89PNG")])
def test_draws(tmp_path, name, magic):
    assert draw(tmp_path, FULL, name).startswith(magic)


def test_same_report_same_file(tmp_path):
    assert draw(tmp_path, FULL, "a.svg") == draw(tmp_path, FULL, "b.svg")


@pytest.mark.parametrize(
    "data",
    [
        report([point(1)]),
        report([point(1, valid=False)]),
        report([point(4, speed=0.25), point(4, speed=2.0)], LEAST),
    ],
)
def test_few_points(tmp_path, data):
    assert draw(tmp_path, data, "p.svg")


def fit_report():
    way = {"times_unlimited": 1.5}
    none = dict.fromkeys(("order", "again", "pool", "both"))
    return {
        "format": "baechi-fit-sweep",
        "floor_bytes": 1 << 20,
        "points": [
            {"memory_bytes": 4 << 20} | none | {"pool": way, "both": way},
            {"memory_bytes": 1 << 20} | none,
        ],
    }


def test_step_over_memory(tmp_path):
    assert draw(tmp_path, fit_report(), "p.svg") == draw(tmp_path, fit_report(), "q.svg")


def test_errors(tmp_path):
    source = tmp_path / "report.json"
    assert "No such file" in run(source).stderr
    source.write_text("{}")
    assert "must be a report of baechi-place --sweep" in run(source).stderr
    source.write_text(json.dumps(FULL))
    done = run(source, "-o", tmp_path / "no" / "p.svg")
    assert done.returncode == 1
    assert done.stderr.startswith("plot-sweep: ")
    assert "Traceback" not in done.stderr
    assert run(source, "-o", tmp_path / "p.wrong").stderr.startswith("plot-sweep: ")
    assert (
        run(source, source, "--tool", "/none").stderr
        == "plot-sweep: /none: No such file or directory\n"
    )
