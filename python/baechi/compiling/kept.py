# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What front ends keep beside compiled kernels, in the same store (docs/kernel-store.md)."""

from __future__ import annotations

import pathlib
from typing import Any

from baechi.compiling import caches, compiler, tools


class KeptBytes:
    """Bytes by keys that tell all they were made of. What cannot be kept is made again."""

    def __init__(self, extension: Any, folder: pathlib.Path):
        self._extension, self._folder = extension, str(folder)

    def take(self, key: bytes) -> bytes | None:
        found: bytes | None = self._extension.take_kept(self._folder, key)
        return found

    def keep(self, key: bytes, value: bytes) -> None:
        self._extension.keep(self._folder, key, value)


def kept_bytes() -> KeptBytes | None:
    """Those of this user; None where steps are compiled in other processes."""
    try:
        if not compiler.is_in_process():
            return None
    except tools.CompileError:  # no compiler at all: whoever compiles tells it
        return None
    return KeptBytes(compiler.extension(), caches.folder() / "kernels")
