# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a long first call is doing: a bar, or a line for each phase.

Who compiles opens `shown`; who does a part of it says `phase`, wherever it is called from.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

# In this order, as far as a program needs them; `measure` may come back.
PHASES = ("import", "form", "compare", "fit", "measure", "place", "lower", "compile", "link")
_DELAY = 1.0  # seconds before a bar is drawn
_EVERY = 0.25  # seconds between two drawings


class _Watched(threading.local):
    """What this thread compiles."""

    current: _Lines | _Bar | None = None


_watched = _Watched()


@contextlib.contextmanager
def shown(verbose: bool | None, name: str) -> Iterator[None]:
    """While it is open, the phases of what `name` names are shown: as lines with their
    seconds (True), not at all (False), or by a bar after a second, where somebody watches
    (None). Within another, it is a part of that."""
    if _watched.current is not None:
        yield
        return
    watching = _Lines(name) if verbose else _bar(name) if verbose is None else None
    if watching is None:
        yield
        return
    _watched.current = watching
    try:
        yield
    finally:
        _watched.current = None
        watching.close()


def phase(name: str, done: int = 0, total: int = 0) -> None:
    """Says what begins, or how much of it is done."""
    if _watched.current is not None:
        _watched.current.phase(name, done, total)


def is_shown() -> bool:
    return _watched.current is not None


class _Lines:
    """A line for each phase, when it has ended, and one for all."""

    def __init__(self, name: str):
        self._name, self._phase, self._ended = name, "", 0
        self._start = self._began = time.monotonic()

    def phase(self, name: str, done: int, total: int) -> None:
        if name != self._phase:
            self._end()
            self._phase, self._began = name, time.monotonic()

    def _end(self) -> None:
        if self._phase:
            self._ended += 1
            self._say(self._phase, time.monotonic() - self._began)

    def _say(self, what: str, seconds: float) -> None:
        print(f"baechi: {self._name}: {what:8} {seconds:8.2f} s", file=sys.stderr, flush=True)

    def close(self) -> None:
        self._end()
        if self._ended > 1:
            self._say("in all", time.monotonic() - self._start)


class _Bar:
    """tqdm's bar of the phases, which a thread of its own draws: what takes long says nothing
    meanwhile."""

    def __init__(self, name: str, make: Any):
        self._name, self._make = name, make
        self._words, self._reached = PHASES[0], 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="baechi-progress", daemon=True)
        self._thread.start()

    def phase(self, name: str, done: int, total: int) -> None:
        self._words = f"{name} {done}/{total}" if total else name
        if name in PHASES:
            self._reached = max(self._reached, PHASES.index(name))

    def _draw(self) -> None:
        began = time.time()
        if self._closing.wait(_DELAY):
            return
        bar = self._make(
            desc=f"baechi: {self._name}",
            total=len(PHASES),
            leave=False,
            file=sys.stderr,
            bar_format="{desc}: {bar:24} {n_fmt}/{total_fmt} [{elapsed}]",
        )
        bar.start_t = began
        while True:
            bar.n = self._reached
            bar.set_description_str(f"baechi: {self._name}: {self._words}")
            if self._closing.wait(_EVERY):
                break
        bar.close()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()


def _bar(name: str) -> _Bar | None:
    """None where nobody watches, or tqdm is missing."""
    if not (sys.stderr is not None and sys.stderr.isatty()) and not _in_notebook():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # in notebooks without widgets it is a line of text
            tqdm = importlib.import_module("tqdm.auto").tqdm
    except ModuleNotFoundError:
        return None
    return _Bar(name, tqdm)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and getattr(found, "kernel", None) is not None
