# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands with what they cost: processor seconds and peak memory of one process."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import tempfile
import time
from collections.abc import Sequence

from baechi.compiling import tools

# What makes a Python of our own find this package.
SEARCH = {
    "PYTHONPATH": os.pathsep.join(
        [str(pathlib.Path(__file__).resolve().parents[2]), *filter(None, [os.getenv("PYTHONPATH")])]
    )
}


@dataclasses.dataclass(frozen=True)
class Cost:
    cpu_s: float  # user and system, all threads
    wall_s: float
    peak_mib: float  # resident


@dataclasses.dataclass(frozen=True)
class Done:
    code: int
    output: str
    errors: str
    cost: Cost


def run(command: Sequence[object], environment: dict[str, str] | None = None) -> Done:
    """Runs a command to its end, whatever that is. Processor seconds, unlike seconds,
    do not depend on what else the machine does."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        actions = [
            (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        environment = {**os.environ, **(environment or {})}
        begin = time.monotonic()
        child = os.posix_spawnp(words[0], words, environment, file_actions=actions)
        _, status, used = os.wait4(child, 0)
        wall_s = time.monotonic() - begin
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    cost = Cost(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)
    return Done(os.waitstatus_to_exitcode(status), texts[0], texts[1], cost)


def tool(name: str, *arguments: object) -> Done:
    """Runs one of Baechi's tools."""
    return run([tools.find(name), *arguments])


def first_error(done: Done) -> str:
    """What a command that failed says, in a line."""
    lines = [line.partition("error: ")[2] for line in done.errors.splitlines() if "error: " in line]
    return lines[0] if lines else done.errors.strip()[-300:] or f"exit status {done.code}"


def checked(done: Done, what: pathlib.Path | str) -> Done:
    """The same. Raises CompileError unless the command succeeded."""
    if done.code != 0:
        raise tools.CompileError(f"{what}: {first_error(done)}")
    return done
