# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures of a step for papers, by matplotlib (extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from baechi.pictures.picture import Picture, Row, envelope, split
from baechi.pictures.picture import size as size_text
from baechi.pictures.svg import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: two columns of a paper.
_WIDTH = 6.5
_COLUMNS = 1600
_MOST_LETTERS = 84  # of the small font, side by side
_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_SIZES = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0))


def plot_timeline(shown: Any, axes: Axes | None = None) -> Figure:
    """When every device computes and every queue moves, a row each, coloured by the parts
    of the model.

    shown: a `baechi.Placement`, or a step of `baechi.jit` that was called.
    axes: where to draw; None: a new figure. Returns the figure (`savefig("step.pdf")`).
    """
    picture: Picture = shown.picture()
    rows = picture.rows
    axes = axes or _new((len(rows) + 4) * 0.22 + 0.4)
    unit, scale = next((u, s) for u, s in _UNITS if picture.step_ns >= s or s == 1)
    used: set[int] = set()
    for y, row in enumerate(rows):
        used |= _draw_row(axes, picture, row, y, scale)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, max(picture.step_ns, 1) / scale)
    axes.set_xlabel(f"time ({unit})")
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    handles = [_patch(colour(part, picture), _cut(picture.parts[part])) for part in sorted(used)]
    axes.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=_columns([str(handle.get_label()) for handle in handles]),
        frameon=False,
        fontsize="small",
    )
    return _figure(axes)


def plot_memory(shown: Any, axes: Axes | None = None) -> Figure:
    """What every device holds over the step, and its limit (dashed; in words where
    it is more than three times the highest peak).

    shown, axes, result: as of `plot_timeline`. Of a compiled step only what its arenas
    reserve is known.
    """
    picture: Picture = shown.picture()
    axes = axes or _new(2.2)
    unit, scale = next((u, s) for u, s in _UNITS if picture.step_ns >= s or s == 1)
    highest = max((memory.peak for memory in picture.memory), default=0)
    name, size = next((n, s) for n, s in _SIZES if highest >= s or s == 1)
    time = np.arange(_COLUMNS + 1) * max(picture.step_ns, 1) / _COLUMNS / scale
    limits = set()
    for i, memory in enumerate(picture.memory):
        levels = envelope(memory, picture.step_ns, _COLUMNS) / size
        axes.stairs(levels, time, color=f"C{i}", label=memory.label, baseline=None, linewidth=1)
        if memory.limit <= 3 * highest:
            limits.add((memory.limit, f"C{i}"))
    common = len({limit for limit, _ in limits}) == 1
    for limit, own in sorted(limits):
        axes.axhline(limit / size, color="k" if common else own, linestyle="--", linewidth=0.8)
    axes.set_xlim(0, time[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel(f"memory ({name})")
    title = None
    if picture.memory and not limits:
        title = f"limits: {size_text(min(memory.limit for memory in picture.memory))} or more"
    axes.legend(
        title=title,
        title_fontsize="small",
        frameon=False,
        fontsize="small",
        ncols=4,
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return _figure(axes)


def _draw_row(axes: Axes, picture: Picture, row: Row, y: int, scale: float) -> set[int]:
    height = 0.4 if row.is_queue else 0.8
    box = (y - height / 2, height)
    long, shares, parts = split(row, picture.step_ns, _COLUMNS)
    width = picture.step_ns / _COLUMNS / scale
    busy = np.flatnonzero(shares > 0)
    if len(busy):
        axes.broken_barh(
            [(x * width, width) for x in busy],
            box,
            facecolors=[
                (colour(int(parts[x]), picture), max(0.25, float(shares[x]))) for x in busy
            ],
            linewidth=0,
        )
    if len(long):
        axes.broken_barh(
            [(s["start"] / scale, (s["finish"] - s["start"]) / scale) for s in long],
            box,
            facecolors=[colour(int(part), picture) for part in long["part"]],
            edgecolors="white",
            linewidth=0.1,
        )
    return {int(part) for part in long["part"]} | {int(parts[x]) for x in busy}


def _new(height: float) -> Axes:
    # Not pyplot: a figure of its own needs no display and stays in no list.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure.add_subplot()


def _figure(axes: Axes) -> Figure:
    from matplotlib.figure import Figure

    found = axes.get_figure()
    assert isinstance(found, Figure)
    return found


def _cut(label: str) -> str:
    """Without its middle where it would be wider than half of the figure."""
    half = _MOST_LETTERS // 4 - 3
    return label if len(label) <= 2 * half + 1 else f"{label[:half]}…{label[-half:]}"


def _columns(labels: list[str]) -> int:
    """So many stand side by side in a legend: a patch takes the place of six letters."""
    widest = max(map(len, labels), default=0) + 6
    return max(1, min(len(labels), 5, _MOST_LETTERS // widest))


def _patch(face: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=face, label=label)
