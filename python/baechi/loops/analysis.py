# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a traced body to the verdict of the analysis, which is lib/Loops'."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from baechi.loops.accesses import Access
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError
from baechi.loops.positions import Position
from baechi.loops.tracing import Body


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What of a loop may run at once.

    scheme: "independent", "disjoint", "wavefront", "skewed", "timed" or "serial".
    text: the scheme in words. explanation: with what forbids a better one.
    dependences: (access, access, distances of the keys).
    reduced: arrays that each block sums up for itself.
    plans: what was simulated of the schemes that the loop has, that which it runs by first.
    """

    scheme: str
    text: str
    explanation: str
    dependences: list[tuple[str, str, str]]
    reduced: list[int]
    native: Any = dataclasses.field(repr=False)
    plans: list[str] = dataclasses.field(default_factory=list)


def analyse(
    body: Body,
    entries: Entries,
    arrays: Sequence[jax.ShapeDtypeStruct],
    ordered: bool,
    reassociate: bool,
    buffered: Sequence[str],
) -> Analysis:
    """Raises LoopError."""
    try:
        from baechi import _loops
    except ImportError as error:
        raise ImportError(
            "baechi.foreach needs baechi's extension _loops: build it (scripts/build release)"
        ) from error
    unknown = [name for name in buffered if name not in body.names]
    if unknown:
        raise LoopError(
            f"buffered has '{unknown[0]}', and the body's arrays are {', '.join(body.names)}"
        )
    for name, array in zip(body.names, arrays, strict=True):
        if name in buffered and array.dtype == bool:
            raise LoopError(
                f"buffered has '{name}', which is of bool, and what blocks change is added up: "
                f"give it as numbers, {name}.astype(np.int32)"
            )
    if ordered and buffered:
        raise LoopError(
            "an ordered loop has buffered arrays, whose writes are seen late: give up one"
        )
    sets = {access.array for access in body.accesses if access.joins == "set"}
    try:
        native = _loops.analyse(
            [(name, *bounds) for name, bounds in zip(entries.names, entries.bounds, strict=True)],
            [
                (
                    name,
                    list(array.shape),
                    array.dtype.itemsize,
                    name in buffered,
                    # Sums are exact in any order, and so is what is set to one number.
                    np.issubdtype(array.dtype, np.integer) or n in sets,
                )
                for n, (name, array) in enumerate(zip(body.names, arrays, strict=True))
            ],
            [
                (a.array, a.kind, [_subscript(p) for p in a.positions], _place(a))
                for a in analysed(body)
            ],
            ordered,
            reassociate,
        )
    except ValueError as error:
        raise LoopError(str(error)) from None
    return Analysis(
        native.scheme,
        native.text,
        native.explanation,
        native.dependences,
        list(native.reduced),
        native,
    )


def analysed(body: Body) -> list[Access]:
    """x[i] += f is one access."""
    return [
        access for access in body.accesses if access.writes or not (access.adds or access.joins)
    ]


def _place(access: Access) -> str:
    place = access.place.rstrip(": ")
    if access.known or not access.source:
        return place
    return f"{place}, `{access.source}`"


def _subscript(position: Position) -> tuple[str, list[int], int, int]:
    if not position.known:
        return "unknown", [], 0, 1
    if position.whole:
        return "all", [], 0, 1
    return "at", list(position.factors), position.constant, position.size
