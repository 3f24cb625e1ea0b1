# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluations of whole placements, counted: rewards, the best so far, the curve."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from baechi.graphs.evaluator import Evaluator
from baechi.graphs.native import PlacementError
from baechi.graphs.placement import Placement
from baechi.learned.features import View

POINT = np.dtype([("evaluations", np.int64), ("seconds", np.float64), ("best_ns", np.int64)])
# What a placement costs that cannot be, beside the square root of its time and its overflow.
_PENALTY = 1.0
_LARGEST_OVERFLOW = 4.0


class Trials:
    """The evaluator with a budget."""

    def __init__(
        self,
        evaluator: Evaluator,
        view: View,
        budget: int,
        title: str,
        tell: Callable[[str], object],
    ):
        self._evaluator, self._view, self._tell = evaluator, view, tell
        self.budget, self.spent = budget, 0
        self.title = title
        self.best_ns: int | None = None
        self._best: npt.NDArray[np.int32] | None = None
        self._closest: tuple[float, str, npt.NDArray[np.int32] | None] = (np.inf, "", None)
        self._curve: list[tuple[int, float, int]] = []
        self._began = time.process_time()

    @property
    def left(self) -> int:
        return self.budget - self.spent

    def seconds(self) -> float:
        return time.process_time() - self._began

    def costs(self, choices: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """[n, groups] of devices to [n] of costs, or to the first ones where the budget
        ends. A cost is the square root of the step, in units of the graph's whole work
        (Mirhoseini et al., 2017, section 3.1), and a penalty where a memory overflows."""
        rows = np.asarray(choices, np.int32)[: self.left]
        found = np.array([self._cost(row) for row in rows], np.float64)
        best = "none fits yet" if self.best_ns is None else f"best {self.best_ns / 1e6:.3f} ms"
        self._tell(f"{self.title}: {self.spent} of {self.budget} evaluations, {best}")
        return found

    def _cost(self, choice: npt.NDArray[np.int32]) -> float:
        assignment = choice[self._view.of_operator]
        self.spent += 1
        try:
            found = self._evaluator(assignment)
        except PlacementError as error:  # devices that cannot talk
            if self._closest[2] is None:
                self._closest = (np.inf, str(error), assignment)
            return 1 + _PENALTY + _LARGEST_OVERFLOW
        cost = float(np.sqrt(found.step_ns / self._view.work_ns))
        if found.fits:
            if self.best_ns is None or found.step_ns < self.best_ns:
                self.best_ns, self._best = found.step_ns, assignment
                self._curve.append((self.spent, self.seconds(), found.step_ns))
            return cost
        limit = self._evaluator.memory_limit
        above = np.maximum(found.peak_bytes - limit, 0)
        overflow = float((above / np.maximum(limit, 1)).sum())
        if overflow < self._closest[0]:
            device = int(above.argmax())
            text = f"{self._evaluator.devices[device]} was {above[device]:,} bytes above its limit"
            self._closest = (overflow, text, assignment)
        return cost + _PENALTY + min(overflow, _LARGEST_OVERFLOW)

    def best_placement(self) -> Placement:
        """Of what fits the fastest. Where nothing does, what came closest, if it fits when
        operators wait for memory; raises PlacementError if not."""
        if self._best is not None:
            return self._evaluator.place(self._best)
        _, text, assignment = self._closest
        assert assignment is not None
        try:
            placement = self._evaluator.place(assignment)
        except PlacementError as error:
            raise PlacementError(
                f"{self.title} found no placement within the memory limits in {self.spent} "
                f"evaluations (in the closest one {text}): give it more evaluations, or the "
                "devices more memory"
            ) from error
        self.best_ns = placement.step_ns
        return placement

    def points(self) -> npt.NDArray[Any]:
        """The curve; to be asked for after `best_placement`."""
        assert self.best_ns is not None
        return np.array([*self._curve, (self.spent, self.seconds(), self.best_ns)], POINT)
