# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bösen's figures: convergence by passes and simulated seconds, by what is sent first."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from baechi.experiments import curves, stale
from baechi.experiments.tables import Cell, Table
from baechi.importer.common.errors import ImportFailure
from baechi.replicas.store import ORDERS, Network, ParameterStore, StoreError, StoreReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLOT_SECONDS = 0.01
ROWS = 100  # of a slot, each way
FAST = Network(125e6)  # 1 Gbit/s: what the budget leaves is not missed
SLOW = Network(1e6)  # a table takes as long as some slots
FREQUENCIES = (2, 8, 32)  # clocks of a pass
SHARES = (1.0, 0.5)  # of the step that is stable without delay
SMALLER = "clock only, step × "
SECONDS = (
    f"with an order of rows a worker has {ROWS} rows a slot, without one "
    f"{FAST.bytes_per_second / 1e6:.0f} MB/s"
)
DIVERGED = 10.0  # times the loss of the start


@dataclasses.dataclass(frozen=True)
class Setting:
    problem: type[stale.Problem]
    size: stale.Size
    passes: int = 10
    clocks: int = 4  # of a pass
    own_step: float | None = None  # in place of the problem's, as is the target
    own_target: float | None = None

    @property
    def step(self) -> float:
        return self.own_step or self.problem.step

    @property
    def target(self) -> float:
        return self.own_target or self.problem.target


SETTINGS = (
    Setting(stale.Factorisation, stale.Size(8, 32, 100_000, 1_000, 8)),
    Setting(stale.Topics, stale.Size(8, 32, 100_000, 1_001, 10), passes=12, clocks=1),
    Setting(stale.Regression, stale.Size(8, 32, 20_000, 1_000, 5)),
)
# Where a slot's rows are a few of all, as in the paper's tables.
LARGE = Setting(
    stale.Factorisation,
    stale.Size(16, 32, 1_000_000, 8_000, 16),
    own_step=0.01,
    own_target=0.6,
)
QUICK = tuple(
    Setting(each.problem, stale.Size(2, 8, 2_000, 101, 4), passes=1, clocks=min(each.clocks, 2))
    for each in SETTINGS
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """How workers talk."""

    step: float
    clocks: int
    rows: float | None = None  # of a slot, each way; none: at clocks alone
    order: str = "relative"
    staleness: int = 0
    network: Network = FAST


@dataclasses.dataclass
class Run:
    losses: list[float]  # after each pass, the first before any
    seconds: list[float]
    report: StoreReport
    budget: float | None

    @property
    def diverged(self) -> bool:
        return not self.losses[-1] < DIVERGED * self.losses[0]

    def until(self, target: float) -> tuple[float, float]:
        """Passes and seconds until a loss, between passes on a line; inf where it is not met."""
        for i, loss in enumerate(self.losses):
            if loss <= target:
                if i == 0:
                    return 0.0, 0.0
                before = self.losses[i - 1]
                share = (before - target) / (before - loss)
                passed = self.seconds[i - 1] + share * (self.seconds[i] - self.seconds[i - 1])
                return i - 1 + share, passed
        return math.inf, math.inf


def run(setting: Setting, plan: Plan, passes: int, target: float = -math.inf) -> Run:
    """Until a pass ends below `target`. Every read is checked against the bound."""
    problem = setting.problem(setting.size)
    size, row = setting.size, 4 * setting.size.width + 12
    budget = None
    if plan.rows is not None:
        budget = min(plan.rows * row / SLOT_SECONDS, plan.network.bytes_per_second)
    store = ParameterStore(
        {"table": problem.table},
        workers=size.workers,
        staleness=plan.staleness,
        budget=budget,
        order=plan.order,
        patience=math.inf,
        checked=True,
        round_bytes=int(ROWS * row),
        network=plan.network,
    )
    losses, seconds = [problem.loss(problem.table)], [0.0]
    every = size.slots // plan.clocks

    def body(worker: int) -> Iterator[float]:
        for _ in range(passes):
            for slot in range(size.slots):
                rows = problem.rows(worker, slot)
                values = store.get(worker, "table", rows)
                yield SLOT_SECONDS
                update = problem.update(worker, slot, values, plan.step)
                store.inc(worker, "table", rows, update)
                if (slot + 1) % every == 0:
                    store.clock(worker)
                    yield 0.0
            if worker == 0:
                losses.append(problem.loss(store.read("table")))
                seconds.append(store.seconds)
            if losses[-1] <= target or not losses[-1] < DIVERGED * losses[0]:
                return

    try:
        with np.errstate(over="ignore", invalid="ignore"):
            store.run(body)
    except StoreError as error:
        if "not finite" not in str(error):
            raise  # a defect, and not a step that is too large
        losses.append(math.inf)
        seconds.append(store.seconds)
    return Run(losses, seconds, store.report(), budget)


def tables(names: Sequence[str], tell: Callable[[str], object], quick: bool) -> list[Table]:
    """Of problems by name, all where none is given."""
    known = {each.problem.name: each for each in (QUICK if quick else SETTINGS)}
    if unknown := [name for name in names if name not in known]:
        raise ImportFailure(f"unknown problem '{unknown[0]}'; known: {', '.join(known)}")
    settings = [known[name] for name in names or known]
    # A table keeps its rows of others, whose sizes are these.
    sizes = _sizes(list(known.values()))
    return [_by_policy("bosen", settings, sizes, tell), _by_seconds(settings, tell)]


def large_tables(tell: Callable[[str], object], quick: bool) -> list[Table]:
    """One problem with sixteen workers and a table of which a slot sends few rows."""
    size = dataclasses.replace(QUICK[0].size, workers=4)
    setting = dataclasses.replace(LARGE, size=size, passes=2) if quick else LARGE
    return [_by_policy("bosen-large", [setting], _sizes([setting]), tell)]


def _by_policy(
    name: str, settings: list[Setting], sizes: str, tell: Callable[[str], object]
) -> Table:
    rows: list[dict[str, Cell]] = []
    for setting in settings:
        step, clocks = setting.step, setting.clocks
        plans = {"no delay": Plan(step, clocks, math.inf), "clock only": Plan(step, clocks)}
        if setting.problem is not stale.Topics:  # which has no step
            plans |= {f"{SMALLER}{s:g}": Plan(step * s, clocks) for s in SHARES[1:]}
        plans |= {order: Plan(step, clocks, ROWS, order) for order in ORDERS}
        best = None
        for policy, plan in plans.items():
            tell(f"{setting.problem.name}: {policy}")
            # Smaller steps need more passes to say how many they need.
            more = 2 if policy.startswith(SMALLER) else 1
            found = run(setting, plan, more * setting.passes)
            best = best or found.losses[-1]
            rows.append(_policy_row(setting, policy, found, best))
    return Table(
        name,
        "Bounded staleness by what is sent first (simulated network)",
        [
            f"Workers share a table of rows by the parameter store in simulated time: "
            f"{sizes}. A slot takes {1000 * SLOT_SECONDS:.0f} ms, the staleness is 0, "
            f"and a budget of {ROWS} rows a slot, each way, is used between clocks, by order: "
            "*clock only* has none, *no delay* one without end. Steps are stable without delay, "
            "and *step × 0.5* is half of that. *Used*: the most bytes that one worker sent or "
            "received, but for rows that it read for the first time, of the budget's in "
            "that time. Every "
            "read was checked against the bound.",
            "",
            f"**Seconds are of unequal bandwidth**: {SECONDS} (*no delay* and *clock only* send "
            "more in a second than the others may). At one bandwidth the ways are compared by "
            "bosen-seconds.",
            "",
            "Published (Wei et al., SoCC 2015, as an author's talk has it; its tables were not at "
            "hand): with managed communication 16 machines at 1 Gbit/s converge up to 30 % faster. "
            "Theirs are real data and machines, these are small and made by a seed: compare the "
            "order of the rows, not their sizes.",
        ],
        {
            "model": "problem",
            "policy": "rows first",
            "half": "loss, half the passes",
            "loss": "loss, all passes",
            "worse": "over no delay",
            "passes": "passes to the target",
            "seconds": "simulated s",
            "used": "budget used",
        },
        rows,
        ["convergence"],
    )


def _policy_row(setting: Setting, name: str, found: Run, best: float) -> dict[str, Cell]:
    passes, _ = found.until(setting.target)
    if found.diverged:
        passes = math.inf  # what it reached it did not keep
    half, last = (
        found.losses[passed] if passed < len(found.losses) else math.inf
        for passed in (setting.passes // 2, setting.passes)
    )
    return {
        "model": setting.problem.name,
        "policy": name,
        "half": f"{half:.3f}" if math.isfinite(half) else "diverges",
        "loss": f"{last:.3f}" if math.isfinite(last) else "diverges",
        "worse": f"{100 * (last / best - 1):+.1f} %" if math.isfinite(last) else None,
        "passes": f"{passes:.1f}" if math.isfinite(passes) else None,
        "seconds": f"{found.seconds[min(setting.passes, len(found.seconds) - 1)]:.1f}",
        "used": _used(found),
        "loss_name": setting.problem.loss_name,
        "curve": [
            [i, seconds, loss]
            for i, (seconds, loss) in enumerate(zip(found.seconds, found.losses, strict=True))
            if loss < 1.5 * found.losses[0]
        ],
    }


def _used(found: Run) -> str | None:
    if found.budget is None:
        return None
    report = found.report
    received = np.subtract(report.bytes_received, report.bytes_fetched)
    most = max(*report.bytes_sent, *received.tolist())
    return f"{100 * most / (found.budget * found.seconds[-1]):.0f} %"


def _by_seconds(settings: list[Setting], tell: Callable[[str], object]) -> Table:
    rows: list[dict[str, Cell]] = []
    for setting in settings:
        if setting.problem is stale.Topics:
            continue  # no step, and counts bear delays: nothing to tune by hand
        rows += _seconds_rows(setting, tell)
    return Table(
        "bosen-seconds",
        "Seconds to a loss, hand-tuned and managed (simulated network)",
        [
            f"A slow network of {SLOW.bytes_per_second / 1e6:.0f} MB/s a worker, each way, and "
            "bounded staleness of 0 and 1. By hand: updates go at clocks alone, and the number of "
            f"clocks of a pass ({', '.join(map(str, FREQUENCIES))}), the staleness and the step "
            f"(the stable one without delay, {', '.join(f'{s:g}' for s in SHARES[1:])} of it) are "
            "the best of all. Managed: the whole network is the budget, relative magnitude first, "
            "with as many clocks as the table bosen has.",
        ],
        {
            "model": "problem",
            "way": "way",
            "target": "target",
            "clocks": "clocks of a pass",
            "staleness": "staleness",
            "step": "step",
            "passes": "passes",
            "seconds": "simulated s",
            "less": "less than by hand",
        },
        rows,
    )


def _seconds_rows(setting: Setting, tell: Callable[[str], object]) -> list[dict[str, Cell]]:
    target, most = setting.target, 2 * setting.passes

    def best(plans: list[Plan]) -> tuple[Plan, float, float]:
        found = []
        for plan in plans:
            tell(f"{setting.problem.name}: {plan.clocks} clocks, step {plan.step:g}")
            found.append((plan, *run(setting, plan, most, target).until(target)))
        return min(found, key=lambda each: each[2])

    steps = [setting.step * share for share in SHARES]
    staleness = (0, 1)
    hand = best(
        [
            Plan(step, clocks, staleness=s, network=SLOW)
            for step in steps
            for clocks in FREQUENCIES
            if clocks <= setting.size.slots
            for s in staleness
        ]
    )
    managed = best(
        [
            Plan(step, setting.clocks, math.inf, staleness=s, network=SLOW)
            for step in steps
            for s in staleness
        ]
    )
    rows: list[dict[str, Cell]] = []
    for way, (plan, passes, seconds) in (("by hand", hand), ("managed", managed)):
        reached = math.isfinite(seconds)
        rows.append(
            {
                "model": setting.problem.name,
                "way": way,
                "target": f"{setting.problem.loss_name} {target:g}",
                "clocks": plan.clocks,
                "staleness": plan.staleness,
                "step": f"{plan.step:g}",
                "passes": f"{passes:.1f}" if reached else "not reached",
                "seconds": f"{seconds:.2f}" if reached else None,
                "less": f"{100 * (1 - seconds / hand[2]):.0f} %"
                if plan is managed[0] and math.isfinite(hand[2])
                else None,
            }
        )
    return rows


def _sizes(settings: list[Setting]) -> str:
    return "; ".join(
        f"{each.problem.name}, {each.size.workers} workers, {each.size.rows:,} rows of "
        f"{each.size.width}, {each.size.data:,} data, a pass of {each.size.slots} slots and "
        f"{each.clocks} {'clock' if each.clocks == 1 else 'clocks'}"
        for each in settings
    )


def draw(table: Table) -> Figure:
    """Losses over passes and over seconds, a row of axes a problem."""
    from matplotlib import pyplot

    problems = list(dict.fromkeys(str(row["model"]) for row in table.rows))
    figure, all_axes = pyplot.subplots(
        len(problems), 2, figsize=(9, 2.5 * len(problems)), layout="constrained", squeeze=False
    )
    colours: dict[str, str] = {}
    for axes, problem in zip(all_axes, problems, strict=True):
        for row in (row for row in table.rows if row["model"] == problem):
            name, curve = str(row["policy"]), row["curve"]
            assert isinstance(curve, list)
            colour = colours.setdefault(name, f"C{len(colours) % 10}")
            losses = [point[2] for point in curve]
            axes[0].plot([point[0] for point in curve], losses, color=colour, label=name)
            axes[1].plot([point[1] for point in curve], losses, color=colour)
            axes[0].set_ylabel(str(row["loss_name"]))
        axes[0].set_title(problem, fontsize="small")
    all_axes[-1][0].set_xlabel("passes")
    all_axes[0][1].set_title("unequal bandwidth", fontsize="small")
    all_axes[-1][1].set_xlabel(textwrap.fill(f"simulated seconds; {SECONDS}", 60), fontsize="small")
    curves.add_legend(figure, [axes[0] for axes in all_axes], columns=4)
    return figure
