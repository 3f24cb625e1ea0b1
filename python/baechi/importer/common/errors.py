# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors that the importer reports to its user, without a traceback."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


class ImportFailure(Exception):
    """The model cannot be imported; the message says why and what to do."""


@dataclasses.dataclass(frozen=True)
class Unsupported:
    """An operation that has no lowering to linalg."""

    operation: str  # "stablehlo.sort"
    scope: str  # "encoder/l0/sort"
    source: str  # "model.py:12:4"
    reason: str = ""  # where it is not that a lowering is missing

    def __str__(self) -> str:
        scope = f" in '{self.scope}'" if self.scope else ""
        place = f"{self.source}: {self.operation}{scope}"
        return f"{place}: {self.reason}" if self.reason else place


class UnsupportedOperations(ImportFailure):
    """All operations of a model that are unsupported, each once. `guide` is the
    page that says what is supported; `notes`, what concerns several of them."""

    def __init__(
        self,
        operations: Sequence[Unsupported],
        guide: str = "docs/import.md",
        notes: Sequence[str] = (),
    ):
        self.operations = list(dict.fromkeys(operations))
        self._guide, self._notes = guide, tuple(notes)
        count = len(self.operations)
        heading = "1 operation has" if count == 1 else f"{count} operations have"
        lines = [f"{heading} no lowering to linalg:"]
        lines += [f"  {operation}" for operation in self.operations]
        lines += notes
        lines.append(f"{guide} lists what is supported and how to write the rest.")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """An exception's own gives the message to the constructor."""
        return type(self), (self.operations, self._guide, self._notes)
