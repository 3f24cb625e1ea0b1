# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that appear whole or not at all."""

from __future__ import annotations

import itertools
import os
import pathlib

_COUNT = itertools.count()


def write(path: pathlib.Path, data: bytes) -> None:
    """Makes the file beside its place and renames it, so that nobody sees a part
    of it; never writable by everybody. A device or a pipe is written directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = pathlib.Path(os.path.realpath(path))
    temporary = target.with_name(f"{target.name}.{os.getpid()}.{next(_COUNT)}.new")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
