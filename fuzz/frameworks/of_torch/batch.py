# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs PyTorch programs, one after the other: eagerly, and by Baechi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from baechi.importer.common.errors import ImportFailure
from frameworks import compare
from frameworks.of_torch.generate import Program
from frameworks.of_torch.tools import NAMES, Eager, Ours
from frameworks.verdict import Verdict, of_error

_NEARBY = 4
_DIGIT = 2.0**-23


def machine(seed: int) -> str:
    return f"host:{1 + seed % 2}"


def run(programs: Sequence[Program], seed: int) -> list[Verdict]:
    return [_run(program) for program in programs]


def _run(program: Program) -> Verdict:
    try:
        theirs = _noted(program, Eager())
    except Exception as error:  # what PyTorch does not take decides nothing
        return of_error("invalid", error)
    try:
        ours = _noted(program, Ours(machine(program.seed)))
    except ImportFailure as error:
        return of_error("refused", error)
    except Exception as error:  # a valid program
        cause = error.__cause__ if isinstance(error.__cause__, ImportFailure) else None
        return of_error("refused", cause) if cause else of_error("failed", error)
    return _judged(program, ours, theirs)


def _judged(program: Program, ours: list[np.ndarray], theirs: list[np.ndarray]) -> Verdict:
    found = compare.differences(ours, theirs, _DIGIT)
    if not found:
        return Verdict("equal")
    if len(ours) != len(theirs):
        return Verdict("wrong", str(found[0]))
    nearby = [_noted(program, Eager(moved=1 + n)) for n in range(_NEARBY)]
    worst = Verdict("rounding")
    for each in found:
        i = each.index
        others = [x[i] for x in nearby]
        said = compare.judge(ours[i], theirs[i], theirs[i], others, _DIGIT)
        if said == "wrong":
            return Verdict("wrong", str(each))
        if said == "unstable":
            worst = Verdict("unstable", str(each))
    return worst


def _noted(program: Program, tools: Eager) -> list[np.ndarray]:
    """All that the loop noted, the model's state at the end, and what PyTorch's generator
    would draw next."""
    torch._dynamo.reset()
    scope: dict[str, Any] = dict(NAMES)
    exec(compile(program.source, f"program {program.seed}", "exec"), scope)
    scope["train"](tools)
    return [value.numpy() for value in [*tools.noted, torch.rand(3)]]
