# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placers that learn beside those that do not: quality by evaluations and seconds."""

from __future__ import annotations

from baechi import learned
from baechi.experiments.placers import TITLES
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
                        "evaluations": outcome.evaluations,
                        "seconds": seconds_of(outcome),
                        "curve": outcome.curve,
                        "msct_ms": unit,
                    }
                )
    return Table(
        "learned",
        "Placers that learn",
        [
            f"At most {setting.evaluations:,} evaluations of whole placements for each method "
            "([learned.md](learned.md)), on the first 2 and on all 4 devices. A step in ms, as a "
            "multiple of the step of m-SCT by itself (on groups of one grain) and of the lower "
            "bound, and processor seconds, JAX's compilation of the method included; *random*: "
            "independent uniform choices."
        ],
        {
            "model": "model",
            "devices": "devices",
            "placer": "placer",
            "groups": "groups",
            "step": "step ms",
            "msct": "of m-SCT's",
            "bound": "of the bound",
            "evaluations": "evaluations",
            "seconds": "s",
        },
        rows,
        plot=["curve"],
    )
