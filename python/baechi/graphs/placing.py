# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.place` and its neighbours: placing graphs without compiling anything."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from baechi.graphs import problem
from baechi.graphs.native import _placement
from baechi.graphs.placement import Placement
from baechi.pictures import svg

Progress = Callable[[str], object]
_LARGEST_SEED = 2**62


def place(
    graph: problem.Source,
    machine: problem.Source,
    placer: str = "msct",
    *,
    grouping: Sequence[str] | None = None,
    objective: str = "makespan",
    budget: str | float = "auto",
    seed: int = 1,
    solver: str = "native",
    expert: Mapping[str, str] | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Placement:
    """Finds a placement of a graph on a machine; what `baechi-place` does.

    graph, machine: a dictionary or a file's path (docs/formats.md; also .json.xz or .json.gz), or a
        `baechi.Graph` and a `baechi.Machine`; a machine also as `host:4@2GiB`.
    placer: one of `baechi.placers()`. The answer is the best of its result, the other
        placers', each device alone and a search, and never worse than one device;
        `placement.winner` says which it is.
    grouping: steps of docs/placement.md, in order; None: the usual ones for the placer and
        the budget, `[]`: none.
    objective: `makespan` (the time of a step), `max-load` (of a pipeline of steps) or
        `period` (from one to the next of steps that overlap, docs/placement.md).
    budget: of the search: `auto` (about a second at most), 0 (the placer's own result,
        nothing else is tried), seconds (30), or evaluations (`5000e`).
    seed: of the search's random numbers.
    solver: of m-SCT's linear program: `native` (exact) or `greedy`.
    expert: for the placer `expert`: patterns of names to devices, or a file's path.
    progress: called with the name of every phase; None: on a terminal, a line there.

    Deterministic unless the budget is in seconds. Other Python threads run meanwhile;
    Ctrl-C ends the search. Raises PlacementError with the text that the tools print.
    """
    options = _options(placer, grouping, objective, budget, seed, solver, expert, progress)
    return Placement(_placement.place(problem.read(graph, machine), **options))


def compare(
    graph: problem.Source,
    machine: problem.Source,
    placers: Sequence[str] = (),
    *,
    placer: str = "msct",
    grouping: Sequence[str] | None = None,
    objective: str = "makespan",
    budget: str | float = "auto",
    seed: int = 1,
    solver: str = "native",
    expert: Mapping[str, str] | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """All placers, or `placers`, each by itself on one problem; and `default`, which is
    `place` with the other options. What `baechi-place --compare` does."""
    options = _options(placer, grouping, objective, budget, seed, solver, expert, progress)
    read = problem.read(graph, machine)
    names = [placers] if isinstance(placers, str) else list(placers)
    return Comparison(*_placement.compare(read, names, **options))


def judge(
    graph: problem.Source,
    machine: problem.Source,
    placement: problem.Source,
    *,
    objective: str = "makespan",
) -> Placement:
    """A placement from elsewhere (a dictionary or a file's path), verified and measured
    as `place` measures its own. Raises PlacementError with all that is wrong with it."""
    text, name = problem.text_of(placement, "placement")
    read = problem.read(graph, machine)
    return Placement(_placement.judge(read, text, name, objective))


def placers() -> list[str]:
    """Names of the placers."""
    return _placement.placers()


class Comparison:
    """What each placer makes of one problem; prints as the table of the tool."""

    def __init__(self, text: str, data: str):
        self._text = text
        self.report: dict[str, Any] = json.loads(data)
        """What `baechi-place --compare --json` writes."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A placer each: name, valid, seconds; where there is a placement makespan_ns and
        max_load_ns; where it is valid also gap, speed_up, peak_bytes, peak_share."""
        return self.report["placers"]

    @property
    def best(self) -> str | None:
        """The valid one that is best by the objective."""
        return self.report["best"]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        """In notebooks: a row a placer, with bars for the step's time."""
        return svg.comparison(self.report)


def _options(
    placer: str,
    grouping: Sequence[str] | None,
    objective: str,
    budget: str | float,
    seed: int,
    solver: str,
    expert: Mapping[str, str] | str | os.PathLike[str] | None,
    progress: Progress | None,
) -> dict[str, Any]:
    for name, value in (("placer", placer), ("objective", objective), ("solver", solver)):
        if not isinstance(value, str):
            raise TypeError(f"{name}: a name is wanted, not {value!r}")
    if not isinstance(budget, str | int | float):
        raise TypeError(f"budget: a text or a number of seconds is wanted, not {budget!r}")
    if not isinstance(seed, numbers.Integral) or not 0 <= int(seed) <= _LARGEST_SEED:
        raise ValueError(f"seed: an integer from 0 to 2^62 is wanted, not {seed!r}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: a function of a phase's name is wanted, not {progress!r}")
    return {
        "placer": placer,
        "grouping": [grouping]
        if isinstance(grouping, str)
        else grouping
        if grouping is None
        else list(grouping),
        "objective": objective,
        "budget": budget if isinstance(budget, str) else f"{budget:.9g}",
        "seed": int(seed),
        "solver": solver,
        "expert": _rules(expert),
        "progress": progress,
    }


def _rules(expert: Mapping[str, str] | str | os.PathLike[str] | None) -> str:
    """The text of an expert file."""
    if isinstance(expert, str | os.PathLike):
        return _placement.read_file(os.fspath(expert))
    if expert is not None and not isinstance(expert, Mapping):
        raise TypeError(f"expert: patterns to devices, or a path, is wanted, not {expert!r}")
    return "\n".join(f"{pattern} = {device}" for pattern, device in (expert or {}).items())
