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
from baechi.replicas.exchange import Layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MACHINES = 4
SLICE = 50_000  # parameters, P3's own
SLICES = (10_000, 20_000, 50_000, 100_000, 200_000, 1_000_000)
SERVERS = (0, 4, 1)  # GB/s of gradients that a server adds; 0: at once
_TELLS = {False: "P3 over FIFO", True: "over FIFO, asked"}
RATES = (0.3, 1.0, 2.0, 3.1, 5.3, 8.4)  # TFLOP/s


def tables(names: Sequence[str], tell: Callable[[str], object]) -> list[Table]:
    """Of models by name, all where none is given."""
    known = {model.name: model for model in replicated.models()}
    if unknown := [name for name in names if name not in known]:
        raise ImportFailure(f"unknown model '{unknown[0]}'; known: {', '.join(known)}")
    models = [known[name] for name in names or known]
    made = []
    for table in (_gains, _by_compute, _by_slice, _stored, _asked):
        tell(table.__name__.strip("_"))
        made.append(table(models))
    return made


def _gains(models: list[replicated.Model]) -> Table:
    return Table(
        "p3",
        f"Exchange of gradients between {MACHINES} machines (simulated network)",
        [
            "Steps of synchronous training, a batch of 32 a machine, each machine a parameter "
            "server, too; 50 µs of latency, and messages that cost nothing but their bytes. FIFO "
            f"sends whole arrays as they are ready, slices and P3 pieces of {SLICE:,} parameters, "
            "tic-tac whole arrays; P3 and tic-tac send what the next step uses first. Gains are of "
            "throughput over FIFO; the bound is the longer of compute and of bytes over bandwidth, "
            "servers sharing them evenly; *at most* is the gain that it leaves to any order. "
            "*Asked* is FIFO where workers ask for values that they were told of (p3-asked). "
            "Pieces of each array begin at the first server, or, for P3, where those of the array "
            "before ended if the simulated step is shorter so. *Ours* is P3 with the slices of "
            "twelve sizes that the simulated step is shortest with at that bandwidth, as a "
            "replicated step's are found by its links. The published gains are those over "
            "MXNet (P3, arXiv 1905.03960) at about the bandwidth where they stand. Layers "
            "are the published shapes "
            "at full size.",
            "",
            "**The times of computation are assumed.** No throughput of the paper's card, a P4000 "
            f"with a peak of 5.3 TFLOP/s, was found. {replicated.TERAFLOPS} TFLOP/s are assumed "
            f"for all models but VGG-19, which is given {replicated.VGG_TERAFLOPS}: more than the "
            "peak, as only convolutions that save multiplications could reach, and close to where "
            "P3's gain at 15 Gbit/s is largest. The gains depend on this: p3-compute.",
        ],
        {
            "model": "model",
            "compute": "compute, ms (assumed)",
            "gbits": "Gbit/s",
            "fifo": "FIFO, ms",
            "slices": "slices",
            "tictac": "tic-tac",
            "p3": "P3",
            "ours": "ours",
            "asked": "P3 over FIFO, asked",
            "most": "at most",
            "published": "published",
            "bound": "P3 / bound",
            "ours_bound": "ours / bound",
        },
        [_row(model, gbits) for model in models for gbits in model.gbits],
        ["gains"],
    )


def _row(model: replicated.Model, gbits: int) -> dict[str, Cell]:
    layers = model.layers
    fifo, p3 = _step(layers, "fifo", gbits), _step(layers, "p3", gbits)
    ours = _step(layers, "p3", gbits, None)
    row: dict[str, Cell] = {
        "model": model.name,
        "compute": f"{fifo.compute_ns / 1e6:.0f}",
        "gbits": gbits,
        "fifo": f"{fifo.step_ns / 1e6:.1f}",
        "slices": _gain(fifo, _step(layers, "slices", gbits)),
        "tictac": _gain(fifo, _step(layers, "tictac", gbits)),
        "p3": _gain(fifo, p3),
        "ours": _gain(fifo, ours),
        "asked": _gain(_step(layers, "fifo", gbits, asked=True), p3),
        "most": f"{100 * (fifo.step_ns / _bound_ns(layers, gbits) - 1):+.1f} %",
        "bound": f"{p3.step_ns / _bound_ns(layers, gbits):.3f}",
        "ours_bound": f"{ours.step_ns / _bound_ns(layers, gbits):.3f}",
    }
    if model.published[0] == gbits:
        row["published"] = f"+{model.published[1]} %"
    return row


def _by_compute(models: list[replicated.Model]) -> Table:
    rows: list[dict[str, Cell]] = []
    for model in models:
        gbits, published = model.published
        for rate in RATES:
            layers = model.shapes.layers(rate)
            fifo, p3 = _step(layers, "fifo", gbits), _step(layers, "p3", gbits)
            rows.append(
                {
                    "model": model.name,
                    "gbits": gbits,
                    "rate": f"{rate}{' (p3)' if rate == model.teraflops else ''}",
                    "compute": f"{fifo.compute_ns / 1e6:.0f}",
                    "exchange": f"{_exchange_ns(layers, gbits) / 1e6:.0f}",
                    "p3": _gain(fifo, p3),
                    "published": f"+{published} %",
                }
            )
    return Table(
        "p3-compute",
        "P3's gain by the rate that is assumed",
        [
            "At the bandwidth of the published gain: what P3 gains if the machines compute at "
            "another rate (the one of the table p3 is marked). Gains are largest where compute and "
            "exchange take equally long, and small where either is much longer: they say as much "
            "about the assumption as about the order of messages."
        ],
        {
            "model": "model",
            "gbits": "Gbit/s",
            "rate": "TFLOP/s (assumed)",
            "compute": "compute, ms",
            "exchange": "exchange, ms",
            "p3": "P3",
            "published": "published",
        },
        rows,
    )


def _by_slice(models: list[replicated.Model]) -> Table:
    rows: list[dict[str, Cell]] = []
    for model in models:
        gbits, layers = model.published[0], model.layers
        fifo = _step(layers, "fifo", gbits)
        row: dict[str, Cell] = {"model": model.name, "gbits": gbits}
        row |= {str(size): _gain(fifo, _step(layers, "p3", gbits, size)) for size in SLICES}
        rows.append(row)
    return Table(
        "p3-slices",
        "P3's gain by the parameters of a slice",
        [
            "At the bandwidth of the published gain. A message costs nothing here but its bytes, "
            "so small slices look better than they are."
        ],
        {"model": "model", "gbits": "Gbit/s", **{str(size): f"{size:,}" for size in SLICES}},
        rows,
    )


def _stored(models: list[replicated.Model]) -> Table:
    rows: list[dict[str, Cell]] = []
    for model in models:
        gbits, published = model.published
        row: dict[str, Cell] = {"model": model.name, "gbits": gbits, "published": f"+{published} %"}
        for stored in (False, True):
            fifo = _step(model.layers, "fifo", gbits, stored=stored)
            for policy in ("slices", "p3"):
                gain = _gain(fifo, _step(model.layers, policy, gbits, stored=stored))
                row[f"{policy}-{stored}"] = gain
        rows.append(row)
    return Table(
        "p3-stored",
        "P3's gain by when messages are received",
        [
            "At the bandwidth of the published gain. In the other tables a machine receives a "
            "message while it is sent, as cards do. Where it begins once all of it was sent, as "
            "behind a relay, or a library that hands on whole messages, an array takes its time "
            "twice each way, and slices overtake it."
        ],
        {
            "model": "model",
            "gbits": "Gbit/s",
            "slices-False": "slices",
            "p3-False": "P3",
            "slices-True": "slices, stored",
            "p3-True": "P3, stored",
            "published": "published",
        },
        rows,
    )


def _asked(models: list[replicated.Model]) -> Table:
    columns = {"model": "model", "gbits": "Gbit/s", "adds": "servers add"}
    for stored, more in ((False, ""), (True, ", stored")):
        columns |= {f"{asked}-{stored}": f"{what}{more}" for asked, what in _TELLS.items()}
    rows: list[dict[str, Cell]] = []
    for model in models:
        gbits, published = model.published
        for gigabytes in SERVERS:
            row: dict[str, Cell] = {"model": model.name, "gbits": gbits}
            row["adds"] = f"{gigabytes} GB/s" if gigabytes else "at once"
            for stored in (False, True):
                p3 = _step(model.layers, "p3", gbits, stored=stored, adds=gigabytes)
                for asked in _TELLS:
                    fifo = _step(
                        model.layers, "fifo", gbits, stored=stored, asked=asked, adds=gigabytes
                    )
                    row[f"{asked}-{stored}"] = _gain(fifo, p3)
            rows.append({**row, "published": f"+{published} %"})
    return Table(
        "p3-asked",
        "P3's gain over a store whose workers ask for values",
        [
            "At the bandwidth of the published gain, which is over MXNet's store. There a server "
            "tells the workers that an array is new, and each asks for its values: both wait "
            "behind what was to be sent before. P3 sends values at once, and in "
            "the other tables FIFO does, too, which makes it a better baseline than the published "
            "one. Servers add gradients at once or, where a rate is given, one message after the "
            "other; the rates are assumed. *Stored* is as in p3-stored.",
        ],
        {**columns, "published": "published"},
        rows,
    )


def _step(
    layers: list[Layer],
    policy: str,
    gbits: int,
    size: int | None = SLICE,
    stored: bool = False,
    asked: bool = False,
    adds: float = 0,
) -> exchange.Exchange:
    return exchange.simulate(
        layers,
        policy,
        gbits * 1e9 / 8,
        machines=MACHINES,
        slice_parameters=size,
        servers="better" if policy == "p3" else "first",
        stored=stored,
        asked=asked,
        server_bytes_per_second=adds * 1e9,
    )


def _gain(fifo: exchange.Exchange, other: exchange.Exchange) -> str:
    return f"{100 * (fifo.step_ns / other.step_ns - 1):+.1f} %"


def _exchange_ns(layers: list[Layer], gbits: int) -> float:
    """With servers that share all parameters evenly, which no pieces do exactly."""
    numbers = sum(layer.parameters for layer in layers)
    return 4 * 8 * numbers * 2 * (MACHINES - 1) / MACHINES / gbits


def _bound_ns(layers: list[Layer], gbits: int) -> float:
    compute = sum(layer.forward_ns + layer.backward_ns for layer in layers)
    return max(compute, _exchange_ns(layers, gbits))


def draw(table: Table) -> Figure:
    """Gains over bandwidth, axes a model."""
    from matplotlib import pyplot

    models = list(dict.fromkeys(str(row["model"]) for row in table.rows))
    figure, all_axes = pyplot.subplots(
        1, len(models), figsize=(3 * len(models), 3), layout="constrained", squeeze=False
    )
    for axes, model in zip(all_axes[0], models, strict=True):
        rows = [row for row in table.rows if row["model"] == model]
        for key in ("slices", "tictac", "p3", "ours"):
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
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize="small")
    return figure
