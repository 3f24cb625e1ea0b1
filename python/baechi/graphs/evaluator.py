# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assignments of one problem, evaluated many times: what learned placers train against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from baechi.graphs import problem
from baechi.graphs.native import _placement
from baechi.graphs.placement import Placement

Assignment: TypeAlias = "npt.ArrayLike | Mapping[str, str]"
Order: TypeAlias = "npt.ArrayLike | Sequence[str] | None"


class _Step(NamedTuple):
    step_ns: int
    """Time of the step; the largest number of 64 bits where there is none (`problem`)."""
    peak_bytes: npt.NDArray[np.int64]
    """[devices]: the most that each holds at any time, bytes."""
    fits: bool
    """There is a step, and no peak is above its device's memory."""


class Evaluation(_Step):
    """A step as the list scheduler runs it, without a look at the memory limits: the tuple
    (step_ns, peak_bytes, fits)."""

    problem: str = ""
    """Why there is no step: two operators on devices that must talk, have no link, and that
    no other devices join. Empty: there is one."""


class _Steps(NamedTuple):
    step_ns: npt.NDArray[np.int64]
    """[n]: times of the steps; the largest number of 64 bits where there is none."""
    peak_bytes: npt.NDArray[np.int64]
    """[n, devices], bytes."""


class Evaluations(_Steps):
    """The steps of many assignments: the tuple (step_ns, peak_bytes)."""

    fits: npt.NDArray[np.bool_]
    """[n] of bool: there is a step, and no peak is above its device's memory."""
    problems: dict[int, str]
    """Why there is no step (as `Evaluation.problem`), by the number of the assignment."""


class Evaluator:
    """A graph on a machine; see `baechi.place` for both.

    An assignment is a device's number or name an operator (an array [operators]; one of
    int32 is taken without a copy), or a dictionary of all operators' names to devices'
    names. What cannot be, for a kind, a pin or a group, raises PlacementError:
    `units` and `allowed` say what can. A tensor goes to a device directly, or where there is
    no link over others, as in `baechi.place`; an assignment whose devices cannot talk where
    they must does not fit (`Evaluation.problem`).

    An order is operators' numbers (an array [operators] with each once) or names, the most
    urgent first: of the operators that are ready, a device runs the most urgent. None: by
    the longest path to the end of the step, transfers included.

    Every call releases the interpreter's lock. Calls of one evaluator wait for each other:
    threads that shall run at the same time need one each.
    """

    def __init__(self, graph: problem.Source, machine: problem.Source):
        self._of(problem.read(graph, machine))

    def _of(self, read: _placement.Problem) -> None:
        self._own = _placement.Evaluator(read)
        self._problem = read
        self.names: list[str] = read.operators
        """Of the operators, [operators]."""
        self.devices: list[str] = read.devices
        """Names of the devices, [devices]."""
        self.memory_limit: npt.NDArray[np.int64] = read.memory
        """[devices], bytes."""
        self.units: npt.NDArray[np.int32] = self._own.units
        """[operators]: operators of one number (from 0) must be on one device."""
        self.allowed: npt.NDArray[np.bool_] = self._own.allowed
        """[units, devices] of bool: where kinds and pins let a unit be."""

    def __getstate__(self) -> _placement.Problem:
        """For pickles and copies, which have caches of their own."""
        return self._problem

    def __setstate__(self, state: _placement.Problem) -> None:
        self._of(state)

    def coplaced(self) -> npt.NDArray[np.int32]:
        """[operators]: those of one number are better on one device, as co-placement (the
        grouping step `coplace`) has it: few groups, which keep units together."""
        return self._problem.coplaced_groups()

    def __call__(self, assignment: Assignment, order: Order = None) -> Evaluation:
        """The step's time and every device's peak."""
        step, peaks, problem = self._own.evaluate(self._numbers(assignment), self._order(order))
        fits = not problem and bool((peaks <= self.memory_limit).all())
        found = Evaluation(step, peaks, fits)
        found.problem = problem
        return found

    def step_ns(self, assignment: Assignment, order: Order = None) -> int:
        """The step's time alone, in ns: faster, as memory is not replayed. Raises
        PlacementError where devices that must talk cannot."""
        return self._own.step_ns(self._numbers(assignment), self._order(order))

    def many(self, assignments: npt.ArrayLike) -> Evaluations:
        """[n, operators] of devices' numbers to the steps' times [n], ns, and the peaks
        [n, devices], bytes. One whose devices cannot talk costs the others nothing: see
        `Evaluations.fits` and `.problems`."""
        rows = np.asarray(assignments)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise ValueError(
                f"the assignments have the shape {rows.shape}: [n, {len(self.names)}] is wanted"
            )
        steps, peaks, problems = self._own.evaluate_many(_integers(rows, "assignment"))
        found = Evaluations(steps, peaks)
        fits = np.asarray((peaks <= self.memory_limit).all(axis=1))
        fits[list(problems)] = False
        found.fits = fits
        found.problems = problems
        return found

    def place(self, assignment: Assignment, order: Order = None) -> Placement:
        """The assignment as a placement: scheduled within the memory limits, verified, with
        the lower bound. Raises PlacementError where no order of the steps fits."""
        return Placement(self._own.place(self._numbers(assignment), self._order(order)))

    def _numbers(self, assignment: Any) -> npt.NDArray[np.int32]:
        if isinstance(assignment, Mapping):
            if without := next((name for name in self.names if name not in assignment), None):
                raise _placement.PlacementError(
                    f"the assignment names no device for the operator '{without}'"
                )
            assignment = [assignment[name] for name in self.names]
        given = np.asarray(assignment)
        if given.dtype.kind == "U":
            number = {name: i for i, name in enumerate(self.devices)}
            if unknown := next((name for name in given.flat if name not in number), None):
                raise _placement.PlacementError(
                    f"there is no device '{unknown}': they are {', '.join(self.devices)}"
                )
            given = np.vectorize(number.__getitem__, otypes=[np.int32])(given)
        return _integers(given, "assignment", dimensions=1)

    def _order(self, order: Any) -> npt.NDArray[np.int32] | None:
        if order is None:
            return None
        if len(order) > 0 and isinstance(order[0], str):
            number = {name: i for i, name in enumerate(self.names)}
            if unknown := next((name for name in order if name not in number), None):
                raise _placement.PlacementError(f"there is no operator '{unknown}'")
            order = [number[name] for name in order]
        found = _integers(order, "order", dimensions=1)
        if len(found) != len(self.names):
            raise _placement.PlacementError(
                f"the order has {len(found)} entries and the graph {len(self.names)} operators"
            )
        return found


def evaluate(
    graph: problem.Source,
    machine: problem.Source,
    assignment: Assignment,
    order: Order = None,
) -> Evaluation:
    """The step's time and memory for one assignment. For many, keep an `Evaluator`."""
    return Evaluator(graph, machine)(assignment, order)


def _integers(values: Any, what: str, dimensions: int = 2) -> npt.NDArray[np.int32]:
    found = np.asarray(values)
    if found.ndim != dimensions or (found.size and not np.issubdtype(found.dtype, np.integer)):
        raise TypeError(
            f"the {what} is {found.dtype} of shape {found.shape}: [operators] of integers is wanted"
        )
    limits = np.iinfo(np.int32)
    if found.size and (found.max() > limits.max or found.min() < limits.min):
        raise _placement.PlacementError(f"the {what} has a number that is no 32-bit integer")
    return np.ascontiguousarray(found, np.int32)
