# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of a loop's schemes it runs by: lib/Loops simulates each with some of the entries."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from baechi.loops.analysis import Analysis
from baechi.loops.entries import Entries
from baechi.loops.tracing import Body

# More of them change no choice, and take longer than what is chosen.
_SAMPLE = 1 << 15


def choose(
    analysis: Analysis, body: Body, entries: Entries, buffered: Sequence[str], workers: int
) -> Analysis:
    """The best scheme whose blocks can cut the arrays; where there is none, or nothing to choose
    from, what has been analysed."""
    if analysis.scheme == "serial" or not len(entries) or not analysis.native.axes:
        return analysis
    some = _some(len(entries))
    columns = [column[some].tolist() for column in entries.keys]
    each = len(entries) / len(columns[0])
    plans = analysis.native.plans(columns, each, workers)
    fit = [plan for plan in plans if _can_cut(plan, body, entries, buffered)]
    if not fit:
        return analysis
    best = fit[0]
    return dataclasses.replace(
        analysis,
        scheme=best.scheme,
        text=best.text,
        explanation=best.explanation,
        reduced=list(best.reduced),
        plans=[plan.plan for plan in fit],
        native=best,
    )


def _some(count: int) -> np.ndarray:
    """Numbers of entries, as far from each other as can be: entries are often listed by their
    keys, of which steps of one length would take always the same ones."""
    if count <= _SAMPLE:
        return np.arange(count)
    return (np.arange(1, _SAMPLE + 1) * 0.6180339887498949 % 1 * count).astype(np.int64)


def _can_cut(plan: Any, body: Body, entries: Entries, buffered: Sequence[str]) -> bool:
    """Whether each array that blocks write has one of the plan's axes, as `lay_out` looks for."""
    spread = (np.array([upper - lower for lower, upper in entries.bounds]) - 1) @ np.abs(
        np.array(plan.axes).T
    )
    if not any(s > 0 and parts > 1 for s, parts in zip(spread, plan.parts, strict=True)):
        return True  # one block
    written = {access.array for access in body.accesses if access.writes}
    return all(
        number in plan.reduced
        or body.names[number] in buffered
        or any(plan.home(number, axis) is not None for axis in plan.axes)
        for number in written
    )
