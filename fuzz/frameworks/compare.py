# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether two results are the same, within what rounding explains.

A result that is within a few last digits of the framework's passes at once. Any other is
judged by the framework itself: evaluated in double precision, and again so with every
value that the program computes moved by a last digit of single precision (Vignes: A
stochastic arithmetic for reliable scientific computation, 1993). Our error may be a small
factor of what that does; where it decides integers, branches or whole numbers' digits, the
program decides nothing and is counted as such.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

# Of the tensor's largest element, in units of the last digit.
_CLOSE = 16
_FACTOR = 8  # of the framework's own error
_ILL = 1e-2  # an own error of the framework, of the largest element, that decides nothing


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of one result."""

    index: int
    words: str

    def __str__(self) -> str:
        return f"result {self.index}: {self.words}"


def differences(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], digit: float
) -> list[Difference]:
    """Where results are not within a few last digits of each other."""
    if len(ours) != len(theirs):
        return [Difference(-1, f"{len(ours)} results, not {len(theirs)}")]
    found = []
    for i, (mine, right) in enumerate(zip(ours, theirs, strict=True)):
        words = _difference(mine, right, digit)
        if words:
            found.append(Difference(i, words))
    return found


def _difference(mine: np.ndarray, right: np.ndarray, digit: float) -> str:
    if mine.dtype != right.dtype or mine.shape != right.shape:
        return f"{mine.dtype}{mine.shape}, not {right.dtype}{right.shape}"
    if not is_float(right):
        wrong = mine != right
        return _told(mine, right, wrong) if wrong.any() else ""
    a, b = mine.astype(np.float64), right.astype(np.float64)
    if not same_kinds(a, b):
        return _told(mine, right, kinds(a) != kinds(b))
    limit = _CLOSE * digit * scale(b)
    with np.errstate(invalid="ignore"):
        wrong = np.abs(a - b) > limit
    return _told(mine, right, wrong) if wrong.any() else ""


def judge(
    mine: np.ndarray,
    right: np.ndarray,
    exact: np.ndarray,
    nearby: Sequence[np.ndarray],
    digit: float,
) -> str:
    """'wrong', 'rounding' or 'unstable'. `exact`: the framework's result in double
    precision; `nearby`: the same with all values moved by a last digit."""
    if mine.dtype != right.dtype or mine.shape != right.shape:
        return "wrong"
    if not is_float(right):
        stable = all(np.array_equal(exact, other) for other in nearby)
        return "wrong" if stable and np.array_equal(exact, right) else "unstable"
    a, b, e = (x.astype(np.float64) for x in (mine, right, exact))
    others = [x.astype(np.float64) for x in nearby]
    if not all(same_kinds(x, e) for x in (b, *others)):
        return "unstable"
    if not same_kinds(a, e):
        return "wrong"
    size = scale(e)
    own = max([_largest(b - e), *(_largest(x - e) for x in others)])
    if _largest(a - e) > max(_FACTOR * own, _CLOSE * digit * size):
        return "wrong"
    return "unstable" if own > _ILL * size and digit < 1e-4 else "rounding"


def is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def kinds(array: np.ndarray) -> np.ndarray:
    """Which elements are numbers, infinities of a sign, NaN."""
    return np.where(np.isnan(array), 2, np.where(np.isinf(array), np.sign(array), 3))


def same_kinds(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(kinds(a), kinds(b)))


def scale(array: np.ndarray) -> float:
    return _largest(array)


def _largest(array: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.max(np.abs(array), where=np.isfinite(array), initial=0.0))


def _told(mine: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> str:
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ, at {list(at)}: {mine[at]} where the "
        f"framework has {right[at]}; largest {scale(right.astype(np.float64)):.4g}"
    )
