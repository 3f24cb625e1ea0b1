# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a step that go on while Python does: their order, their ends and their errors.

The extension's queue runs them one after the other (python/bindings/StepQueue.h); here is what
Python knows of each.
"""

from __future__ import annotations

import atexit
import collections
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from baechi.steps.library import StepLibrary
from baechi.steps.library_file import StepError


class Flight:
    """A call that was dispatched. `wait` raises the StepError of one that has failed."""

    def __init__(self, name: str, number: int, pending: Any):
        """pending: the extension's PendingCall."""
        self.pending = pending
        self.is_told = False  # whether an exception has named its failure
        self._call = f"call {number} of '{name}'"

    @property
    def has_failed(self) -> bool:
        return bool(self.pending.has_failed)

    def wait(self) -> None:
        self.pending.wait()
        if self.pending.has_failed:
            self.is_told = True
            raise self._error("")

    def error(self) -> StepError:
        """Of one that has failed, for whoever has not looked at its results."""
        self.is_told = True
        return self._error(", whose results nobody has looked at,")

    def _error(self, which: str) -> StepError:
        text = self.pending.error
        if self.pending.was_run:
            return StepError(f"{self._call}{which} failed: {text}")
        return StepError(
            f"{self._call} was not run, because it takes what an earlier call was to give, which "
            f"failed: {text}"
        )


class Dispatcher:
    """The calls of one program, oldest first."""

    def __init__(self, name: str, library: StepLibrary, queue: Any, turn: threading.RLock):
        """queue: the extension's, which the library waits for; turn: is held while the
        program is used."""
        self.last: Flight | None = None
        self._name, self._library, self._queue, self._turn = name, library, queue, turn
        self._given, self._process = 0, os.getpid()
        self._flights: collections.deque[Flight] = collections.deque()
        self._failed: list[Flight] = []
        self._ended_ns: list[int] = []
        _dispatchers.add(self)

    def add(self, pending: Any) -> Flight:
        self._given += 1
        self.last = Flight(self._name, self._given, pending)
        self._flights.append(self.last)
        return self.last

    def retire(self) -> None:
        """Notes what has ended, and gives back what it has read."""
        while self._flights and self._flights[0].pending.has_ended:
            flight = self._flights.popleft()
            flight.pending.wait()
            if not flight.pending.has_failed:
                self._ended_ns.append(flight.pending.wall_ns)
            elif flight.pending.was_run:  # the others have failed by its failure
                self._failed.append(flight)

    def settle(self) -> list[int]:
        """Waits for all calls; the nanoseconds of those that have ended well since the last
        time."""
        with self._turn:
            self._queue.settle()
            self.retire()
            ended, self._ended_ns = self._ended_ns, []
            return ended

    def raise_untold(self) -> None:
        """Raises the first failure that nobody has seen, of the calls that were retired."""
        while self._failed:
            flight = self._failed.pop(0)
            if not flight.is_told:
                raise flight.error()

    def is_forked(self, getpid: Callable[[], int] = os.getpid) -> bool:
        """Whether this is a child's copy, without the threads that run steps.

        getpid: the module's names are gone before the last of these at the process's end."""
        return getpid() != self._process

    def hold(self) -> None:
        self._queue.hold()

    def release(self) -> None:
        self._queue.release()

    def __del__(self) -> None:
        if self.is_forked():
            return
        # Python prints what is raised here.
        self._queue.end()
        self.retire()
        self.raise_untold()


_dispatchers: weakref.WeakSet[Dispatcher] = weakref.WeakSet()
_held: list[Dispatcher] = []


def _before_fork() -> None:
    """A child has no threads of ours, so nothing runs and no lock is held when it begins."""
    _held[:] = list(_dispatchers)
    for dispatcher in _held:
        dispatcher.hold()


def _after_fork() -> None:
    while _held:
        _held.pop().release()


def _at_exit() -> None:
    """A process ends when its steps have, and tells of those that failed unseen."""
    for dispatcher in list(_dispatchers):
        if dispatcher.is_forked():
            continue
        dispatcher.settle()
        while True:
            try:
                dispatcher.raise_untold()
                break
            except StepError as error:
                print(f"baechi: {error}", file=sys.stderr)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
atexit.register(_at_exit)
