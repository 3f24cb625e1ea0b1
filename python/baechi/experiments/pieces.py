# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps in pieces beside whole operators: predictions for machines of GPUs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import tempfile
import time
from typing import Any

from baechi.compiling import compiler, tools
from baechi.experiments import cutting, hardware, measured
from baechi.experiments.hardware import Machine
from baechi.experiments.inputs import Input
from baechi.experiments.tables import Cell, Setting, Table, inputs_of

# The speed-ups over one device that the project set itself, by machine and model.
GOALS = {
    "socc2020": {
        "inception-32": 2.0,
        "inception-64": 2.6,
        "transformer-64": 2.2,
        "gnmt40-128": 1.6,
        "gnmt40-256": 1.9,
        "gnmt50-128": 1.6,
        "gnmt50-256": 1.9,
    },
    "fast-links": {
        "inception-32": 3.3,
        "inception-64": 3.3,
        "transformer-64": 3.3,
        "gnmt40-128": 2.8,
        "gnmt40-256": 2.8,
        "gnmt50-128": 2.8,
        "gnmt50-256": 2.8,
    },
}
# What `splits=any` compares on such machines, and the step that a person divides.
PROPOSED = ("whole", "pieces", "half", "micro", "overlapped", "half-overlapped", "sparing", "rest")
# As lib/Driver/Cuts/OtherCuts.cpp has them.
OVERLAPPED_PERCENT = 40
SPARING_PERCENT = 300
REST_PERCENT = 1
MOST_OPERATIONS = 100_000
_TITLES = {
    "whole": "whole operators",
    "pieces": "a piece a device",
    "half": "two devices a piece",
    "micro": "micro-batches",
    "overlapped": "a piece a device, overlapped",
    "half-overlapped": "two devices a piece, overlapped",
    "sparing": "a piece a device, sparing",
    "rest": "a piece a device, the rest in fewer",
    "replicas": "replicas",
    "exact": "sums exact",
}
WAYS = tuple(_TITLES)
# What a page has in place of a step, by how its cell begins.
_WITHOUT = {"left": "left out", "none": "none"}


def steps_in_pieces(setting: Setting) -> Table:
    """On the paper's machine."""
    return _table(setting, setting.machine, "pieces")


def steps_on_fast_links(setting: Setting) -> Table:
    """The same devices with links of today."""
    return _table(setting, hardware.fast_links(), "pieces-fast")


def _table(setting: Setting, machine: Machine, name: str) -> Table:
    rows = []
    before = setting.before.get(name)
    known = {row["model"]: row for row in before.rows} if before else {}
    for made in inputs_of(dataclasses.replace(setting, machine=machine)):
        rows.append(_row(setting, made, machine, known.get(made.benchmark.name, {})))
    return Table(
        name,
        f"Steps in pieces on {len(machine.devices)} devices",
        [
            f"Predicted ms of a step on {machine.description} and, in parentheses, its speed-up "
            "over one device, by m-SCT and search. *A piece a device*, *two devices a piece*, "
            "*micro-batches* (two a device), *overlapped* ones (as if "
            f"{OVERLAPPED_PERCENT} % of the time that is sent counted) and *sparing* ones "
            f"({SPARING_PERCENT} %), and *the rest in fewer* (what no piece a device takes, in "
            "half as many) are what `splits=any` compares with whole operators; *any* is the best "
            "of these. *Sums exact*: as `splits=exact` cuts, which host devices alone "
            "execute. *Replicas*: what `replicas=4` makes. *Bound*: the speed-up at the lower "
            "bound of the graph of *any*, *s*: the processor seconds of what it compares. *Left "
            f"out*: micro-batches of more than {MOST_OPERATIONS:,} operations in all, which "
            "`splits=any` does not compare. "
            "What was not made within `--seconds` is made when the command is run again."
        ],
        {
            "model": "model",
            "single": "one device",
            **{way: _TITLES[way] for way in ("whole", "exact", *PROPOSED[1:], "replicas")},
            "any": "any",
            "bound": "bound",
            "goal": "goal",
            "any_s": "s",
        },
        rows,
        plot=["single_ms", "whole_ms", "replicas_ms", "any_ms"],
    )


def on_a_page(tables: dict[str, Table]) -> str:
    """What docs/splitting.md has of both tables: a row for each machine and model."""
    links = {"pieces": "5.7 GB/s", "pieces-fast": "50 GB/s"}
    ways = [*PROPOSED[:3], *PROPOSED[4:], "micro", "replicas"]
    titles = [_TITLES[way].removesuffix(" operators") for way in ways]
    lines = [
        f"| links | model | one device | {' | '.join(titles)} |",
        "|---" * (3 + len(ways)) + "|",
    ]
    for name, title in links.items():
        for row in tables[name].rows if name in tables else []:
            cells = [str(row.get(way) or "") for way in ways]
            shown = [cell if cell[:1].isdigit() else _WITHOUT.get(cell[:4], "–") for cell in cells]
            lines.append(f"| {title} | `{row['model']}` | {row['single']} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _row(
    setting: Setting, made: Input, machine: Machine, before: dict[str, Cell]
) -> dict[str, Cell]:
    model = made.benchmark.name
    row: dict[str, Cell] = {"model": model, "goal": GOALS[machine.name].get(model)}
    began = time.monotonic()
    single = 0.0
    for way in ("single", *WAYS):
        if way != "single" and setting.ways and way not in setting.ways:
            row |= {key: before[key] for key in _cells(way) if key in before}
            continue
        if setting.seconds is not None and way != "single":
            spent = time.monotonic() - began > setting.seconds
            if spent and not _kept(made, machine, way).exists():
                row[way] = "not made"
                continue
        if way == "micro" and made.operations * 2 * len(machine.devices) > MOST_OPERATIONS:
            row[way] = "left out"
            continue
        setting.tell(f"{model}: {_TITLES.get(way, 'one device')}")
        report = _made_once(made, machine, way)
        if "none" in report:
            row[way] = f"none: {report['none']}"
            continue
        step = report["makespan_ns"] / 1e6
        if way == "single":
            single = step
        row |= {way: f"{step:.1f} ({single / step:.2f})", f"{way}_ms": step}
        row |= {f"{way}_bound_ms": report["lower_bound_ns"] / 1e6, f"{way}_s": report["cpu_s"]}
    row["single"] = f"{single:.1f}"
    row |= _any(row, single)
    if row.get("any") == before.get("any"):  # rows of older files have no bound of each way
        row |= {key: before.get(key) for key in ("bound", "any_s") if row.get(key) is None}
    return row


def _cells(way: str) -> list[str]:
    """What a row has of a way."""
    return [way, f"{way}_ms", f"{way}_bound_ms", f"{way}_s"]


def _any(row: dict[str, Cell], single: float) -> dict[str, Cell]:
    """The best of what `splits=any` compares, of that which was made."""
    steps = {way: step for way in PROPOSED if isinstance(step := row.get(f"{way}_ms"), float)}
    if not steps:
        return {}
    best = min(steps, key=lambda way: steps[way])
    step, bound = steps[best], row.get(f"{best}_bound_ms")
    seconds = [spent for way in steps if isinstance(spent := row.get(f"{way}_s"), float)]
    return {
        "any": f"{step:.1f} ({single / step:.2f}), {_TITLES[best]}",
        "any_ms": step,
        "bound": f"{single / bound:.2f}" if isinstance(bound, float) else None,
        "any_s": round(sum(seconds), 1) if len(seconds) == len(steps) else None,
    }


def _kept(made: Input, machine: Machine, way: str) -> pathlib.Path:
    """Where what is found of a way is kept, beside the step, until tools or passes change."""
    place = tools.find("baechi-place").stat()
    version = f"{machine.data} {_cuts(way, len(machine.devices))} {place.st_size}"
    known = hashlib.sha256(f"{version} {place.st_mtime_ns}".encode()).hexdigest()[:12]
    return made.module.parent / f"pieces-{machine.name}-{way}-{known}.json"


def _made_once(made: Input, machine: Machine, way: str) -> dict[str, Any]:
    """The step of a way: its times, or why there is none."""
    kept = _kept(made, machine, way)
    if not kept.exists():
        written = kept.with_suffix(".new")
        written.write_text(json.dumps(_made(made, machine, way)))
        written.replace(kept)
    report: dict[str, Any] = json.loads(kept.read_text())
    return report


def _made(made: Input, machine: Machine, way: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
        folder = pathlib.Path(temporary)
        described = folder / "machine.json"
        described.write_text(json.dumps(machine.data))
        if way == "single":
            report = _placed(made.graph, described, folder, "--placer=single", "--budget=0")
        else:
            try:
                graph, form_s = made.graph, 0.0
                if way != "whole":
                    graph = folder / f"{way}.json"
                    cuts = _cuts(way, len(machine.devices))
                    form_s = cutting.cut_graph(
                        made, machine, way, cuts, graph, pinned=way == "replicas"
                    )
                report = _placed(graph, described, folder, "--placer=msct", "--budget=auto")
            except tools.CompileError as error:
                return {"none": str(error).removeprefix(f"{way}: ")}
            report["cpu_s"] += form_s
    return {key: report[key] for key in ("makespan_ns", "lower_bound_ns", "cpu_s")}


def _placed(
    graph: pathlib.Path, machine: pathlib.Path, folder: pathlib.Path, *options: str
) -> dict[str, Any]:
    report = folder / "report.json"
    done = measured.checked(
        measured.tool("baechi-place", graph, machine, f"--json={report}", *options), graph.stem
    )
    return {**json.loads(report.read_text()), "cpu_s": done.cost.cpu_s}


def _cuts(way: str, devices: int) -> list[str]:
    """The passes that cut a step before its kernels are formed."""
    if way in ("single", "whole"):
        return []
    if way == "replicas":
        return [compiler.step("baechi-replicate", replicas=devices)]
    split: dict[str, object] = {"pieces": devices, "stored": "true"}
    if way == "exact":
        return ["baechi-fix-sums", compiler.step("baechi-split", **split)]
    split |= {"reductions": "true", "merge-moments": "true"}
    if way.startswith("half"):
        split["pieces"] = devices // 2
    if way.endswith("overlapped"):
        split["sent-percent"] = OVERLAPPED_PERCENT
    if way == "sparing":
        split["sent-percent"] = SPARING_PERCENT
    if way == "rest":
        split |= {"rest-pieces": devices // 2, "rest-sent-percent": REST_PERCENT}
    if way == "micro":
        split |= {"pieces": 2 * devices, "chained": "true"}
    return [compiler.step("baechi-split", **split)]
