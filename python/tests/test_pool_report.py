# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the report and its page say of a step whose tensors wait in a pool, against
NumPy, nanosecond by nanosecond and byte by byte."""

import json
import pathlib
import re
import subprocess

import numpy as np
import pytest

import needs
from baechi.compiling import tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "test/fixtures/transformer_tiny.mlir"
LIMIT = 36 * 1024

pytestmark = needs.tool("baechi-run")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool-report")
    done = subprocess.run(
        [
            tools.find("baechi-run"),
            MODEL,
            f"--machine=host:1@{LIMIT}B+pool:1MiB",
            "--costs=roofline",
            "--fit-memory=whole",
            "--budget=0",
            "--steps=3",
            f"--json={folder / 'report.json'}",
            f"--html={folder / 'page.html'}",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    page = (folder / "page.html").read_text()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return done.stdout, json.loads((folder / "report.json").read_text()), json.loads(data[1])


def spans(data, which):
    """Of operators and transfers: when they begin and end."""
    operators, moved = data["operators"], data["transfers"]
    if which == "predicted":
        start = np.array(operators["start_ns"])
        return (start, start + operators["time_ns"]), (moved["start_ns"], moved["end_ns"])
    return tuple(
        (np.array(data["measured"][kind]["start_ns"]), np.array(data["measured"][kind]["end_ns"]))
        for kind in ("operators", "transfers")
    )


@pytest.mark.parametrize(("which", "prefix"), [("predicted", ""), ("measured", "measured_")])
def test_how_much_of_the_copies_is_hidden(run, which, prefix):
    text, report, data = run
    ran, moved = spans(data, which)
    computes = np.zeros(int(max(*ran[1], *moved[1])) + 1, bool)
    for device, begin, end in zip(data["operators"]["device"], *ran):
        if device == 0 and begin >= 0:
            computes[begin:end] = True
    copies = hidden = 0
    for begin, end in zip(*moved):
        copies += end - begin
        hidden += computes[begin:end].sum()
    fit = report["memory_fit"]
    assert copies > 0
    assert fit[f"{prefix}copies_ns"] == copies
    assert fit[f"{prefix}hidden_ns"] == hidden
    for told in (text, "\n".join(data["summary"]["notes"])):
        assert f"{100 * hidden / copies:.1f} % of that while the device computes" in told


def test_bytes_that_are_moved(run):
    _, report, data = run
    fit, moved = report["memory_fit"], data["transfers"]
    sizes = np.array(moved["bytes"])
    assert fit["in_bytes"] == sizes[np.array(moved["from"]) == 1].sum() > 0
    assert fit["out_bytes"] == sizes[np.array(moved["to"]) == 1].sum() > 0


def test_the_curve_is_of_the_arena(run):
    _, report, data = run
    for memory in (data["memory"], data["measured"]["memory"]):
        for device, (at, levels) in zip(report["devices"], memory, strict=True):
            assert at[0] == 0 and at == sorted(set(at))
            assert device["resident_bytes"] <= min(levels)
            assert max(levels) <= device["peak_bytes"] <= device["limit_bytes"]
    assert max(data["memory"][0][1]) > 0.9 * LIMIT
    assert data["devices"][0]["peak_bytes"] == max(data["memory"][0][1])
    assert max(data["memory"][1][1]) > 0


def test_the_line_of_the_pool_has_the_predicted_step(run):
    text, report, _ = run
    assert report["memory_fit"]["step_ns"] == report["predicted_step_ns"]
    # As the line of the step has it.
    told = re.search(r"the step is predicted to take ([0-9.]+ \w+)", text)[1]
    assert f"step       predicted {told}," in text
