# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""P3's figure: steps of data-parallel training over bandwidth, by what is sent first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from baechi.experiments import replicated
from baechi.experiments.tables import Cell, Table
from baechi.importer.common.errors import ImportFailure
from baechi.replicas import exchange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MACHINES = 4
SLICES = (10_000, 20_000, 50_000, 100_000, 200_000)


def exchange_gains(names: Sequence[str], tell: Callable[[str], object]) -> Table:
    """Models by name, all where none is given."""
    models = {model.name: model for model in replicated.models()}
    if unknown := [name for name in names if name not in models]:
        raise ImportFailure(f"unknown model '{unknown[0]}'; known: {', '.join(models)}")
    rows = []
    for name in names or models:
        for gbits in models[name].gbits:
            tell(f"{name}, {gbits} Gbit/s")
            rows.append(_row(models[name], gbits))
    return Table(
        "p3",
        f"Exchange of gradients between {MACHINES} machines (simulated network)",
        [
            "Steps of synchronous training, a batch of 32 a machine, each machine a parameter "
            "server, too; 50 µs of latency. FIFO sends whole arrays as they are ready, slices and "
            "P3 pieces of 50,000 parameters, tic-tac whole arrays; P3 and tic-tac send what the "
            "next step uses first. Gains are of throughput over FIFO; the bound is the longer of "
            "compute and of bytes over bandwidth, servers sharing them evenly (those of P3 do not "
            "quite: each array's pieces begin at the first). The published gains are those over "
            "MXNet (P3, arXiv 1905.03960) at about the bandwidth where they stand. Layers are the "
            "published shapes at full size; the times of their computation are assumed "
            "(`baechi.experiments.replicated`), so compare shapes and ratios.",
        ],
        {
            "model": "model",
            "gbits": "Gbit/s",
            "fifo": "FIFO, ms",
            "slices": "slices",
            "tictac": "tic-tac",
            "p3": "P3",
            "best": "P3, best slice",
            "published": "published",
            "bound": "P3 / bound",
        },
        rows,
        ["gains"],
    )


def _row(model: replicated.Model, gbits: int) -> dict[str, Cell]:
    def step(policy: str, size: int = 50_000) -> exchange.Exchange:
        return exchange.simulate(
            model.layers, policy, gbits * 1e9 / 8, machines=MACHINES, slice_parameters=size
        )

    fifo = step("fifo")

    def gain(other: exchange.Exchange) -> str:
        return f"{100 * (fifo.step_ns / other.step_ns - 1):+.1f} %"

    p3 = step("p3")
    row: dict[str, Cell] = {
        "model": model.name,
        "gbits": gbits,
        "fifo": f"{fifo.step_ns / 1e6:.1f}",
        "slices": gain(step("slices")),
        "tictac": gain(step("tictac")),
        "p3": gain(p3),
        "bound": f"{p3.step_ns / _bound_ns(model, gbits):.3f}",
    }
    if model.published and model.published[0] == gbits:
        best = min(SLICES, key=lambda size: step("p3", size).step_ns)
        row["best"] = f"{gain(step('p3', best))} ({best:,})"
        row["published"] = f"+{model.published[1]} %"
    return row


def _bound_ns(model: replicated.Model, gbits: int) -> float:
    """With servers that share all parameters evenly, which no pieces do exactly."""
    compute = sum(layer.forward_ns + layer.backward_ns for layer in model.layers)
    numbers = sum(layer.parameters for layer in model.layers)
    return max(compute, 4 * 8 * numbers * 2 * (MACHINES - 1) / MACHINES / gbits)


def draw(table: Table) -> Figure:
    """Gains over bandwidth, axes a model."""
    from matplotlib import pyplot

    models = list(dict.fromkeys(str(row["model"]) for row in table.rows))
    figure, all_axes = pyplot.subplots(
        1, len(models), figsize=(3 * len(models), 3), layout="constrained", squeeze=False
    )
    for axes, model in zip(all_axes[0], models, strict=True):
        rows = [row for row in table.rows if row["model"] == model]
        for key in ("slices", "tictac", "p3"):
            gains = [float(str(row[key]).removesuffix(" %")) for row in rows]
            axes.plot([row["gbits"] for row in rows], gains, marker=".", label=table.columns[key])
        for row in rows:
            if row.get("published"):
                height = float(str(row["published"]).removesuffix(" %"))
                axes.plot([row["gbits"]], [height], "x", color="black", label="P3, published")
        axes.set_title(model)
        axes.set_xlabel("Gbit/s")
    all_axes[0][0].set_ylabel("throughput over FIFO, %")
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
    return figure
