# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Before each call of a step that processes make together, all of them say what they call: who
calls another one, or fails before it can, is an error of all, and none waits for a call that does
not come."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from baechi.common import board
from baechi.common.launch import Launch
from baechi.compiling.tools import CompileError


class Roll:
    """This process's part. One for all steps, so that their order is looked at, too."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._folder = board.place_of(launch, "roll", 0).with_suffix("")
        self._calls, self._kept = 0, 1
        self._processes: dict[int, int] = {}
        atexit.register(self._leave)

    def meet(self, program: str, what: str, is_fresh: bool) -> bool:
        """Waits for all ranks; a rank that lives may come late. program: tells programs apart.
        what: for people. Gives whether this call is the first of any, of those that it makes
        together with the others. Raises CompileError where one calls something else, has failed
        or has ended."""
        self._say({"program": program, "what": what, "fresh": is_fresh})
        others = [rank for rank in range(self._launch.ranks) if rank != self._launch.rank]
        for rank in others:
            said = self._heard(rank)
            if "error" in said:
                raise CompileError(f"rank {rank} has failed, and calls nothing: {said['error']}")
            if said["program"] != program:
                same = " with other static arguments, or other code" * (said["what"] == what)
                raise CompileError(
                    f"rank {rank} calls another step, or the step with other arguments, than rank "
                    f"{self._launch.rank}: {said['what']}{same}, and here {what}: give all ranks "
                    "the same, in the same order"
                )
            is_fresh = is_fresh or said["fresh"]
        # All have come, so they have read what was said before.
        for call in range(self._kept, self._calls):
            self._file(call, self._launch.rank).unlink(missing_ok=True)
        self._kept = self._calls
        return is_fresh

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """What fails within is told in place of a call, and waits for nobody."""
        try:
            yield
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, error: BaseException) -> None:
        """Tells it in place of a call."""
        with contextlib.suppress(OSError):  # of a full disk, say
            self._say({"error": str(error) or type(error).__name__})

    def _file(self, call: int, rank: int) -> pathlib.Path:
        return self._folder / f"{call}-{rank}.json"

    def _say(self, said: dict[str, Any]) -> None:
        self._calls += 1
        self._folder.mkdir(mode=0o700, exist_ok=True)
        board.write(self._file(self._calls, self._launch.rank), said | {"pid": os.getpid()})

    def _heard(self, rank: int) -> dict[str, Any]:
        file = self._file(self._calls, rank)
        looks = board.looks()
        while True:
            waited = next(looks)
            said = board.read(file)
            known = self._processes.get(rank)
            # Nor what an earlier job has left.
            if said is not None and (said["pid"] == known or board.lives(said["pid"])):
                self._processes[rank] = said["pid"]
                return said
            if known is None and waited > board.PATIENCE:
                raise CompileError(
                    f"rank {rank} has called no step after {board.PATIENCE:.0f} s: all ranks call "
                    "it"
                )
            if known is not None and not board.lives(known) and board.read(file) is None:
                raise CompileError(f"rank {rank} has ended, and has not called the step")

    def _leave(self) -> None:
        """What others may not have read yet stays."""
        if self._kept == self._calls:
            with contextlib.suppress(OSError):
                self._file(self._calls, self._launch.rank).unlink(missing_ok=True)
                self._folder.rmdir()  # the last one


@functools.cache
def roll_of(launch: Launch) -> Roll:
    return Roll(launch)
