# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What workers of a loop that go at their own pace have in common: the store with what is
buffered, and the pieces of other arrays, each of which one worker at a time has."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from baechi.loops.errors import LoopError
from baechi.replicas.store import ParameterStore, StoreError

# Numbers of an array of one dimension that are a row of the store.
_WIDTH = 16


class Stopped(Exception):
    """Another worker has failed."""


class Board:
    """pieces: by array and part. named: by array that the store has its table and shape. check:
    takes a block's number and what was outside of its arrays, and raises LoopError."""

    def __init__(
        self,
        store: ParameterStore,
        named: dict[int, tuple[str, tuple[int, ...]]],
        pieces: dict[tuple[int, int], np.ndarray],
        check: Callable[[int, np.ndarray], None],
        devices: int,
        waits: bool,
    ):
        self.store, self.pieces = store, pieces
        self.values: dict[int, list[np.ndarray]] = {}  # by worker the new ones of its entries
        self._named, self._check, self._waits = named, check, waits
        self._sums: dict[int, dict[tuple[int, int], np.ndarray]] = {}
        self._changed = dict.fromkeys(pieces, 0)
        self._devices = threading.Semaphore(devices)
        self._moved = threading.Condition()
        self._error: BaseException | None = None

    # What workers do.

    def ready(self, array: int, part: int, turn: int) -> bool:
        """Whether `take` may be called; where threads wait it always may."""
        return self._waits or self._changed[array, part] == turn

    def take(self, array: int, part: int, turn: int) -> np.ndarray:
        """A piece, after so many changes."""
        with self._moved:
            self._moved.wait_for(lambda: self._error or self._changed[array, part] == turn)
            if self._error:
                raise Stopped
            return self.pieces[array, part]

    def give(self, array: int, part: int, value: np.ndarray) -> None:
        with self._moved:
            self.pieces[array, part] = value
            self._changed[array, part] += 1
            self._moved.notify_all()

    def get(self, worker: int, array: int) -> np.ndarray:
        name, shape = self._named[array]
        return _as_array(self.store.get(worker, name, _every(self.store, name)), shape)

    def add(self, worker: int, array: int, change: np.ndarray) -> None:
        name, _ = self._named[array]
        if not np.isfinite(change).all():
            at = list(map(int, np.argwhere(~np.isfinite(change))[0]))
            raise LoopError(
                f"worker {worker} changes '{name}' at {at} by a number that is not finite: take "
                "smaller steps, less staleness or more exchanges"
            )
        rows = as_table(change)
        which = np.flatnonzero(rows.any(axis=1))
        if which.size:
            self.store.inc(worker, name, which, rows[which])

    def clock(self, worker: int) -> None:
        self.store.clock(worker)

    def add_sum(self, array: int, at: tuple[int, int], value: np.ndarray) -> None:
        """A block's own sum. at: the pass and the block."""
        with self._moved:
            self._sums.setdefault(array, {})[at] = value

    def check(self, number: int, outside: np.ndarray) -> None:
        self._check(number, outside)

    def finish(self, worker: int, values: list[np.ndarray]) -> None:
        self.values[worker] = values
        self.store.finish(worker)

    def device(self) -> threading.Semaphore:
        """Held while a block is computed: no more are at once than there are devices."""
        return self._devices

    # What they are when all have ended.

    def stored(self, array: int) -> np.ndarray:
        name, shape = self._named[array]
        return _as_array(self.store.read(name), shape)

    def summed(self, array: int, start: np.ndarray) -> np.ndarray:
        """In the order of the blocks."""
        total = start
        for _, value in sorted(self._sums.get(array, {}).items()):
            total = total + value
        return np.array(total)

    # Who runs them.

    def run(self, works: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """Each of (worker, function) on a thread of its own. Raises what the first has raised that
        has failed, or what interrupts the wait, when all have ended."""

        def guarded(worker: int, function: Callable[[], None]) -> None:
            try:
                function()
            except BaseException as error:
                self._fail(worker, error)

        threads = [
            threading.Thread(target=guarded, args=each, name=f"baechi-worker-{each[0]}")
            for each in works
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as error:
            self._fail(works[0][0], error)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        if self._error:
            raise self._error

    def _fail(self, worker: int, error: BaseException) -> None:
        with self._moved:
            self._error = self._error or error
            self._moved.notify_all()
        with contextlib.suppress(StoreError):
            self.store.lose(worker, str(error))


@contextlib.contextmanager
def told() -> Iterator[None]:
    """The store's errors are the loop's."""
    try:
        yield
    except StoreError as error:
        raise LoopError(str(error)) from error


def as_table(array: np.ndarray) -> np.ndarray:
    """Rows of the store: an array's own, or of so many numbers."""
    if array.ndim > 1 and array.size:
        return array.reshape(len(array), -1)
    flat = array.reshape(-1)
    padded = np.zeros(-(-max(flat.size, 1) // _WIDTH) * _WIDTH, array.dtype)
    padded[: flat.size] = flat
    return padded.reshape(-1, _WIDTH)


def _as_array(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return rows.reshape(-1)[: math.prod(shape)].reshape(shape)


def _every(store: ParameterStore, name: str) -> np.ndarray:
    return np.arange(store.tables[name][0])
