# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best so far of placers that learn, by evaluations and by seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from baechi.experiments.tables import Table


def draw(table: Table) -> Figure:
    """A row of axes a model and number of devices: left evaluations, right seconds; steps as
    multiples of m-SCT's."""
    from matplotlib import pyplot

    parts: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for row in table.rows:
        parts.setdefault((row["model"], row["devices"]), []).append(row)
    figure, all_axes = pyplot.subplots(
        len(parts), 2, figsize=(9, 2 * len(parts)), layout="constrained", squeeze=False
    )
    colours: dict[str, str] = {}
    for axes, ((model, devices), rows) in zip(all_axes, parts.items(), strict=True):
        for row in (row for row in rows if row.get("msct_ms")):
            colour = colours.setdefault(row["placer"], f"C{len(colours)}")
            for axis, x in zip(axes, (0, 1), strict=True):
                if curve := row.get("curve"):
                    best = [point[2] / row["msct_ms"] for point in curve]
                    at = [point[x] for point in curve]
                    axis.step(at, best, where="post", color=colour, label=row["placer"])
                elif row.get("msct"):
                    axis.axhline(
                        float(row["msct"]), color=colour, linestyle=":", label=row["placer"]
                    )
        axes[0].set_ylabel(f"{model}, {devices}")
        for axis in axes:
            axis.set_xscale("log")
    all_axes[-1][0].set_xlabel("evaluations")
    all_axes[-1][1].set_xlabel("processor seconds")
    figure.suptitle(f"{table.title}: the best step so far, of m-SCT's")
    add_legend(figure, [axes[0] for axes in all_axes], columns=3)
    return figure


def add_legend(figure: Figure, all_axes: Iterable[Axes], columns: int) -> None:
    """One legend below all axes, each label once."""
    shown: dict[str, Any] = {}
    for axes in all_axes:
        handles, labels = axes.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    figure.legend(
        list(shown.values()),
        list(shown),
        loc="outside lower center",
        ncols=columns,
        fontsize="small",
    )
