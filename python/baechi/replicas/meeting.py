# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that share a parameter store and go through the same program (docs/replicas.md): each says
what it does next, in one order, and hears what all of them have said when they have."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pickle
import queue
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from baechi.replicas.arguments import StoreError
from baechi.replicas.remote import hears, limit_waits

# Each end says that it lives so often, in seconds, and is lost where it does not for longer than
# its ranks' patience, which is taken to be this at least.
_EVERY, _LEAST = 1.0, 5.0
_LIVES = pickle.dumps(("lives",))

Future = concurrent.futures.Future


class Member:
    """A rank. fails: called once, with an error that is all ranks'."""

    def __init__(self, rank: int, fails: Callable[[StoreError], None]):
        self.rank = rank
        self._fails = fails
        self._said = 0
        self._answers: dict[int, Future[list[Any]]] = {}
        self._lock = threading.Lock()
        self._error: StoreError | None = None

    def say(self, what: str, mine: Any) -> Future[list[Any]]:
        """What all ranks say as their next thing, by rank. what: in words, the same for all."""
        answer: Future[list[Any]] = concurrent.futures.Future()
        with self._lock:
            if self._error is not None:
                answer.set_exception(self._error)
                return answer
            number = self._said
            self._said += 1
            self._answers[number] = answer
        self._send(("says", number, what, mine))
        return answer

    def fail(self, why: str) -> None:
        """An error of this rank is all ranks'."""
        self._send(("fails", why))

    def hear(self, message: tuple[Any, ...]) -> None:
        """From rank 0: what all have said, or why they cannot go on."""
        if message[0] == "all":
            _, number, every = message
            with self._lock:
                answer = self._answers.pop(number, None)
            if answer is not None:
                answer.set_result(every)
            return
        error = StoreError(message[1])
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            answers, self._answers = self._answers, {}
        self._fails(error)
        for answer in answers.values():
            answer.set_exception(error)

    def close(self) -> None:
        """Says nothing any more."""

    def _send(self, message: tuple[Any, ...]) -> None:
        raise NotImplementedError


class Other(Member):
    """A rank that has a connection to rank 0."""

    def __init__(
        self,
        rank: int,
        connection: Connection,
        fails: Callable[[StoreError], None],
        patience: float,
    ):
        super().__init__(rank, fails)
        self._connection, self._patience = connection, patience
        limit_waits(connection, _silence(patience))
        self._outbox = _Outbox(connection, lambda: self.hear(("failed", _untaken(0, patience))))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._send(("leaves",))
        # A rank 0 that is stopped does not answer.
        self._thread.join(None if self._patience == float("inf") else _silence(self._patience))
        self._outbox.end()
        self._connection.close()

    def _send(self, message: tuple[Any, ...]) -> None:
        self._outbox.put(pickle.dumps(message))

    def _listen(self) -> None:
        try:
            while (message := _heard(self._connection, self._patience, 0))[0] != "leaves":
                if message[0] != "lives":
                    self.hear(message)
        except _SilenceError as error:
            self.hear(("failed", str(error)))
        except (OSError, EOFError):
            self.hear(
                (
                    "failed",
                    "rank 0 has ended, and with it the store, or has given this rank up: look at "
                    "what it says",
                )
            )
        except Exception as error:  # whatever its classes raise here
            self.hear(("failed", _unreadable(0, error)))


class First(Member):
    """Rank 0: brings together what all say. names: what is lost with a rank."""

    def __init__(
        self,
        ranks: int,
        names: Callable[[int], str],
        fails: Callable[[StoreError], None],
        patience: float,
    ):
        super().__init__(0, fails)
        self._ranks, self._names, self._patience = ranks, names, patience
        self._outboxes: dict[int, _Outbox] = {}
        self._things: dict[int, dict[int, tuple[str, Any]]] = {}
        self._changes = threading.Lock()
        self._why: str | None = None
        self._all = threading.Event()  # are there

    def wait_for_all(self, seconds: float) -> None:
        if not self._all.wait(None if seconds == float("inf") else seconds):
            missing = sorted(set(range(1, self._ranks)) - set(self._outboxes))
            raise StoreError(
                f"rank {missing[0]} of {self._ranks} has not come after {seconds:g} s: all ranks "
                "make the same stale_step; look at what it says, or give more patience"
            )

    def serve(self, rank: int, connection: Connection) -> None:
        """Another rank, until it leaves."""
        limit_waits(connection, _silence(self._patience))
        outbox = _Outbox(
            connection, lambda: self._take(rank, ("fails", _untaken(rank, self._patience)))
        )
        with self._changes:
            self._outboxes[rank] = outbox
            if len(self._outboxes) == self._ranks - 1:
                self._all.set()
            if self._why is not None:
                outbox.put(pickle.dumps(("failed", self._why)))
        try:
            while (message := _heard(connection, self._patience, rank))[0] != "leaves":
                if message[0] != "lives":
                    self._take(rank, message)
            outbox.put(pickle.dumps(("leaves",)))
        except _SilenceError as error:
            self._take(rank, ("fails", str(error)))
        except (OSError, EOFError):
            self._take(
                rank,
                ("fails", f"rank {rank} has ended, with {self._names(rank)}: look at what it says"),
            )
        except Exception as error:  # whatever its classes raise here
            self._take(rank, ("fails", _unreadable(rank, error)))
        finally:
            outbox.end()

    def missing(self) -> list[int]:
        """Ranks that have not said the next thing that somebody has said."""
        with self._changes:
            if not self._things:
                return []
            said = self._things[min(self._things)]
            return [rank for rank in range(self._ranks) if rank not in said]

    def _send(self, message: tuple[Any, ...]) -> None:
        self._take(0, message)

    def _take(self, rank: int, message: tuple[Any, ...]) -> None:
        if message[0] == "fails":
            return self._give(("failed", message[1]))
        _, number, what, mine = message
        with self._changes:
            said = self._things.setdefault(number, {})
            said[rank] = what, mine
            wrong = next((each for each in said if said[each][0] != said[min(said)][0]), None)
            if wrong is None and len(said) < self._ranks:
                return None
            del self._things[number]
        if wrong is not None:
            first = min(said)
            return self._give(
                (
                    "failed",
                    f"rank {wrong} {said[wrong][0]} where rank {first} {said[first][0]}: all ranks "
                    "do the same, in the same order",
                )
            )
        return self._give(("all", number, [said[each][1] for each in range(self._ranks)]))

    def _give(self, message: tuple[Any, ...]) -> None:
        try:
            sent = pickle.dumps(message)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            return self._give(
                ("failed", f"what rank 0 has made cannot be sent ({told}): return arrays")
            )
        with self._changes:
            if message[0] == "failed":
                if self._why is not None:
                    return
                self._why = message[1]
            for outbox in self._outboxes.values():
                outbox.put(sent)
        self.hear(message)


class _Outbox:
    """What is said to another rank, in its order, by a thread of its own: one that does not read
    keeps nobody else waiting. Where there is nothing to say, that this one lives.

    late: called where the other end takes nothing any more."""

    def __init__(self, connection: Connection, late: Callable[[], None]):
        self._connection, self._late = connection, late
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, message: bytes) -> None:
        self._waiting.put(message)

    def end(self) -> None:
        """When what waits has been sent, or cannot be."""
        self._waiting.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            while (message := self._next()) is not None:
                self._connection.send_bytes(message)
        except BlockingIOError:
            self._late()
        except OSError:
            pass  # who listens is told

    def _next(self) -> bytes | None:
        try:
            return self._waiting.get(timeout=_EVERY)
        except queue.Empty:
            return _LIVES


class _SilenceError(Exception):
    """A process that does not even say that it lives."""


def _silence(patience: float) -> float:
    return max(patience, _LEAST)


def _heard(connection: Connection, patience: float, rank: int) -> Any:
    silence = _silence(patience)
    # One that stops within what it says raises BlockingIOError.
    with contextlib.suppress(BlockingIOError):
        if hears(connection, silence):
            return connection.recv()
    raise _SilenceError(
        f"rank {rank} has said nothing for {silence:g} s: its process was stopped, or cannot be "
        "reached"
    )


def _untaken(rank: int, patience: float) -> str:
    return (
        f"rank {rank} has taken nothing of what it was sent for {_silence(patience):g} s: its "
        "process was stopped, or cannot be reached"
    )


def _unreadable(rank: int, error: Exception) -> str:
    told = f"{type(error).__name__}: {error}"
    return f"what rank {rank} has made cannot be read here ({told}): return arrays"


def result_of(answer: Future[Any], seconds: float, missing: Callable[[], list[int]]) -> Any:
    """What all have said. Raises StoreError if that takes too long."""
    try:
        return answer.result(None if seconds == float("inf") else seconds)
    except concurrent.futures.TimeoutError:
        late = missing()
        who = f"rank {late[0]}" if late else "a rank"
        raise StoreError(
            f"{who} has not come to the same place after {seconds:g} s: all ranks make the same "
            "calls in the same order; look at what it does, or give more patience"
        ) from None
