# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.ParameterStore`: rows that threads share, each at its own pace (docs/replicas.md)."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from baechi.replicas import arguments, library
from baechi.replicas.arguments import StoreError

__all__ = ["ORDERS", "Network", "ParameterStore", "StoreError", "StoreReport"]

Rows = int | Sequence[int] | np.ndarray
ORDERS = ("age", "random", "magnitude", "relative", "round-robin")


@dataclasses.dataclass(frozen=True)
class StoreReport:
    bytes_sent: list[int]  # by process
    bytes_received: list[int]
    bytes_fetched: list[int]  # of those received: rows that were read for the first time
    clocks: list[int]  # by worker
    seconds_waited: list[float]
    reads_by_staleness: list[int]  # the last has those at the bound


@dataclasses.dataclass(frozen=True)
class Network:
    """Each process's cable to the server, in simulated time."""

    bytes_per_second: float  # each way
    latency_ns: int = 50_000


class ParameterStore:
    """Tables of rows of float32. `tables` says rows and width by name, or is a mapping of
    arrays that the tables begin with. A table in `revised` is given gradients, of which the
    server makes steps of that size that know how late they are (adaptive revision)."""

    def __init__(
        self,
        tables: Mapping[str, tuple[int, int] | np.ndarray],
        *,
        revised: Mapping[str, float] | None = None,
        workers: int = 1,
        processes: int = 0,
        staleness: int = 0,
        budget: float | None = None,
        order: str = "relative",
        tolerance: int = 2,
        patience: float = 10.0,
        when_lost: str = "stop",
        checked: bool = False,
        round_bytes: int = 100 << 10,
        seed: int = 1,
        network: Network | None = None,
    ) -> None:
        options = _options(locals())
        shapes, starts = arguments.shapes_and_starts(tables)
        steps = arguments.revisions(revised, shapes)
        count = len(shapes)
        self._handle = library.library().baechiStoreCreate(
            ctypes.c_size_t(count),
            (ctypes.c_char_p * count)(*(name.encode() for name in shapes)),
            (ctypes.c_uint64 * count)(*(shape[0] for shape in shapes.values())),
            (ctypes.c_uint64 * count)(*(shape[1] for shape in shapes.values())),
            (ctypes.c_double * count)(*(steps.get(name, 0.0) for name in shapes)),
            ctypes.byref(options),
        )
        self._open(options)
        for name, start in starts.items():
            self.set(name, range(len(start)), start)

    @classmethod
    def restore(
        cls,
        file: str | os.PathLike[str],
        *,
        workers: int | None = None,
        processes: int = 0,
        staleness: int = 0,
        budget: float | None = None,
        order: str = "relative",
        tolerance: int = 2,
        patience: float = 10.0,
        when_lost: str = "stop",
        checked: bool = False,
        round_bytes: int = 100 << 10,
        seed: int = 1,
        network: Network | None = None,
    ) -> ParameterStore:
        """One that goes on from what `save` wrote: values, clocks, and who is finished. workers:
        None, as many as there were; of others' number each begins at the earliest clock. The
        other options are not in the file, staleness and budget neither: give them again."""
        options = _options(locals())
        store = cls.__new__(cls)
        store._handle = library.library().baechiStoreRestore(
            os.fsencode(file), ctypes.byref(options)
        )
        store._open(options)
        return store

    def _open(self, options: library.StoreOptions) -> None:
        if not self._handle:
            raise StoreError(library.error())
        options.workers = library.library().baechiStoreWorkers(ctypes.c_void_p(self._handle))
        self._changes, self._at_work = threading.Lock(), set[int]()
        self._options = options
        self._tables: dict[str, tuple[int, int, int]] = {}  # place, rows, width
        found = library.library()
        for i in range(found.baechiStoreTables(ctypes.c_void_p(self._handle))):
            rows, width = ctypes.c_uint64(), ctypes.c_uint64()
            name = found.baechiStoreTable(
                ctypes.c_void_p(self._handle),
                ctypes.c_size_t(i),
                ctypes.byref(rows),
                ctypes.byref(width),
            )
            self._tables[name.decode()] = (i, rows.value, width.value)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            library.library().baechiStoreDestroy(ctypes.c_void_p(self._handle))
            self._handle = None

    @property
    def workers(self) -> int:
        """How many there are."""
        return int(self._options.workers)

    @property
    def tables(self) -> dict[str, tuple[int, int]]:
        """Rows and width by name."""
        return {name: (rows, width) for name, (_, rows, width) in self._tables.items()}

    def set(self, table: str, rows: Rows, values: Any) -> None:
        """Values of rows, before any worker reads them."""
        self._rows("baechiStoreSet", (), table, rows, values)

    def read(self, table: str, rows: Rows | None = None) -> np.ndarray:
        """The server's values; after `drain` the sums of all updates."""
        every = range(arguments.known(table, self._tables)[1]) if rows is None else rows
        return self._rows("baechiStoreRead", (), table, every)

    def get(self, worker: int, table: str, rows: Rows) -> np.ndarray:
        """Rows as a worker sees them: all updates up to its clock - staleness - 1, all of its
        own, and maybe newer ones. Waits for those that are not there."""
        return self._rows("baechiStoreGet", (_worker(worker),), table, rows)

    def inc(self, worker: int, table: str, rows: Rows, updates: Any) -> None:
        """Adds to rows, or gives gradients of a table that is `revised`."""
        self._rows("baechiStoreInc", (_worker(worker),), table, rows, updates)

    def clock(self, worker: int) -> int:
        """Ends a worker's clock; returns the next one."""
        now = ctypes.c_int64()
        self._call("baechiStoreClock", _worker(worker), ctypes.byref(now))
        return now.value

    def finish(self, worker: int) -> None:
        """The worker is done, and nobody waits for it any more."""
        self._call("baechiStoreFinish", _worker(worker))

    def lose(self, worker: int, why: str) -> None:
        """The worker is lost: the others stop with an error that names it, or wait."""
        self._call("baechiStoreLose", _worker(worker), why.encode())

    @contextlib.contextmanager
    def worker(self, worker: int) -> Iterator[ParameterStore]:
        """What a worker's thread does: finished at the end, lost if it raises."""
        self._begin(worker)
        try:
            yield self
        except BaseException as error:
            self.lose(worker, f"{type(error).__name__}: {error}")
            raise
        else:
            self.finish(worker)
        finally:
            self._end(worker)

    def _begin(self, worker: int) -> None:
        """Nobody else does that worker's work from now on. Raises StoreError if somebody does."""
        worker = _worker(worker).value
        with self._changes:
            if worker in self._at_work:
                raise StoreError(
                    f"worker {worker} is at work already: give each thread, and each process, "
                    "another worker"
                )
            self._at_work.add(worker)

    def _end(self, worker: int) -> None:
        """Somebody else may."""
        with self._changes:
            self._at_work.discard(worker)

    def run(self, body: Callable[[int], Iterator[float]]) -> None:
        """With a `network`, in simulated time: body(worker) is a generator that yields the
        seconds it computes next, and 0 after `clock`, where it waits for what it may read."""
        going = {worker: body(worker) for worker in range(self._options.workers)}
        worker = ctypes.c_int32()
        while True:
            self._call("baechiStoreNext", ctypes.byref(worker))
            if worker.value < 0:
                return
            try:
                seconds = next(going[worker.value])
            except StopIteration:
                self.finish(worker.value)
            else:
                self._call("baechiStoreCompute", worker, ctypes.c_double(seconds))

    @property
    def seconds(self) -> float:
        """Simulated ones since the beginning."""
        return float(library.library().baechiStoreSeconds(ctypes.c_void_p(self._handle)))

    def drain(self) -> None:
        """Brings every update everywhere; no worker may be within a call."""
        self._call("baechiStoreDrain")

    def save(self, file: str | os.PathLike[str]) -> None:
        """Values and clocks; no worker may be within a call."""
        self._call("baechiStoreSave", os.fsencode(file))

    def report(self) -> StoreReport:
        """What was sent, waited for and read so far."""
        workers = self._options.workers
        processes = self._options.processes or workers
        sent, received, fetched = ((ctypes.c_uint64 * processes)() for _ in range(3))
        clocks, waited = (ctypes.c_int64 * workers)(), (ctypes.c_double * workers)()
        staleness = (ctypes.c_uint64 * (self._options.staleness + 1))()
        self._call("baechiStoreReport", sent, received, fetched, clocks, waited, staleness)
        return StoreReport(*map(list, (sent, received, fetched, clocks, waited, staleness)))

    def _rows(self, call: str, worker: tuple[Any, ...], name: str, rows: Rows, *given: Any) -> Any:
        place, _, width = arguments.known(name, self._tables)
        which, values = arguments.rows_and_values(name, width, rows, *given)
        self._call(
            call,
            *worker,
            ctypes.c_size_t(place),
            library.pointer(which),
            ctypes.c_size_t(len(which)),
            library.pointer(values),
        )
        return values

    def _call(self, name: str, *arguments: Any) -> None:
        library.call(name, self._handle, *arguments)


def _worker(worker: Any) -> ctypes.c_int32:
    return ctypes.c_int32(arguments.whole("a worker", worker, "its number, which counts from 0"))


_BYTES = "bytes per second, or None for none"
# What is counted, and how.
_WHOLE = {
    "workers": "how many there are",
    "processes": "how many there are, or 0 for one a worker",
    "staleness": "0 for no delay, or how many clocks reads may be behind",
    "tolerance": "a number of clocks",
    "round_bytes": "a number of bytes",
    "seed": "a whole number",
}


def _options(given: dict[str, Any]) -> library.StoreOptions:
    """workers: None, as many as a file says."""
    if given["order"] not in ORDERS:
        raise StoreError(f"unknown order '{given['order']}'; known: {', '.join(ORDERS)}")
    if given["when_lost"] not in ("stop", "wait"):
        raise StoreError(f"unknown when_lost '{given['when_lost']}'; known: stop, wait")
    if given["workers"] is None:
        given = given | {"workers": 0}  # the library's word for it
    elif given["workers"] == 0:
        raise StoreError("the number of workers is 0: give at least 1")
    for name, mend in _WHOLE.items():
        given[name] = arguments.whole(f"the {name.replace('_', ' ')}", given[name], mend)
    budget = arguments.real("the budget", 0 if given["budget"] is None else given["budget"], _BYTES)
    if given["budget"] is not None and not budget > 0:
        raise StoreError(f"the budget is {given['budget']}: give {_BYTES}")
    patience = arguments.real("the patience", given["patience"], "seconds, or infinity")
    network = _network(given["network"])
    return library.StoreOptions(
        given["workers"],
        given["processes"],
        given["staleness"],
        given["tolerance"],
        budget,
        patience,
        ORDERS.index(given["order"]),
        given["when_lost"] == "wait",
        given["checked"],
        given["round_bytes"],
        given["seed"],
        network.bytes_per_second,
        network.latency_ns,
    )


def _network(network: Any) -> Network:
    """A network whose numbers are there; of 0 bytes per second where there is none."""
    if network is None:
        return Network(0.0, 0)
    if not isinstance(network, Network):
        raise StoreError(f"the network is {network!r}: give a Network(bytes_per_second)")
    told = arguments.real("the network's bytes per second", network.bytes_per_second, "a number")
    if not told > 0:
        raise StoreError(
            f"the network has {network.bytes_per_second} bytes per second: give more than 0"
        )
    latency = arguments.whole(
        "the network's latency", network.latency_ns, "nanoseconds, 0 or more", 2**63 - 1
    )
    if latency < 0:
        raise StoreError(f"the network's latency is {latency}: give nanoseconds, 0 or more")
    return Network(told, latency)
