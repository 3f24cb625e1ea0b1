# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a store does for a worker whose rows are in another process (`cache.py`): a method for each
message."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from baechi.replicas import library
from baechi.replicas.arguments import StoreError
from baechi.replicas.store import ParameterStore

# What such a worker's process may ask for.
ASKED = ("fetch", "sync", "wait", "check", "count")


class Elsewhere:
    """One worker of a store."""

    def __init__(self, store: ParameterStore, worker: int):
        self._store, self._worker = store, ctypes.c_int32(worker)
        is_alone, clock, fresh = ctypes.c_int32(), ctypes.c_int64(), ctypes.c_int64()
        numbers = ctypes.byref(is_alone), ctypes.byref(clock), ctypes.byref(fresh)
        self._call("MoveElsewhere", self._worker, *numbers)
        found, handle = library.library(), ctypes.c_void_p(store._handle)
        places = range(len(store.tables))
        self._numbers = [found.baechiStoreNumbers(handle, ctypes.c_size_t(n)) for n in places]
        options = store._options
        # What its process has to know; None: other workers have the same rows.
        self.told: dict[str, Any] | None = None
        if is_alone.value:
            revised = [found.baechiStoreRevises(handle, ctypes.c_size_t(n)) for n in places]
            self.told = {
                "options": [getattr(options, field[0]) for field in options._fields_],
                "revised": list(map(bool, revised)),
                "clock": clock.value,
                "fresh": fresh.value,
            }

    def end(self) -> None:
        """The worker's rows are with the store again."""
        self._call("MoveBack", self._worker)

    def fetch(self, table: int, rows: np.ndarray) -> np.ndarray:
        """Rows that it reads for the first time, as they are sent."""
        made = np.empty((len(rows), self._numbers[table]), np.float32)
        self._call("Fetch", self._worker, *self._rows(table, rows), library.pointer(made))
        return made

    def sync(self, message: bytes, sent: int, clock: int, room: int) -> tuple[bytes, int]:
        """A round each way: takes its updates, and gives the others' of so many bytes."""
        size = ctypes.c_size_t(len(message))
        times = ctypes.c_int64(sent), ctypes.c_int64(clock)
        self._call("Receive", self._worker, message, size, *times)
        through = ctypes.c_int64()
        where = self._worker, ctypes.c_uint64(room), ctypes.byref(through)
        return library.message("baechiStoreSend", self._store._handle, *where), through.value

    def wait(self, clock: int, limit: float, waited: float) -> bool:
        """For others' updates from before a clock, so long."""
        there = ctypes.c_int32()
        seconds = ctypes.c_double(limit), ctypes.c_double(waited)
        self._call("Await", self._worker, ctypes.c_int64(clock), *seconds, ctypes.byref(there))
        return bool(there.value)

    def check(self, table: int, rows: np.ndarray, clock: int, counts: np.ndarray) -> None:
        """Of a store that is checked: what was read."""
        where = (*self._rows(table, rows), ctypes.c_int64(clock))
        self._call("Check", self._worker, *where, library.pointer(np.ascontiguousarray(counts)))

    def count(self, by_staleness: Sequence[int]) -> None:
        """Its reads, for the report."""
        many = len(by_staleness)
        counts = (ctypes.c_uint64 * many)(*by_staleness)
        self._call("CountReads", self._worker, counts, ctypes.c_size_t(many))

    def _rows(self, table: int, rows: np.ndarray) -> tuple[Any, ...]:
        if not 0 <= table < len(self._numbers) or rows.dtype != np.int64:
            raise StoreError(f"there is no table {table} of {len(self._numbers)}")
        rows = np.ascontiguousarray(rows)
        return ctypes.c_size_t(table), library.pointer(rows), ctypes.c_size_t(len(rows))

    def _call(self, name: str, *arguments: Any) -> None:
        library.call(f"baechiStore{name}", self._store._handle, *arguments)
