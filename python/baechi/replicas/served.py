# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A parameter store whose workers are in other processes, on this machine or others
(docs/replicas.md): each has a connection to the process that has the store, which does there what
the worker asks for, and so waits, and is bounded, as a thread there."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from typing import Any

import numpy as np

from baechi.replicas.arguments import StoreError, whole
from baechi.replicas.store import ParameterStore

Address = tuple[str, int]
Rows = int | Sequence[int] | np.ndarray

# What a worker may ask for.
_ASKED = ("get", "inc", "clock")
_ENDED = "its connection has ended, and it was not finished"


class StoreServer:
    """Serves a store until it is closed; see `serve`."""

    def __init__(self, store: ParameterStore, address: Address, key: bytes | None):
        self.key = secrets.token_bytes(32) if key is None else key
        if not isinstance(self.key, bytes) or not self.key:
            raise StoreError(
                "the key is no bytes: give those that the workers' processes have, too, or None "
                "for some that are drawn"
            )
        self._store, self._ends = store, False
        self._taken: set[int] = set()  # workers that have had a connection
        self._lock = threading.Lock()
        try:
            self._listener = Listener(address, backlog=64)
        except OSError as error:
            raise StoreError(
                f"the store cannot be served at {_text(address)} ({error}): give an address of "
                "this machine, and port 0 for one that is free"
            ) from error
        host, port = self._listener.address[:2]
        self.address: Address = str(host), int(port)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Takes no more workers. Those that have a connection keep it."""
        if self._ends:
            return
        self._ends = True
        with contextlib.suppress(OSError), socket.create_connection(self.address, 1):
            pass  # wakes the thread
        self._thread.join()
        self._listener.close()

    def __enter__(self) -> StoreServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._ends:
            with contextlib.suppress(OSError):  # gone already
                connection = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        """One worker."""
        # Whoever has not the key, or goes before it is asked for, is none of ours. Who says
        # nothing at all waits in a thread of its own, and holds nobody up.
        with connection, contextlib.suppress(OSError, EOFError, AuthenticationError):
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
            asked = connection.recv()
            try:
                worker = self._take(asked)
            except StoreError as error:
                connection.send(("error", str(error)))
                return
            lost: str | None = _ENDED
            try:
                connection.send(("tables", self._store.tables))
                lost = self._work(worker, connection)
            finally:  # also where it goes while it is sent something
                if lost is not None:
                    self._store.lose(worker, lost)

    def _take(self, worker: Any) -> int:
        count = self._store.workers
        worker = whole("a worker", worker, "its number, which counts from 0")
        if not 0 <= worker < count:
            raise StoreError(f"there is no worker {worker} of {count}")
        with self._lock:
            if worker in self._taken:
                raise StoreError(
                    f"worker {worker} has a connection, or had one: each process takes workers "
                    "of its own, by their numbers"
                )
            self._taken.add(worker)
        return worker

    def _work(self, worker: int, connection: Connection) -> str | None:
        """Why it is lost; None where it has said how it ends."""
        while True:
            try:
                name, arguments = connection.recv()
            except (OSError, EOFError):
                return _ENDED
            except Exception as error:  # whatever its classes raise here
                return f"what it asks for cannot be read ({type(error).__name__}: {error})"
            try:
                if name == "finish":
                    self._store.finish(worker)
                elif name == "lose":
                    self._store.lose(worker, *arguments)
                elif name not in _ASKED:
                    raise StoreError(f"a worker asks for '{name}', which a store does not do")
                else:
                    made = getattr(self._store, name)(worker, *arguments)
                    connection.send(("made", made))
                    continue
            except OSError:
                return _ENDED
            except StoreError as error:
                connection.send(("error", str(error)))
                continue
            except Exception as error:  # as a thread would be told
                told = f"{name} of worker {worker} has failed: {type(error).__name__}: {error}"
                connection.send(("error", f"{told}; see ParameterStore.{name}"))
                continue
            with contextlib.suppress(OSError):  # it may be gone already
                connection.send(("made", None))
            return None


class RemoteStore:
    """A store that another process serves. Its workers are used as those of a ParameterStore,
    each by one thread."""

    def __init__(self, address: Address, key: bytes):
        self._address, self._key = address, key
        self._workers: dict[int, Connection] = {}
        self.tables: dict[str, tuple[int, int]] = {}  # rows and width by name, of a worker's

    @contextlib.contextmanager
    def worker(self, worker: int) -> Iterator[RemoteStore]:
        """What a worker does: finished at the end, lost if it raises."""
        connection = self._connect(worker)
        self._workers[worker] = connection
        try:
            yield self
        except BaseException as error:
            # The store may be what is gone.
            with contextlib.suppress(StoreError):
                self._ask(worker, "lose", f"{type(error).__name__}: {error}")
            raise
        else:
            self._ask(worker, "finish")
        finally:
            del self._workers[worker]
            connection.close()

    def get(self, worker: int, table: str, rows: Rows) -> np.ndarray:
        """Rows as a worker sees them; waits where that would be too old."""
        found: np.ndarray = self._ask(worker, "get", table, _plain(rows))
        return found

    def inc(self, worker: int, table: str, rows: Rows, updates: Any) -> None:
        """Adds to rows, or gives gradients of a table that is `revised`."""
        self._ask(worker, "inc", table, _plain(rows), np.asarray(updates))

    def clock(self, worker: int) -> int:
        """Ends a worker's clock; returns the next one."""
        return int(self._ask(worker, "clock"))

    def _connect(self, worker: int) -> Connection:
        if worker in self._workers:
            raise StoreError(f"worker {worker} is at work already: give each thread another")
        try:
            connection = Client(self._address, authkey=self._key)
        except AuthenticationError as error:
            raise StoreError(
                f"the store at {_text(self._address)} has another key: give that of its server"
            ) from error
        except (OSError, EOFError) as error:
            raise StoreError(
                f"no store can be reached at {_text(self._address)} ({error}): begin to serve it "
                "before, and give the address that its server has"
            ) from error
        try:
            self.tables = self._answer(connection, worker)
        except StoreError:
            connection.close()
            raise
        return connection

    def _ask(self, worker: int, name: str, *arguments: Any) -> Any:
        if worker not in self._workers:
            raise StoreError(
                f"worker {worker} is not at work: use it within `with store.worker({worker}):`"
            )
        return self._answer(self._workers[worker], (name, arguments))

    def _answer(self, connection: Connection, asked: Any) -> Any:
        try:
            connection.send(asked)
            said, made = connection.recv()
        except (OSError, EOFError) as error:
            raise StoreError(
                f"the process that has the store at {_text(self._address)} has ended, or cannot "
                "be reached any more: look at what it says"
            ) from error
        if said == "error":
            raise StoreError(made)
        return made


def serve(
    store: ParameterStore, address: Address = ("127.0.0.1", 0), key: bytes | None = None
) -> StoreServer:
    """Lets workers of other processes use a store: with the server's `address` and `key` each
    makes a `RemoteStore`.

    address: a name or number of this machine and a port, 0 for one that is free. Processes on
        other machines need one that they can reach.
    key: bytes that both sides have; None: some are drawn. What is sent is not encrypted, and who
        has the key may run code here: for networks that are trusted.
    """
    return StoreServer(store, address, key)


def _plain(rows: Rows) -> Any:
    """Ranges and the like as they are sent."""
    return rows if isinstance(rows, int) else np.asarray(rows)


def _text(address: Any) -> str:
    return ":".join(map(str, address)) if isinstance(address, tuple) else str(address)
