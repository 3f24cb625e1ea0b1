# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ranks of one machine tell each other by files, which nobody else of the machine reads."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from baechi.common.launch import Launch

# Seconds that ranks wait for one that has not been seen yet.
PATIENCE = 120.0


def place_of(launch: Launch, what: str, number: int) -> pathlib.Path:
    """Where rank 0 of this job tells the others of the so manieth thing."""
    job = hashlib.blake2b(f"{launch.launcher}.{launch.job}".encode(), digest_size=8).hexdigest()
    return pathlib.Path(tempfile.gettempdir()) / f"baechi-{what}-{os.getuid()}-{job}-{number}.json"


def write(file: pathlib.Path, said: dict[str, Any]) -> None:
    """At once: nobody reads a part."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    with os.fdopen(handle, "w", encoding="utf-8") as written:
        json.dump(said, written)
    os.replace(name, file)


def read(file: pathlib.Path) -> dict[str, Any] | None:
    try:
        with file.open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_uid != os.getuid():
                return None  # not ours
            return dict(json.load(opened))
    except FileNotFoundError:
        return None


def lives(process: int) -> bool:
    """Nor one that has ended, and nobody has asked how."""
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def looks() -> Iterator[float]:
    """The seconds since the first one, without end, ever less often."""
    begun, pause = time.monotonic(), 0.001
    while True:
        yield time.monotonic() - begun
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
