# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file of a step library: whether it may be loaded, and what is wrong with it."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import stat

# What `baechi-run --emit=so` ends the file with: this and a SHA-256 in hexadecimal digits.
_SEAL = b"\nbaechi-sha256 "
_SEAL_BYTES = len(_SEAL) + 64 + 1


class StepError(RuntimeError):
    """A step that did not end well; the message is the runtime's own."""


def check(file: pathlib.Path) -> None:
    """Refuses code that is not as it was written, before any of it is mapped."""
    try:
        # A pipe that nobody writes to is not waited for.
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as stream:
            mode = os.fstat(opened).st_mode
            if not stat.S_ISREG(mode):
                raise StepError(f"{file}: no regular file, so no step library")
            content = stream.read()
    except OSError as error:
        raise StepError(f"{file}: cannot be read: {error.strerror}") from error
    if mode & stat.S_IWOTH:
        raise StepError(
            f"{file}: everybody may write it (mode {stat.S_IMODE(mode):o}), so its code is not run"
        )
    code, seal = content[:-_SEAL_BYTES], content[-_SEAL_BYTES:]
    if not seal.startswith(_SEAL):
        raise StepError(
            f"{file}: cut short, stripped or no step library: it does not end with the hash that "
            "baechi-run --emit=so writes"
        )
    if hashlib.sha256(code).hexdigest().encode() != seal[len(_SEAL) : -1]:
        raise StepError(
            f"{file}: damaged: its hash is not the one that it was written with; write it again"
        )


def renamed(file: pathlib.Path, prefix: str) -> str:
    """What is wrong with a file whose functions have other names than its own."""
    # In the table of the symbols' names.
    found = re.search(rb"\0([A-Za-z_]\w*)_open_with\0", file.read_bytes())
    if not found:
        return f"{file}: no step library: it lacks functions '{prefix}_open', '{prefix}_run', ..."
    there = found[1].decode()
    if there == prefix:
        return (
            f"{file}: written by an earlier version of Baechi, without '{prefix}_call': write it "
            f"again with baechi-run --emit=so --output={file.name}"
        )
    return (
        f"{file}: renamed: its functions begin with '{there}_', by its name with '{prefix}_'; "
        f"call the file {there}.so, or write it again with "
        f"baechi-run --emit=so --output={file.name}"
    )
