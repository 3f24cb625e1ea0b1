# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables: what is placed, by whom, under which conditions."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from baechi.compiling import compiler
from baechi.compiling.tools import CompileError
from baechi.experiments import cutting, inputs, published
from baechi.experiments.benchmarks import Benchmark
from baechi.experiments.hardware import Machine
from baechi.experiments.inputs import Input
from baechi.experiments.placers import EVALUATIONS, OF_THE_PAPER, PLACERS, TITLES, Case, Outcome

Cell = str | float | int | list[list[float]] | None


@dataclasses.dataclass
class Table:
    """Rows by column keys. `plot`: columns with one value for a placer, as bars."""

    name: str
    title: str
    notes: list[str]
    columns: dict[str, str]  # key to heading
    rows: list[dict[str, Cell]]
    plot: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Setting:
    machine: Machine
    benchmarks: Sequence[Benchmark]
    placers: Sequence[str]
    tell: Callable[[str], object]  # what is being done, before every part of it
    evaluations: int = EVALUATIONS  # for each placer that learns
    seconds: float | None = None  # for each model of `pieces`
    ways: Sequence[str] = ()  # of `pieces`, those that are made; none: all
    before: Mapping[str, Table] = dataclasses.field(default_factory=dict)  # has the others


# What the grouping steps of baechi-place are switched to, one after the other.
GROUPINGS = {
    "none": "none",
    "+ colocation": "colocate",
    "+ co-placement": "colocate,coplace",
    "+ fusion": "colocate,coplace,fuse",
    "+ forward-only": "forward,colocate,coplace,fuse",
    "+ levels": OF_THE_PAPER,
}
SMALL_MEMORY = 0.3
MICRO_BATCHES = (2, 4, 8, 16)  # as a step that fits otherwise not is compiled in


def placement_time(setting: Setting) -> Table:
    """Operator counts, group counts and placement times."""
    low, high = published.PLACEMENT_SECONDS["optimised"]
    slow = published.PLACEMENT_SECONDS["not optimised"]
    own = {"mtopo": "m-TOPO s", "metf": "m-ETF s", "msct": "m-SCT s"}
    rows = []
    for made in inputs_of(setting):
        row: dict[str, Cell] = {
            "model": made.benchmark.name,
            "operations": made.operations,
            "operators": made.operators,
            "kernels": made.kernels,
            "import_s": round(made.import_cpu_s, 1),
            "import_mib": round(made.import_peak_mib),
            "form_s": round(made.form_cpu_s, 1),
        }
        for placer in own:
            outcome = place_one(setting, made, placer)
            row[placer] = seconds_of(outcome)
            row["groups"] = outcome.groups
        row["msct_ungrouped"] = seconds_of(place_one(setting, made, "msct", grouping="none"))
        row["published"] = f"{low}–{high}"
        row["published_ungrouped"] = f"{slow[0]:.0f}–{slow[1]:.0f}"
        rows.append(row)
    return Table(
        "table3",
        "Placement time",
        [
            "Processor seconds of one thread, of the whole program: graph read, grouped, placed, "
            "verified, report written. Import is JAX's tracing and the conversion to linalg; "
            "*form* makes kernels, costs and groups of it. The paper's are over all of its models."
        ],
        {
            "model": "model",
            "operations": "operations imported",
            "operators": "operators",
            "kernels": "distinct kernels",
            "groups": "groups",
            "import_s": "import s",
            "import_mib": "MiB",
            "form_s": "form s",
            **own,
            "msct_ungrouped": "m-SCT ungrouped s",
            "published": "paper s",
            "published_ungrouped": "paper, not optimised s",
        },
        rows,
    )


def steps_ample(setting: Setting) -> Table:
    """Steps with all of the devices' memory."""
    table = _steps(setting, setting.machine)
    table.name, table.title = "table4", "Step time, ample memory"
    for row in table.rows:
        found = [
            f"{TITLES[placer]} {text}"
            for placer in setting.placers
            if (text := published.speed_up(str(row["model"]), placer))
        ]
        row["published"] = ", ".join(found)
    table.columns["published"] = "speed-ups published"
    return table


def steps_small(setting: Setting) -> Table:
    """Steps with a share of the memory; what does not fit, in micro-batches."""
    machine = setting.machine.with_share_of_memory(SMALL_MEMORY)
    table = _steps(setting, machine, place=_place_in_fewest)
    table.name = "table5"
    table.title = f"Step time, {SMALL_MEMORY:.0%} of the memory"
    table.notes = [
        f"{table.notes[0]} What does not fit is computed in micro-batches (docs/splitting.md), in "
        "the fewest of 2, 4, 8 and 16 that fit; the speed-up is over one device's in as many as it "
        "needs."
    ]
    return table


def _place_in_fewest(
    setting: Setting, made: Input, placer: str, machine: Machine
) -> tuple[Outcome, int]:
    """The step, whole where it fits, else in the fewest micro-batches; and in how many."""
    outcome = place_one(setting, made, placer, machine=machine)
    for count in MICRO_BATCHES:
        if not _lacks_memory(outcome):
            break
        setting.tell(f"{made.benchmark.name}: {count} micro-batches")
        try:
            cut = _in_micro_batches(made, machine, count)
        except CompileError as error:  # a batch of fewer
            return dataclasses.replace(outcome, problem=f"{outcome.problem}; {error}"), 1
        fewer = place_one(setting, cut, placer, machine=machine)
        if not _lacks_memory(fewer):
            return fewer, count
    return outcome, 1


def _in_micro_batches(made: Input, machine: Machine, count: int) -> Input:
    """The graph is kept beside the step's."""
    cuts = [compiler.step("baechi-split", pieces=count, chained="true", reductions="true")]
    known = hashlib.sha256(f"{machine.data} {cuts}".encode()).hexdigest()[:12]
    graph = made.module.parent / f"micro-{count}-{known}.json"
    if not graph.exists():
        with tempfile.TemporaryDirectory(prefix="baechi-experiments-") as temporary:
            written = pathlib.Path(temporary) / graph.name
            cutting.cut_graph(made, machine, f"{count} micro-batches", cuts, written)
            shutil.move(written, graph)
    return dataclasses.replace(made, graph=graph)


def optimisations(setting: Setting) -> Table:
    """What each step of the grouping, and the search, is worth."""
    rows: list[dict[str, Cell]] = []
    for made in inputs_of(setting):
        alone = place_one(setting, made, "single").step_ms
        for title, grouping in GROUPINGS.items():
            row: dict[str, Cell] = {"model": made.benchmark.name, "grouping": title}
            for placer in ("metf", "msct"):
                outcome = place_one(setting, made, placer, grouping=grouping)
                row["groups"] = outcome.groups
                row[f"{placer}_s"] = seconds_of(outcome)
                row[placer] = _text(outcome, alone)
            rows.append(row)
        row = {"model": made.benchmark.name, "grouping": "all but forward-only, and the search"}
        outcome = place_one(setting, made, "default")
        row |= {"groups": outcome.groups, "msct_s": seconds_of(outcome)}
        row["msct"] = _text(outcome, alone)
        rows.append(row)
    return Table(
        "table6",
        "Optimisations off and on",
        [
            "What each step of the grouping does to the placers' own results, one more a row, and "
            "what the search does. A step in ms and, in parentheses, its speed-up over one "
            "device; s as in table3. *Forward-only*: forward operators are placed, and backward "
            "ones, found by their names, follow them. *Levels*: co-placement at several grains, "
            "the best of all counts, with a look ahead at what a group brings to a device "
            "(docs/placement.md); groups are those of the first level."
        ],
        {
            "model": "model",
            "grouping": "grouping",
            "groups": "groups",
            "metf_s": "m-ETF s",
            "metf": "m-ETF ms",
            "msct_s": "m-SCT s",
            "msct": "m-SCT ms",
        },
        rows,
    )


def comparison(setting: Setting) -> Table:
    """A row for each placer: quality against seconds and evaluations, for placers that
    spend them very differently."""
    rows: list[dict[str, Cell]] = []
    for made in inputs_of(setting):
        alone = place_one(setting, made, "single").step_ms
        for name in setting.placers:
            outcome = place_one(setting, made, name)
            rows.append(
                {
                    "model": made.benchmark.name,
                    "placer": TITLES[name],
                    "step": _text(outcome, alone),
                    "seconds": seconds_of(outcome),
                    "evaluations": outcome.evaluations,
                    "devices": outcome.devices,
                    "peak": None if outcome.peak_mib is None else round(outcome.peak_mib),
                }
            )
    return Table(
        "table7",
        "Placers against each other",
        [
            "A step in ms and its speed-up over one device, processor seconds of the placer, "
            "evaluations of whole placements where it counts them, devices that run anything, "
            "and the peak of the fullest one."
        ],
        {
            "model": "model",
            "placer": "placer",
            "step": "step ms",
            "seconds": "s",
            "evaluations": "evaluations",
            "devices": "devices",
            "peak": "peak MiB",
        },
        rows,
    )


TABLES: dict[str, Callable[[Setting], Table]] = {
    "table3": placement_time,
    "table4": steps_ample,
    "table5": steps_small,
    "table6": optimisations,
    "table7": comparison,
}


def _place_whole(
    setting: Setting, made: Input, placer: str, machine: Machine
) -> tuple[Outcome, int]:
    return place_one(setting, made, placer, machine=machine), 1


def _steps(
    setting: Setting,
    machine: Machine,
    place: Callable[[Setting, Input, str, Machine], tuple[Outcome, int]] = _place_whole,
) -> Table:
    rows = []
    for made in inputs_of(setting):
        row: dict[str, Cell] = {"model": made.benchmark.name}
        placed = {name: place(setting, made, name, machine) for name in setting.placers}
        alone = placed["single"][0].step_ms if "single" in placed else None
        for name, (outcome, count) in placed.items():
            row[name] = _text(outcome, alone)
            if count > 1:
                row[name] = f"{row[name]}, {count} micro-batches"
            row[f"{name}_ms"] = outcome.step_ms
            row[f"{name}_problem"] = outcome.problem
        rows.append(row)
    limits = {device["memory"] / 2**30 for device in machine.data["devices"]}
    return Table(
        "",
        "",
        [
            "Predicted ms of a step and, in parentheses, its speed-up over one device, with "
            f"{', '.join(f'{limit:.1f}' for limit in sorted(limits))} GiB on each device. Each "
            "placer's own result, whether good or bad, with all optimisations of the paper "
            "(table6), the expert's repaired where it exceeds a memory; the last column is what "
            "baechi-place answers when it may compare all placers but the expert, and search for "
            "about a second."
            if "default" in setting.placers
            else "Predicted ms of a step and its speed-up over one device."
        ],
        {"model": "model", **{name: TITLES[name] for name in setting.placers}},
        rows,
        plot=[f"{name}_ms" for name in setting.placers],
    )


def inputs_of(setting: Setting) -> list[Input]:
    made = []
    for benchmark in setting.benchmarks:
        setting.tell(f"{benchmark.name}: importing")
        made.append(inputs.make(benchmark, setting.machine.roofline))
    return made


def place_one(setting: Setting, made: Input, placer: str, **conditions: Any) -> Outcome:
    setting.tell(f"{made.benchmark.name}: {TITLES[placer]}")
    given = {"machine": setting.machine, "evaluations": setting.evaluations, **conditions}
    return PLACERS[placer](Case(made, **given))


def seconds_of(outcome: Outcome) -> Cell:
    return None if outcome.cpu_s is None or outcome.problem else round(outcome.cpu_s, 2)


def _lacks_memory(outcome: Outcome) -> bool:
    return outcome.step_ms is None and " bytes " in outcome.problem


def _text(outcome: Outcome, alone: float | None) -> str:
    if outcome.step_ms is None:
        if " at once " in outcome.problem:
            return "an operator is too large"
        return "does not fit" if " bytes " in outcome.problem else f"none: {outcome.problem}"
    factor = f" ({alone / outcome.step_ms:.2f})" if alone else ""
    return f"{outcome.step_ms:.1f}{factor}"
