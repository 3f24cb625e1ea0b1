# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A parameter store whose workers are in other processes, on this machine or others
(docs/replicas.md): each has a connection to the process that has the store, and its rows in its own
(`cache.py`). Where others have the same rows, the store does what it asks for, as for a thread."""

from __future__ import annotations

import contextlib
import errno
import secrets
import socket
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from typing import Any

from baechi.replicas import arguments, elsewhere
from baechi.replicas.arguments import StoreError, whole
from baechi.replicas.elsewhere import Elsewhere
from baechi.replicas.remote import Address, RemoteStore, at_once, text
from baechi.replicas.store import ParameterStore

__all__ = ["RemoteStore", "StoreServer", "serve"]

# What a worker may ask for whose rows are here.
_ASKED = ("get", "inc", "clock")
_ENDED = "its connection has ended, and it was not finished"


class StoreServer:
    """Serves a store until it is closed; see `serve`."""

    def __init__(
        self,
        store: ParameterStore,
        given: Address,
        key: bytes | None,
        meets: Callable[[Any, Connection], None] | None = None,
    ):
        self.key = secrets.token_bytes(32) if key is None else key
        if not isinstance(self.key, bytes) or not self.key:
            raise StoreError(
                "the key is no bytes: give those that the workers' processes have, too, or None "
                "for some that are drawn"
            )
        self._store, self._ends = store, False
        self._meets = meets  # takes connections that are no worker's
        self._taken: set[int] = set()  # workers that have had a connection
        self._lock = threading.Lock()
        where = arguments.address(given)
        try:
            self._listener = Listener(where, backlog=64)
        except OSError as error:
            raise StoreError(
                f"the store cannot be served at {text(where)} ({error}): {_mend(where, error)}"
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
            at_once(connection)
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
            asked = connection.recv()
            if self._meets is not None and isinstance(asked, tuple):
                return self._meets(asked, connection)
            try:
                worker, there = self._take(asked)
            except StoreError as error:
                connection.send(("error", str(error)))
                return
            lost: str | None = _ENDED
            try:
                told = {"tables": self._store.tables, "cache": there.told}
                connection.send(("made", told | {"patience": self._store._options.patience}))
                lost = self._work(worker, there, connection)
            finally:  # also where it goes while it is sent something
                there.end()
                self._store._end(worker)
                if lost is not None:
                    self._store.lose(worker, lost)
            connection.send(("made", None))

    def _take(self, worker: Any) -> tuple[int, Elsewhere]:
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
            self._store._begin(worker)
            self._taken.add(worker)
        try:
            return worker, Elsewhere(self._store, worker)
        except StoreError:
            self._store._end(worker)
            raise

    def _work(self, worker: int, there: Elsewhere, connection: Connection) -> str | None:
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
                else:
                    made = self._answer(worker, there, name, arguments)
                    connection.send(("made", made))
                    continue
            except OSError:
                return _ENDED
            except StoreError as error:
                connection.send(("error", str(error)))
                continue
            except Exception as error:  # as a thread would be told
                told = f"{name} of worker {worker} has failed: {type(error).__name__}: {error}"
                connection.send(("error", f"{told}; see ParameterStore"))
                continue
            return None

    def _answer(self, worker: int, there: Elsewhere, name: Any, given: Any) -> Any:
        if there.told is not None and name in elsewhere.ASKED:
            return getattr(there, name)(*given)
        if there.told is None and name in _ASKED:
            return getattr(self._store, name)(worker, *given)
        raise StoreError(f"a worker asks for '{name}', which a store does not do")


def _mend(where: Address, error: OSError) -> str:
    host, port = where
    if isinstance(error, socket.gaierror):
        return f"no machine has the name '{host}': give a name or a number of this one"
    if error.errno == errno.EADDRINUSE:
        return f"another program has port {port}: give another one, or 0 for one that is free"
    if error.errno == errno.EACCES:
        return f"port {port} is the administrator's: give one from 1024 on, or 0 for a free one"
    return "give an address of this machine, or 0.0.0.0 for all that it has"


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
