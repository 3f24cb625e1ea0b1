# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a step that a GPU is still about when they have returned: when they end, and how."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import time
from typing import Any

from baechi.steps import gpu_memory
from baechi.steps.library_file import StepError

_NOT_READY = 600
_LOOKS_WITHOUT_SLEEP = 2000  # most steps take milliseconds
# Of the streams that DLPack names by numbers: the legacy one waits for every call.
LEGACY = (None, 0, 1)


class Ending:
    """The end of a call on a GPU. Until then it holds what the call reads and writes there."""

    def __init__(self, gpu: int, event: int, held: Any):
        """event: a CUevent, which is its own."""
        self._gpu, self._event = gpu, ctypes.c_void_p(event)
        self._held = held
        self._error: str | None = None

    def has_ended(self) -> bool:
        """Raises the StepError of a call that has failed."""
        if self._held is not None:
            with gpu_memory.selected(self._gpu):
                code = gpu_memory.try_call("cuEventQuery", self._event)
            if code == _NOT_READY:
                return False
            self._held = None
            if code:
                self._error = gpu_memory.name_of(code)
        if self._error is not None:
            raise StepError(
                f"a call that had returned failed on GPU {self._gpu}: {self._error} (to learn in "
                "which operator, set BAECHI_CUDA_BLOCKING=1)"
            )
        return True

    def wait(self) -> None:
        """The same, later."""
        looks = 0
        while not self.has_ended():
            looks += 1
            if looks > _LOOKS_WITHOUT_SLEEP:
                time.sleep(20e-6)

    def order(self, stream: int) -> None:
        """What a CUstream is told from now on comes after the call."""
        if self.has_ended() or stream in LEGACY:
            return
        with gpu_memory.selected(self._gpu):
            gpu_memory.call("cuStreamWaitEvent", ctypes.c_void_p(stream), self._event, 0)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            with contextlib.suppress(StepError):
                self.wait()
            with gpu_memory.selected(self._gpu):
                gpu_memory.try_call("cuEventDestroy_v2", self._event)


class Endings:
    """Of a program's calls that may not have ended, oldest first."""

    # More are not told to the GPU ahead: what they hold is memory.
    _MOST = 8

    def __init__(self) -> None:
        self._calls: collections.deque[Ending] = collections.deque()

    def add(self, ending: Ending) -> None:
        """Raises the StepError of an earlier call that has failed."""
        self._calls.append(ending)
        self.retire()
        while len(self._calls) > self._MOST:
            self._calls.popleft().wait()

    def __del__(self) -> None:
        # What they hold, results among it, nobody would let go.
        for call in self._calls:
            with contextlib.suppress(Exception):
                call.wait()

    def retire(self) -> None:
        """Lets go of what calls that have ended hold. Raises the StepError of one that has
        failed."""
        while self._calls:
            try:
                if not self._calls[0].has_ended():
                    return
            except StepError:
                self._calls.clear()  # nothing after it has run
                raise
            self._calls.popleft()
