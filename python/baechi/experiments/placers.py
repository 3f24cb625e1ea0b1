# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who takes part in the comparison.

A placer is a function of a `Case` that returns an `Outcome`; `register` adds
one (`--with=MODULE` imports what registers others, learned placers say). Those
here ask `baechi-place` for the placer's own result: no candidates of others,
no search.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from baechi import learned
from baechi.experiments import measured
from baechi.experiments.hardware import Machine
from baechi.experiments.inputs import Input
from baechi.graphs.native import PlacementError
from baechi.models import expert

EVALUATIONS = 1000


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph to place on a machine. `grouping` is baechi-place's `--grouping`; without one
    it is the placer's own choice. `evaluations`: what a placer that learns may spend."""

    input: Input
    machine: Machine
    grouping: str | None = None
    evaluations: int = EVALUATIONS


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A placement, or why there is none.

    `cpu_s` is the placer's whole work in processor seconds, its reading of the
    graph included; `evaluations` those of placements, for placers that count them.
    """

    step_ms: float | None = None
    cpu_s: float | None = None
    peak_mib: float | None = None  # of the fullest device
    devices: int | None = None  # that run anything
    groups: int | None = None
    evaluations: int | None = None
    problem: str = ""
    curve: list[list[float]] | None = None  # of (evaluations, cpu_s, step_ms), best so far


Placer = Callable[[Case], Outcome]
PLACERS: dict[str, Placer] = {}
TITLES: dict[str, str] = {}
ON_REQUEST: set[str] = set()  # take part only where --placers names them


def register(name: str, title: str, placer: Placer, on_request: bool = False) -> None:
    """Adds a placer: its name for `--placers` and its column's title."""
    PLACERS[name], TITLES[name] = placer, title
    if on_request:
        ON_REQUEST.add(name)


def by_learning(method: str) -> Placer:
    """A placer of baechi.learned; with its own groups, whatever the case's."""

    def place(case: Case) -> Outcome:
        try:
            found = learned.learn(
                case.input.graph,
                case.machine.data,
                method,
                evaluations=case.evaluations,
                progress=lambda text: None,
            )
        except PlacementError as error:
            return Outcome(problem=str(error), evaluations=case.evaluations)
        placement = found.placement
        return Outcome(
            step_ms=placement.step_ns / 1e6,
            cpu_s=found.seconds,
            peak_mib=float(placement.peak_bytes.max()) / 2**20,
            devices=len(set(placement.assignment.values())),
            groups=found.groups,
            evaluations=found.evaluations,
            curve=[[int(n), round(float(s), 3), ns / 1e6] for n, s, ns in found.curve.tolist()],
        )

    return place


def by_tool(*options: str, grouping: str = "all") -> Placer:
    """A placer of `baechi-place`, and its grouping where the case has none."""

    def place(case: Case) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
            folder = pathlib.Path(temporary)
            machine, report = folder / "machine.json", folder / "report.json"
            machine.write_text(json.dumps(case.machine.data))
            further = list(options)
            if "--placer=expert" in options:
                if case.input.benchmark.model not in expert.known():
                    return Outcome(problem="no expert's placement is known")
                rules = folder / "rules.expert"
                rules.write_text(expert.rules(case.input.benchmark.model, case.machine.devices))
                further.append(f"--expert={rules}")
            done = measured.tool(
                "baechi-place",
                case.input.graph,
                machine,
                f"--grouping={case.grouping or grouping}",
                f"--json={report}",
                *further,
            )
            if done.code != 0:
                return Outcome(cpu_s=done.cost.cpu_s, problem=measured.first_error(done))
            return _outcome(json.loads(report.read_text()), done.cost.cpu_s)

    return place


def _outcome(report: dict[str, Any], cpu_s: float) -> Outcome:
    steps = report["grouping_steps"]
    return Outcome(
        step_ms=report["makespan_ns"] / 1e6,
        cpu_s=cpu_s,
        peak_mib=max(device["peak_bytes"] for device in report["devices"]) / 2**20,
        devices=sum(device["operators"] > 0 for device in report["devices"]),
        groups=steps[-1]["groups_after"] if steps else report["operators_before"],
    )


# As the paper's program is run: forward operators are placed, backward ones follow them. Its
# units were recurrent cells; m-ETF and m-SCT choose the grain by trying several.
OF_THE_PAPER = "forward,colocate,multilevel,fuse"

for _name, _title in {"single": "one device", "expert": "expert"}.items():
    register(_name, _title, by_tool(f"--placer={_name}", "--budget=0"))
for _name, _title in {"mtopo": "m-TOPO", "metf": "m-ETF", "msct": "m-SCT"}.items():
    by_itself = by_tool(f"--placer={_name}", "--budget=0", grouping=OF_THE_PAPER)
    register(_name, _title, by_itself)
# The whole answer: the best of all placers and a search of about a second.
register("default", "m-SCT and search", by_tool("--placer=msct", "--budget=auto"))
for _method in learned.METHODS:
    register(_method, learned.TITLES[_method], by_learning(_method), on_request=True)
