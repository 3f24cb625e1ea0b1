# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows of a worker in a process that has not the store (docs/replicas.md): what it reads, and
its updates until they are sent. The library has them (ProcessCache.h); here is what is said between
the processes, and when."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from baechi.replicas import arguments, library
from baechi.replicas.arguments import StoreError

# Of a budget: how often its thread looks for rows that wait, and what that may take of it.
_SECONDS, _SHARE, _MESSAGE = 0.002, 0.05, 512
# A message without rows.
_EMPTY = 8
# A clock that comes after all others.
_LAST = 2**62


class Cache:
    """told: of the store, as `Elsewhere` says it. ask: sends a message and returns the answer, or
    raises StoreError."""

    def __init__(
        self,
        worker: int,
        tables: Mapping[str, tuple[int, int]],
        told: Mapping[str, Any],
        ask: Callable[..., Any],
    ):
        self._options = library.StoreOptions(*told["options"])
        self._tables = {name: (n, width) for n, (name, (_, width)) in enumerate(tables.items())}
        self._revised = list(told["revised"])
        self._ask = ask
        count = len(tables)
        shapes = list(tables.values())
        handle = library.library().baechiCacheCreate(
            ctypes.c_size_t(count),
            (ctypes.c_char_p * count)(*(name.encode() for name in tables)),
            (ctypes.c_uint64 * count)(*(rows for rows, _ in shapes)),
            (ctypes.c_uint64 * count)(*(width for _, width in shapes)),
            (ctypes.c_double * count)(*told["revised"]),
            ctypes.byref(self._options),
            ctypes.c_int32(worker),
            ctypes.c_int64(told["clock"]),
            ctypes.c_int64(told["fresh"]),
        )
        if not handle:
            raise StoreError(library.error())
        self._handle = handle
        self._clock = int(told["clock"])
        # A round, or rows that are read first: nothing comes in between, or is put in twice.
        self._talks = threading.Lock()
        self._ends = threading.Event()
        self._failed: BaseException | None = None  # of the carrier
        self._carrier: threading.Thread | None = None
        self._idle = 0.0
        if self._options.budget:
            self._idle = max(_SECONDS, _MESSAGE / (_SHARE * self._options.budget))
            self._carrier = threading.Thread(target=self._carry, daemon=True)
            self._carrier.start()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            library.library().baechiCacheDestroy(ctypes.c_void_p(self._handle))
            self._handle = None

    def get(self, name: str, rows: Any) -> np.ndarray:
        """Rows as the worker sees them; waits where that would be too old."""
        self._raise()
        place, width = arguments.known(name, self._tables)
        which, values = arguments.rows_and_values(name, width, rows)
        need = self._clock - self._options.staleness
        if self._number("Fresh") < need:
            self._wait(need)
        at = ctypes.c_size_t(place), library.pointer(which), ctypes.c_size_t(len(which))
        self._fetch(place, which, at)
        counts = None
        if self._options.checked:
            counts = np.empty((len(which), self._options.workers), np.float32)
        told = ctypes.c_void_p() if counts is None else library.pointer(counts)
        self._call("Get", *at, library.pointer(values), told)
        if counts is not None:
            with self._talks:
                self._ask("check", place, which, self._clock, counts)
        return values

    def inc(self, name: str, rows: Any, updates: Any) -> None:
        """Adds to rows, or gives gradients."""
        self._raise()
        place, width = arguments.known(name, self._tables)
        which, values = arguments.rows_and_values(name, width, rows, updates)
        at = ctypes.c_size_t(place), library.pointer(which), ctypes.c_size_t(len(which))
        if self._revised[place]:
            self._fetch(place, which, at)
        self._call("Inc", *at, library.pointer(values))

    def clock(self) -> int:
        """Ends the worker's clock; returns the next one."""
        self._raise()
        self._clock = int(self._number("Tick"))
        self._round()
        return self._clock

    def flush(self) -> None:
        """Sends all updates."""
        self._raise()
        self._send_all(self._clock)

    def finish(self) -> None:
        """Sends all updates, and no more."""
        self.stop()
        self._raise()
        self._send_all(_LAST)

    def stop(self) -> None:
        """Nothing is sent any more unless it is asked for."""
        self._ends.set()
        if self._carrier is not None:
            self._carrier.join()

    def _carry(self) -> None:
        try:
            moved = False
            while not self._ends.wait(max(self._number("Pause"), 0 if moved else self._idle)):
                moved = self._round()
        except BaseException as error:
            self._failed = error

    def _raise(self) -> None:
        if self._failed is not None:
            raise StoreError(str(self._failed)) from self._failed

    def _round(self) -> bool:
        """Sends what may be sent now, and takes what may come: whether there was anything."""
        with self._talks:
            message = library.message("baechiCacheTake", self._handle, ctypes.c_int32(0))
            return self._sync(message, self._number("Sent"), self._number("Room"))

    def _send_all(self, sent: int) -> None:
        reads = (ctypes.c_uint64 * (self._options.staleness + 1))()
        library.library().baechiCacheReads(ctypes.c_void_p(self._handle), reads)
        with self._talks:
            message = library.message("baechiCacheTake", self._handle, ctypes.c_int32(1))
            self._sync(message, sent, 0)
            self._ask("count", list(reads))

    def _sync(self, message: bytes, sent: int, room: int) -> bool:
        made, through = self._ask("sync", message, sent, self._clock, room)
        size = ctypes.c_size_t(len(made))
        self._call("Add", made, size, ctypes.c_int64(through))
        return max(len(message), len(made)) > _EMPTY

    def _wait(self, need: int) -> None:
        """Until all updates from before a clock are within the rows."""
        is_paced = 0 < self._options.budget < math.inf
        waited = 0.0
        while True:
            self._round()
            if self._number("Fresh") >= need:
                return
            pause = max(self._number("Pause"), self._idle)
            began = time.monotonic()
            with self._talks:
                # What a budget has held back has to go in between.
                limit = pause if is_paced else math.inf
                is_there = self._ask("wait", need, limit, waited)
            if is_there and is_paced:
                time.sleep(self._number("Pause"))
            waited += time.monotonic() - began

    def _fetch(self, place: int, which: np.ndarray, at: tuple[Any, ...]) -> None:
        """Rows that are read for the first time."""
        lacks, count = np.empty(len(which), np.int64), ctypes.c_size_t()
        self._call("Missing", *at, library.pointer(lacks), ctypes.byref(count))
        if count.value == 0:
            return
        lacks = np.unique(lacks[: count.value])
        with self._talks:
            made = self._ask("fetch", place, lacks)
            size = ctypes.c_size_t(len(lacks))
            here = ctypes.c_size_t(place), library.pointer(lacks), size
            self._call("Put", *here, library.pointer(made))

    def _number(self, name: str) -> Any:
        return getattr(library.library(), f"baechiCache{name}")(ctypes.c_void_p(self._handle))

    def _call(self, name: str, *arguments: Any) -> None:
        library.call(f"baechiCache{name}", self._handle, *arguments)
