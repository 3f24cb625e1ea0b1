# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A parameter store from another process (docs/replicas.md): a connection for each of its workers
here, and the rows that they read."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any

import numpy as np

from baechi.replicas import arguments
from baechi.replicas.arguments import StoreError
from baechi.replicas.cache import Cache

Address = tuple[str, int]
Rows = int | Sequence[int] | np.ndarray

# Seconds that an answer is waited for: as long as the store itself waits for others, but this at
# least, and so much longer.
_LEAST, _LONGER = 10.0, 10.0


class NotServed(StoreError):
    """There may be a store later."""


@dataclasses.dataclass
class _Worker:
    connection: Connection
    cache: Cache | None = None  # None: its rows are with the store
    patience: float = 60.0  # seconds for an answer


class RemoteStore:
    """A store that another process serves. Its workers are used as those of a ParameterStore,
    each by one thread."""

    def __init__(self, address: Address, key: bytes):
        self._address, self._key = arguments.address(address), key
        if not isinstance(key, bytes) or not key:
            raise StoreError("the key is no bytes: give that of the store's server")
        self._workers: dict[int, _Worker] = {}
        self.tables: dict[str, tuple[int, int]] = {}  # rows and width by name, of a worker's

    @contextlib.contextmanager
    def worker(self, worker: int) -> Iterator[RemoteStore]:
        """What a worker does: finished at the end, lost if it raises."""
        own = self._connect(worker)
        try:
            yield self
            if own.cache is not None:
                own.cache.finish()
        except BaseException as error:
            if own.cache is not None:
                own.cache.stop()
            # The store may be what is gone.
            with contextlib.suppress(StoreError):
                self._ask(worker, "lose", f"{type(error).__name__}: {error}")
            raise
        else:
            self._ask(worker, "finish")
        finally:
            del self._workers[worker]
            own.connection.close()

    def get(self, worker: int, table: str, rows: Rows) -> np.ndarray:
        """Rows as a worker sees them; waits where that would be too old."""
        cache = self._of(worker).cache
        if cache is not None:
            return cache.get(table, rows)
        found: np.ndarray = self._ask(worker, "get", table, _plain(rows))
        return found

    def inc(self, worker: int, table: str, rows: Rows, updates: Any) -> None:
        """Adds to rows, or gives gradients of a table that is `revised`."""
        cache = self._of(worker).cache
        if cache is not None:
            cache.inc(table, rows, updates)
        else:
            self._ask(worker, "inc", table, _plain(rows), np.asarray(updates))

    def clock(self, worker: int) -> int:
        """Ends a worker's clock; returns the next one."""
        cache = self._of(worker).cache
        return cache.clock() if cache is not None else int(self._ask(worker, "clock"))

    def flush(self, worker: int) -> None:
        """Sends all of a worker's updates: the store's `drain` and `save` have them then. The end
        of its `with` does the same."""
        cache = self._of(worker).cache
        if cache is not None:
            cache.flush()

    def _connect(self, worker: int) -> _Worker:
        if worker in self._workers:
            raise StoreError(f"worker {worker} is at work already: give each thread another")
        connection = connect(self._address, self._key)
        own = _Worker(connection)
        try:
            told = self._answer(own, worker)
            self.tables = told["tables"]
            # The store itself waits for others that long, and says so.
            own.patience = max(told["patience"], _LEAST) + _LONGER
            limit_waits(connection, own.patience)
            self._workers[worker] = own
            if told["cache"] is not None:
                ask = functools.partial(self._ask, worker)
                own.cache = Cache(worker, self.tables, told["cache"], ask)
        except BaseException:
            self._workers.pop(worker, None)
            connection.close()
            raise
        return own

    def _of(self, worker: int) -> _Worker:
        if worker not in self._workers:
            raise StoreError(
                f"worker {worker} is not at work: use it within `with store.worker({worker}):`"
            )
        return self._workers[worker]

    def _ask(self, worker: int, name: str, *arguments: Any) -> Any:
        return self._answer(self._of(worker), (name, arguments))

    def _answer(self, own: _Worker, asked: Any) -> Any:
        connection = own.connection
        try:
            connection.send(asked)
            if not hears(connection, own.patience):
                raise BlockingIOError
            said, made = connection.recv()
        except BlockingIOError as error:
            connection.close()  # what comes later would answer something else
            raise StoreError(
                f"the process that has the store at {text(self._address)} has said nothing for "
                f"{own.patience:g} s: it was stopped, or cannot be reached"
            ) from error
        except (OSError, EOFError) as error:
            raise StoreError(
                f"the process that has the store at {text(self._address)} has ended, or cannot "
                "be reached any more: look at what it says"
            ) from error
        if said == "error":
            raise StoreError(made)
        return made


def connect(address: Address, key: bytes) -> Connection:
    """To the server of a store."""
    connection = None
    try:
        connection = Client(address)
        if not hears(connection, 60.0):
            raise EOFError("who listens there says nothing")
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except AuthenticationError as error:
        _close(connection)
        raise StoreError(
            f"the store at {text(address)} has another key: give that of its server"
        ) from error
    except (OSError, EOFError) as error:
        _close(connection)
        raise NotServed(
            f"no store can be reached at {text(address)} ({error}): begin to serve it before, and "
            "give the address that its server has"
        ) from error
    at_once(connection)
    return connection


def _close(connection: Connection | None) -> None:
    if connection is not None:
        connection.close()


def hears(connection: Connection, seconds: float) -> bool:
    """Whether anything comes in time; infinity: it is waited for."""
    if seconds == float("inf"):
        return connection.poll(None)
    # What came while this process itself was stopped is there.
    return connection.poll(seconds) or connection.poll(0)


def limit_waits(connection: Connection, seconds: float) -> None:
    """Where the other end takes nothing of what is sent for so long, or stops within what it
    sends, that is a BlockingIOError."""
    if seconds == float("inf"):
        return
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    with socket.socket(fileno=os.dup(connection.fileno())) as each:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def at_once(connection: Connection) -> None:
    """What is sent does not wait for the receipt of what was sent before."""
    with socket.socket(fileno=os.dup(connection.fileno())) as each:
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def text(address: Address) -> str:
    return ":".join(map(str, address))


def _plain(rows: Rows) -> Any:
    """Ranges and the like as they are sent."""
    return rows if isinstance(rows, int) else np.asarray(rows)
