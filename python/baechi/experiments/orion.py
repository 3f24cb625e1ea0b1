# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orion's comparison: what a pass of a loop over sparse data gains when it runs serially, in blocks
that keep dependences, and data parallel (Wei et al., EuroSys 2019)."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from baechi.experiments.tables import Cell, Table
from baechi.importer.common.errors import ImportFailure
from baechi.loops import applications, data
from baechi.loops.blocks import Layout
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError
from baechi.loops.foreach import Loop, foreach

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = 5
WORKERS = (2, 8, 24)
# Of data parallel: exchanges a pass, and a staleness of the parameter store, if it has them.
LATE = ((1, None), (8, None), (8, 1))


@dataclasses.dataclass(frozen=True)
class Application:
    name: str
    metric: str
    entries: Entries
    arrays: list[np.ndarray]
    passes: int
    shown: tuple[int, ...]  # passes of the table
    bodies: dict[str, Callable[..., Any]]  # data parallelism may take each, by what it is called
    late: list[str]  # buffered in blocks, too
    judge: Callable[[Entries, Sequence[np.ndarray]], float]


def tables(
    names: Sequence[str], tell: Callable[[str], object], known: Sequence[Application] | None = None
) -> list[Table]:
    """Of applications by name, all where none is given."""
    all_of = {each.name: each for each in (known or [_factorisation(), _topics()])}
    if unknown := [name for name in names if name not in all_of]:
        raise ImportFailure(f"unknown application '{unknown[0]}'; known: {', '.join(all_of)}")
    chosen = [all_of[name] for name in names or all_of]
    shown = sorted({passes for of in all_of.values() for passes in of.shown})
    return [_convergence(chosen, shown, tell), _orders(chosen)]


def _factorisation() -> Application:
    entries = data.ratings(200_000, 4_000, 800, rank=8)
    steps = (0.02, 0.005)
    return Application(
        "factorisation",
        "RMSE",
        entries,
        applications.factors(entries, 8),
        32,
        (1, 8, 16, 24, 32),
        {f"step {step}": applications.factorisation(step) for step in steps},
        [],
        lambda entries, made: applications.error(entries, *made),
    )


def _topics() -> Application:
    entries, _ = data.tokens(1_000, 1_000, 10, length=80)
    return Application(
        "topics",
        "minus log-likelihood of a token",
        entries,
        applications.counts(entries, 10),
        30,
        (1, 5, 10, 20, 30),
        {"": applications.topics},
        ["totals"],
        lambda entries, made: -applications.likelihood(entries, *made[-3:-1]),
    )


def _curve(loop: Loop, of: Application, entries: Entries) -> list[float]:
    """The metric by passes; where it is no number, infinity, and no more are run."""
    arrays, found = list(of.arrays), [of.judge(entries, of.arrays)]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(of.passes):
            try:
                made = loop.simulate(entries, *arrays)
            except LoopError:  # the store takes no number that is not finite
                return found + [float("inf")] * (of.passes + 1 - len(found))
            if len(made) > len(arrays):
                entries = entries.with_values(made[0])
            arrays = list(made[-len(arrays) :])
            found.append(of.judge(entries, arrays))
            if not np.isfinite(found[-1]):
                return found + [float("inf")] * (of.passes + 1 - len(found))
    return found


def _convergence(
    chosen: Sequence[Application], shown: Sequence[int], tell: Callable[[str], object]
) -> Table:
    rows: list[dict[str, Cell]] = []
    for of in chosen:
        rows += _rows(of, tell)
    return Table(
        "orion",
        "Loops over sparse data: serial, in blocks, data parallel (simulated workers)",
        [
            "Workers are simulated: their blocks run one after the other and give the bits that "
            "they would give at once (docs/loops.md). Factorisation: 200,000 ratings of 4,000 "
            "users and 800 items, rank 8, noise 0.3, SGD with a step of 0.02. Topics: LDA by "
            "Gibbs sampling, about 80,000 tokens, 1,000 words, 10 topics; in blocks the topics' "
            f"totals are seen late. Each row is the mean of {ORDERS} random orders of the entries, "
            "the same of all rows; of serial's also the range that they span. Passes are those "
            "that reach what serial reaches after three quarters of the passes. A pass in blocks "
            "takes the largest block of each clock, and no time for messages; time is passes by "
            "that, of serial's. Data parallel adds up its copies' changes so many times a pass, at "
            "the better of the steps 0.02 and 0.005; with the store, workers go at their own pace, "
            "and reads lack no changes that are two exchanges old (docs/replicas.md).",
            "",
            "Published (EuroSys 2019 and its workshop version of 2018; other hardware and data): "
            "convergence per pass as serial in blocks, slower data parallel; 3.5 times as fast "
            "as a data-parallel program over a parameter server.",
            "",
            "What is known of that comparison does not say how often its data-parallel "
            "programs exchanged in a pass, so one and eight exchanges stand here. How many "
            "passes data parallelism needs, of serial's, hangs on this: with one exchange "
            "more than 1.33 times as many for factorisation, whose step must be smaller, and "
            "1.35 times for topics; with eight 1.25 and 0.95 times: counts of topics change "
            "slowly, and copies that are joined so often are as good as one.",
        ],
        {
            "model": "application",
            "scheme": "scheme",
            **{str(passes): f"after {passes}" for passes in shown},
            "off": "most off serial",
            "needed": "passes",
            "speed": "pass, times as fast",
            "time": "time, of serial",
        },
        rows,
        ["passes"],
    )


def _rows(of: Application, tell: Callable[[str], object]) -> list[dict[str, Cell]]:
    body = next(iter(of.bodies.values()))

    def mean(what: str, loop: Loop) -> tuple[list[float], float]:
        """The mean of the curves of random orders, and the range that they span."""
        curves = []
        for seed in range(ORDERS):
            tell(f"{of.name}: {what}, order {seed}")
            curves.append(_curve(loop, of, _shuffled(of.entries, seed)))
        means = [statistics.fmean(each) for each in zip(*curves, strict=True)]
        columns = zip(zip(*curves, strict=True), means, strict=True)
        return means, max((max(each) - min(each)) / middle for each, middle in columns)

    serial, spread = mean("serial", foreach(body, machine="host:1", workers=1, buffered=of.late))
    target = serial[of.passes * 3 // 4]
    rows = [_row(of, "serial", serial, serial, target, 1.0)]
    rows[0]["off"] = f"range {100 * spread:.1f} %"
    entries = _shuffled(of.entries, 0)
    for workers in WORKERS:
        loop = foreach(body, workers=workers, buffered=of.late)
        faster = _faster(loop.layout(entries, *of.arrays))
        curve, _ = mean(f"{workers} workers", loop)
        rows.append(_row(of, f"blocks, {workers} workers", curve, serial, target, faster))
    names = ["users", "items"] if of.name == "factorisation" else ["documents", "words", "totals"]
    workers = WORKERS[-1]
    for exchanges, staleness in LATE:
        tried = []
        words = f"{workers} workers, {exchanges} exchanges, staleness {staleness}"
        for step, each in of.bodies.items():
            loop = foreach(
                each, workers=workers, buffered=names, exchanges=exchanges, staleness=staleness
            )
            faster = _faster(loop.layout(entries, *of.arrays))
            what = f"data parallel, {words}, {step}"
            tried.append((mean(what, loop)[0], step, faster))
        curve, step, faster = min(tried, key=lambda one: (_passes(one[0], target), one[0][-1]))
        how = "data parallel" if staleness is None else f"store, staleness {staleness}"
        name = f"{how}, {workers} workers, {exchanges} a pass{step and ', '}{step}"
        rows.append(_row(of, name, curve, serial, target, faster))
    return rows


def _shuffled(entries: Entries, seed: int) -> Entries:
    order = np.random.default_rng(seed).permutation(len(entries))
    values = jax.tree.unflatten(entries.tree, [leaf[order] for leaf in entries.leaves])
    return Entries([key[order] for key in entries.keys], values, entries.bounds, entries.names)


def _row(
    of: Application,
    scheme: str,
    curve: list[float],
    serial: list[float],
    target: float,
    faster: float,
) -> dict[str, Cell]:
    needed = _passes(curve, target)
    off = max(a / b for a, b in zip(curve, serial, strict=True)) - 1
    row: dict[str, Cell] = {"model": of.name, "scheme": scheme}
    row |= {str(passes): f"{curve[passes]:.4f}" for passes in of.shown}
    row["off"] = f"{100 * off:+.1f} %" if np.isfinite(off) else "diverged"
    base = _passes(serial, target)
    row["needed"] = f"{needed:.1f}" if np.isfinite(needed) else f"> {of.passes}"
    row["speed"] = f"{faster:.1f}"
    row["time"] = f"{needed / faster / base:.3f}" if np.isfinite(needed) else "–"
    finite: Any = [[n, n / faster, value] for n, value in enumerate(curve) if np.isfinite(value)]
    return row | {"metric": of.metric, "curve": finite}


def _passes(curve: Sequence[float], target: float) -> float:
    """How many reach a target, between two passes on a line."""
    for n, (before, after) in enumerate(itertools.pairwise(curve)):
        if after <= target:
            return n + (before - target) / (before - after) if before > after else float(n)
    return float("inf")


def _faster(layout: Layout) -> float:
    """Entries, of those of the largest blocks of the clocks."""
    sizes = [
        max(block.end - block.first for block in blocks)
        for _, blocks in itertools.groupby(layout.blocks, lambda block: block.clock)
    ]
    return sum(map(len, layout.entries)) / max(sum(sizes), 1)


def _orders(chosen: Sequence[Application]) -> Table:
    rows: list[dict[str, Cell]] = []
    for of in (each for each in chosen if each.name == "factorisation"):
        body = next(iter(of.bodies.values()))
        for workers in (2, 4, 8, 12, 24):
            faster = [
                _faster(
                    foreach(body, workers=workers, ordered=ordered).layout(of.entries, *of.arrays)
                )
                for ordered in (False, True)
            ]
            row: dict[str, Cell] = {"model": of.name, "workers": workers}
            row |= {"unordered": f"{faster[0]:.2f}", "ordered": f"{faster[1]:.2f}"}
            row["ratio"] = f"{faster[0] / faster[1]:.2f}"
            row["published"] = "2.2 to 2.6 (from memory, to be checked)" if workers == 12 else None
            rows.append(row)
    return Table(
        "orion-order",
        "A pass of an unordered loop beside an ordered one's wavefront (simulated workers)",
        [
            "Times as fast as serial, by the largest blocks of the clocks; no time for messages. "
            "Ordered loops of 2 and 4 workers have twice as many parts along one key, which the "
            "simulation found faster (docs/loops.md)."
        ],
        {
            "model": "application",
            "workers": "workers",
            "unordered": "unordered",
            "ordered": "ordered",
            "ratio": "ratio",
            "published": "published",
        },
        rows,
    )


def draw(table: Table) -> Figure:
    """Axes an application: the metric by passes, and by time in passes of serial."""
    from matplotlib import pyplot

    models = list(dict.fromkeys(str(row["model"]) for row in table.rows))
    figure, all_axes = pyplot.subplots(
        len(models), 2, figsize=(9, 3.5 * len(models)), layout="constrained", squeeze=False
    )
    for axes, model in zip(all_axes, models, strict=True):
        for row in (row for row in table.rows if row["model"] == model):
            points: Any = row["curve"]
            late = str(row["scheme"]).startswith(("data", "store"))
            style = "--" if late else "-"
            for axis, x in zip(axes, (0, 1), strict=True):
                line = [point[2] for point in points]
                axis.plot([point[x] for point in points], line, style, label=row["scheme"])
            axes[0].set_ylabel(f"{model}: {row['metric']}")
        serial: Any = table.rows[[row["model"] for row in table.rows].index(model)]["curve"]
        for axis in axes:
            axis.set_ylim(0.95 * min(p[2] for p in serial), 1.1 * serial[0][2])
        axes[0].set_xlabel("passes")
        axes[1].set_xlabel("time in passes of serial (simulated)")
        axes[1].legend(fontsize="xx-small")
    return figure
