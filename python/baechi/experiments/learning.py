# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placers that learn beside those that do not: quality by evaluations and seconds."""

from __future__ import annotations

from baechi import learned
from baechi.experiments.placers import TITLES, Outcome
from baechi.experiments.tables import Cell, Setting, Table, inputs_of, place_one, seconds_of
from baechi.graphs import placing

PLACERS = ["msct", "default", "random", *(m for m in learned.METHODS if m != "random")]
DEVICES = (2, 4)
# The yardstick: m-SCT on groups of one grain.
_GROUPING = {"msct": {"grouping": "forward,colocate,coplace,fuse"}}


def learned_placers(setting: Setting) -> Table:
    """A row for each graph, number of devices and placer; with the learners' curves."""
    rows: list[dict[str, Cell]] = []
    for made in inputs_of(setting):
        for count in (n for n in DEVICES if n <= len(setting.machine.devices)):
            machine = setting.machine.with_devices(count)
            setting.tell(f"{made.benchmark.name}: lower bound, m-SCT")
            bound = placing.place(made.graph, machine.data, "single")
            unit = place_one(setting, made, "msct", machine=machine, **_GROUPING["msct"]).step_ms
            begin = len(rows)
            for name in setting.placers:
                outcome = place_one(setting, made, name, machine=machine, **_GROUPING.get(name, {}))
                step, low = outcome.step_ms, bound.lower_bound_ns / 1e6
                rows.append(
                    {
                        "model": made.benchmark.name,
                        "devices": count,
                        "placer": TITLES[name],
                        "groups": outcome.groups,
                        "step": "none fits" if step is None else f"{step:.2f}",
                        "msct": f"{step / unit:.3f}" if step and unit else None,
                        "bound": f"{step / low:.3f}" if step and low else None,
                        "first": _first(outcome, unit),
                        "evaluations": outcome.evaluations,
                        "seconds": seconds_of(outcome),
                        "curve": outcome.curve,
                        "msct_ms": unit,
                    }
                )
            _rank(rows[begin:])
    return Table(
        "learned",
        "Placers that learn",
        [
            f"At most {setting.evaluations:,} evaluations of whole placements for each method "
            "([learned.md](learned.md)), on the first 2 and on all 4 devices. A step in ms, as a "
            "multiple of the step of m-SCT by itself (on groups of one grain) and of the lower "
            "bound, and processor seconds, JAX's compilation of the method included; *random*: "
            "independent uniform choices. *First*: the first placement that was evaluated, of "
            "m-SCT's step, so what a method knows of a graph beforehand; none of these graphs was "
            "seen by the policy that was trained once. *Rank*: among the methods at equal "
            "evaluations. nasnet-a is NASNet-A's two cells, cells-1 and cells-2 are of cells "
            "drawn from its search space ([learned.md](learned.md#graphs-of-cells))."
        ],
        {
            "model": "model",
            "devices": "devices",
            "placer": "placer",
            "groups": "groups",
            "step": "step ms",
            "msct": "of m-SCT's",
            "bound": "of the bound",
            "first": "first",
            "rank": "rank",
            "evaluations": "evaluations",
            "seconds": "s",
        },
        rows,
        plot=["curve"],
    )


def _first(outcome: Outcome, unit: float | None) -> str | None:
    """The first placement, where it is within the memories, of m-SCT's step."""
    if not outcome.curve or not unit:
        return None
    evaluations, _, step = outcome.curve[0]
    return f"{step / unit:.3f}" if evaluations == 1 else None


def _rank(rows: list[dict[str, Cell]]) -> None:
    """By the steps in ms of those that count evaluations; equal ones share a rank."""
    steps = {
        str(row["placer"]): float(str(row["step"]))
        for row in rows
        if row["evaluations"] is not None and isinstance(row["msct"], str)
    }
    for row in rows:
        own = steps.get(str(row["placer"]))
        row["rank"] = None if own is None else 1 + sum(step < own for step in steps.values())
