# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placers that learn by policy gradients, as baselines; docs/learned.md.

They are small and are given a number of evaluations of whole placements to
spend. All but one train for one problem from nothing; `trained` is a policy
that was trained once on other graphs and learns nothing any more.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import numbers
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from baechi.graphs import placing, problem
from baechi.graphs.evaluator import Evaluator
from baechi.graphs.native import PlacementError
from baechi.graphs.placement import Placement
from baechi.learned import features
from baechi.learned.trials import POINT as POINT
from baechi.learned.trials import Trials

# By name: the module whose `train` it is, what it is called, and its groups by default.
_METHODS = {
    "colocrl": ("colocrl", "ColocRL", "auto"),
    "hierarchical": ("hierarchical", "HierarchicalRL", "units"),
    "placeto": ("placeto", "Placeto", "auto"),
    "placeto-ends": ("placeto_ends", "Placeto by ends", "auto"),
    "trained": ("trained", "Placeto, trained once", "auto"),
    "random": ("sampling", "random", "auto"),
}
METHODS = tuple(_METHODS)
TITLES = {name: title for name, (_, title, _) in _METHODS.items()}
GROUPINGS = ("auto", "units", "coplace")


_Train = Callable[[features.View, Trials, int], None]


@dataclasses.dataclass(frozen=True)
class Learned:
    """The best placement that was evaluated, and how the method came to it."""

    method: str
    placement: Placement
    """Verified; `placement.winner` is the method."""
    evaluations: int
    """Of whole placements, spent."""
    seconds: float
    """Of processors, in this process, with the compilation by JAX."""
    groups: int
    """What was placed: sets of operators on one device."""
    curve: npt.NDArray[Any]
    """[improvements + 1] of (evaluations, seconds, best_ns): the best placement within the
    memory limits so far; the last entry is the end."""

    def __repr__(self) -> str:
        return (
            f"<baechi.learned.Learned by {TITLES[self.method]}: step "
            f"{self.placement.step_ns / 1e6:.3f} ms after {self.evaluations} evaluations, "
            f"{self.seconds:.1f} s>"
        )


def learn(
    graph: problem.Source,
    machine: problem.Source,
    method: str = "colocrl",
    *,
    evaluations: int = 1000,
    seed: int = 0,
    grouping: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    progress: Callable[[str], object] | None = None,
) -> Learned:
    """Trains a placer for one problem and returns the best placement that it came across.

    graph, machine: as of `baechi.place`.
    method: `colocrl` (Mirhoseini et al., 2017), `hierarchical` (Mirhoseini et al., 2018),
        `placeto` (Addanki et al., 2019), rewarded for each decision, `placeto-ends`, for the
        end of each episode, `trained`: a policy that was trained on other graphs and only
        walks here, or `random`: independent uniform choices, what the others must beat.
    evaluations: of whole placements; nothing else ends the training.
    seed: of all random numbers. The same one gives the same placement and evaluations.
    grouping: what is put on one device before the method begins. `units`: what the graph's
        own groups ask for; `coplace`: the groups of co-placement (docs/placement.md), which
        are few; `auto`: the former up to 128 units, else the latter. None: `units` for
        `hierarchical`, which makes groups itself, `auto` for the others.
    policy: of `trained`: a file that `python -m baechi.learned` wrote; None: the one that
        comes with the package.
    progress: called with a text after every batch; None: on a terminal, a line there.

    Pins, kinds and groups hold. A placement above a memory limit is punished and is never
    the answer. Raises PlacementError where none within the limits was found.
    """
    if method not in _METHODS:
        raise PlacementError(f"unknown method '{method}': use one of {', '.join(METHODS)}")
    for name, value, least in (("evaluations", evaluations, 1), ("seed", seed, 0)):
        if (
            not isinstance(value, numbers.Integral)
            or isinstance(value, bool)
            or not least <= int(value) < 2**31
        ):
            raise ValueError(
                f"{name}: an integer from {least} to 2^31 - 1 is wanted, not {value!r}"
            )
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: a function of a text is wanted, not {progress!r}")
    module, title, default = _METHODS[method]
    grouping = default if grouping is None else grouping
    if grouping not in GROUPINGS:
        raise PlacementError(f"unknown grouping '{grouping}': use one of {', '.join(GROUPINGS)}")
    if policy is not None and method != "trained":
        raise ValueError(
            f"policy: '{method}' begins with none; leave it out, or use the method 'trained'"
        )
    own = _module(module)
    evaluator = Evaluator(graph, machine)
    if not evaluator.names:
        raise PlacementError("graph: it has no operators, so there is nothing to learn")
    view = features.view(graph, machine, evaluator, grouping)
    train: _Train = own.trainer(graph, machine, policy) if method == "trained" else own.train
    with _Line(progress) as tell:
        trials = Trials(evaluator, view, int(evaluations), title, tell)
        train(view, trials, int(seed))
    return Learned(
        method,
        _placement(graph, machine, method, trials),
        trials.spent,
        trials.seconds(),
        view.count,
        trials.points(),
    )


def _module(name: str) -> Any:
    """With `train`; `trained` has a `trainer`, as its policy is read and sees the problem."""
    try:
        return importlib.import_module(f"baechi.learned.{name}")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"baechi.learned needs the package '{error.name}': pip install '.[import]' in a "
            "checkout of Baechi",
            name=error.name,
        ) from error


def _placement(
    graph: problem.Source, machine: problem.Source, method: str, trials: Trials
) -> Placement:
    """The best assignment as a placement, judged once more from its file."""
    file = json.loads(trials.best_placement()._result.placement_file())
    return placing.judge(graph, machine, file | {"algorithm": method})


class _Line:
    """The user's function, or a line on the terminal that is taken away at the end."""

    def __init__(self, progress: Callable[[str], object] | None):
        self._own = progress
        self._shown = False

    def __enter__(self) -> Callable[[str], object]:
        return self._own or self._show

    def _show(self, text: str) -> None:
        if sys.stderr.isatty():
            self._shown = True
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
