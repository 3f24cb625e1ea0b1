# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether two results are equal but for rounding."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from baechi.checking.options import CheckOptions, is_floating

# The framework's own results, several times, of what is changed in its last bits.
Disturbed = Callable[[], Sequence[Sequence[np.ndarray]]]

# A result may differ by so many times what rounding its arguments changes,
_OF_ROUNDING = 10.0
# and by so many times what a unit in the last place of all values of short types changes.
# Rounding is half a unit; two operations that are computed as one are not rounded between.
_OF_SHORT = 3.0
# A result of which rounding changes that part is nothing but rounding: a gradient that is zero,
# of a bias before a normalization.
_NOISE = 0.5


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first result that differs. error, allowed: parts of the largest element."""

    index: int
    error: float
    allowed: float
    text: str  # "0.5 where jax.jit has 1.0 at [2, 3]; ..."


@dataclasses.dataclass(frozen=True)
class Suspect:
    """The first operation whose values differ, or the last of `others` + 1 that may be."""

    operator: str
    primitive: str
    source: str
    text: str
    others: int

    def __str__(self) -> str:
        before = f" (or one of the {self.others} operations before it)" if self.others else ""
        return f"first at '{self.operator}' ({self.primitive}), {self.source}{before}: {self.text}"


def first_difference(
    ours: Sequence[np.ndarray],
    theirs: Sequence[np.ndarray],
    options: CheckOptions,
    reference: str,
    disturbed: Disturbed,
    shortened: Disturbed = tuple,
) -> Difference | None:
    """Compares results in their order; reference: what `theirs` is called.

    A number's error is measured against the largest element of the result. Where that is beyond a
    tolerance that is not the user's own, the step may compute in short types, and this result may
    depend on them: then it may also be three times what is `shortened` changes (nothing, where it
    does not). Or the step is badly conditioned (ReLU's corners, Adam's first division of a gradient
    by its own size): then ten times what `disturbed` arguments change, too; and it may be anything
    finite where either changes half of it.
    """
    short, changed = functools.cache(shortened), functools.cache(disturbed)

    def most(runs: Sequence[Sequence[np.ndarray]], index: int) -> float:
        return max((_error(run[index], theirs[index])[0] for run in runs), default=0.0)

    for index, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
        tolerance = options.of(their.dtype)
        if (mine.shape, mine.dtype) != (their.shape, their.dtype):
            kinds = [f"{a.dtype} of shape {a.shape}" for a in (mine, their)]
            text = f"{kinds[0]} where {reference} has {kinds[1]}"
            return Difference(index, math.inf, tolerance, text)
        error, at = _error(mine, their)
        if error <= tolerance:
            continue
        allowed = tolerance
        if not options.binds(their.dtype):
            of_short = most(short(), index)
            allowed += _OF_SHORT * of_short
            if error <= allowed:
                continue
            of_arguments = most(changed(), index)
            allowed += _OF_ROUNDING * of_arguments
            noise = max(of_short, of_arguments) >= _NOISE
            if error <= allowed or (noise and math.isfinite(error)):
                continue
        place = f" at [{', '.join(map(str, at))}]" if at else ""
        text = f"{mine[at]} where {reference} has {their[at]}{place}"
        if is_floating(their.dtype) and math.isfinite(error):
            text += f"; off by {error:.1e} of the largest element, {allowed:.1e} is allowed"
        return Difference(index, error, allowed, text)
    return None


def _error(mine: np.ndarray, their: np.ndarray) -> tuple[float, tuple[int, ...]]:
    """The largest difference as a part of the largest finite element, and where it is.
    Infinite where one is not finite and the other is another, or where integers differ."""
    if not their.size:
        return 0.0, ()
    if not is_floating(their.dtype):
        wrong = mine != their
        return (math.inf if wrong.any() else 0.0), _place(wrong)
    a, b = mine.astype(np.float64), their.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        unlike = ~same & ~(np.isfinite(a) & np.isfinite(b))
        if unlike.any():
            return math.inf, _place(unlike)
        distance = np.where(same, 0.0, np.abs(a - b))
    largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    # Where all is zero but for rounding, of the smallest number that is exact to its last bit.
    scale = max(float(largest), float(np.finfo(np.float32).tiny))
    return float(distance.max()) / scale, _place(distance)


def _place(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(values.argmax()), values.shape))
