# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules on their way from an importer's MLIR to the compiler's.

As text, writing and reading them takes longer than much of what is done to them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

# Of MLIR's bytecode: operations' properties go by their names, as in text. Later versions have
# them in the order that the writer's dialects know, and the reader is of another MLIR.
VERSION = 4


@dataclasses.dataclass(frozen=True)
class Bytecode:
    """A module in MLIR's bytecode, without what its arguments begin with.

    first_values: the `baechi.init` of each, as text: `[{kind = ...}, ...]`.
    is_plain: any MLIR reads it; others need the dialects of the importer's.
    write: makes the text of a module and its first values.
    """

    code: bytes
    first_values: str
    is_plain: bool
    write: Callable[[bytes, str], str] = dataclasses.field(compare=False)

    @functools.cached_property
    def text(self) -> str:
        return self.write(self.code, self.first_values)


def text_of(module: str | Bytecode) -> str:
    return module.text if isinstance(module, Bytecode) else module
