# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links and processes of a parameter store that fail for a time, or for good: what was asked for
holds, nothing is lost that was told, nobody waits for ever."""

from __future__ import annotations

import pathlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np
import pytest

import baechi
from baechi.replicas import meeting
from baechi.replicas.arguments import StoreError
from baechi.replicas.remote import RemoteStore
from baechi.replicas.served import StoreServer, serve
from relays import Relay, slowed


def _store(staleness: int, **options: Any) -> baechi.ParameterStore:
    """Of two workers; every read is compared with the bound."""
    given = {"patience": 60, "checked": True} | options
    return baechi.ParameterStore({"sums": (20, 3)}, workers=2, staleness=staleness, **given)


@pytest.fixture
def linked() -> Iterator[Callable[..., tuple[StoreServer, Relay, RemoteStore]]]:
    """A store's server, and another process's store that reaches it over a link."""
    made: list[Any] = []

    def make(store: baechi.ParameterStore) -> tuple[StoreServer, Relay, RemoteStore]:
        server = serve(store)
        relay = Relay(server.address[1])
        made.extend([relay, server])
        return server, relay, RemoteStore(("127.0.0.1", relay.port), server.key)

    yield make
    for each in made:
        each.close()


def _drawn(worker: int, step: int) -> np.ndarray:
    return np.unique(np.random.default_rng((worker, step)).integers(0, 20, 6))


def _turn(store: Any, worker: int, step: int) -> None:
    store.get(worker, "sums", range(20))
    store.inc(worker, "sums", _drawn(worker, step), worker + 1)
    assert store.clock(worker) == step + 1


def _work(store: Any, worker: int, steps: range) -> None:
    with store.worker(worker):
        for step in steps:
            _turn(store, worker, step)


def _check_sums(store: baechi.ParameterStore, steps: int) -> None:
    store.drain()
    expected = np.zeros((20, 3), np.float32)
    for worker in (0, 1):
        for step in range(steps):
            expected[_drawn(worker, step)] += worker + 1
    np.testing.assert_array_equal(store.read("sums"), expected)


class _Thread(threading.Thread):
    """Keeps what it raises."""

    def __init__(self, body: Callable[..., None], *given: Any):
        super().__init__(daemon=True)
        self.body, self.given, self.error = body, given, ""
        self.start()

    def run(self) -> None:
        try:
            self.body(*self.given)
        except StoreError as error:
            self.error = str(error)

    def ended(self) -> str:
        self.join(60)
        assert not self.is_alive()
        return self.error


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("not within a minute")


@pytest.mark.parametrize("staleness, options", [(0, {}), (2, {}), (3, {"budget": 1e5})])
def test_a_link_that_is_cut_for_a_second(
    linked: Any, staleness: int, options: dict[str, Any]
) -> None:
    """The bound keeps the other worker waiting; no update is lost, whether the link is cut before
    a message or within one."""
    store, steps = _store(staleness, **options), 60
    _, relay, remote = linked(store)
    ready = threading.Semaphore(0)

    def work() -> None:
        with remote.worker(0):
            for step in range(steps):
                if step in (20, 40):
                    ready.release()
                    time.sleep(0.02)
                _turn(remote, 0, step)

    threads = [_Thread(work), _Thread(_work, store, 1, range(steps))]
    for count in (0, 100):
        ready.acquire()
        relay.hold_after(count)
        time.sleep(1)
        _until(lambda: relay.holds_something)
        mine, other = store.report().clocks
        assert mine < steps and other <= mine + staleness + 1
        relay.let_go()
    assert [thread.ended() for thread in threads] == ["", ""]
    _check_sums(store, steps)
    assert store.report().clocks == [steps, steps]


def test_a_link_that_is_cut_for_longer_than_others_wait(linked: Any) -> None:
    """They are told whom they have waited for, and so is that one when it can be reached."""
    store = _store(1, patience=0.5)
    _, relay, remote = linked(store)
    with pytest.raises(StoreError, match="worker 1 is lost: .* for worker 0"), remote.worker(0):
        _turn(remote, 0, 0)
        relay.hold_after(0)
        told = _Thread(_work, store, 1, range(9)).ended()
        assert "worker 1 at clock 3 waited" in told and "for worker 0, which is at clock 1" in told
        relay.let_go()
        _turn(remote, 0, 1)


def test_who_has_patience_waits_for_a_link(linked: Any) -> None:
    store = _store(1, patience=float("inf"))
    _, relay, remote = linked(store)
    with remote.worker(0):
        _turn(remote, 0, 0)
        relay.hold_after(0)
        other = _Thread(_work, store, 1, range(9))
        _until(lambda: store.report().clocks[1] == 3)
        other.join(0.7)
        assert other.is_alive()
        relay.let_go()
        for step in range(1, 9):
            _turn(remote, 0, step)
    assert other.ended() == ""
    _check_sums(store, 9)


@pytest.mark.parametrize("when_lost", ["stop", "wait"])
def test_a_link_that_is_lost(linked: Any, when_lost: str) -> None:
    """Both sides are told; or the other waits until somebody goes on where the store's clock is."""
    store = _store(1, when_lost=when_lost, patience=float("inf"))
    _, relay, remote = linked(store)
    other = _Thread(_work, store, 1, range(12))
    with pytest.raises(StoreError, match="has ended, or cannot be reached any more"):
        with remote.worker(0):
            for step in range(12):
                if step == 6:
                    relay.cut()
                _turn(remote, 0, step)
    if when_lost == "stop":
        assert "worker 0 is lost: its connection has ended, and it was not" in other.ended()
        return
    _until(lambda: store.report().clocks[1] == 8)
    other.join(0.3)
    assert other.is_alive()
    assert store.report().clocks == [6, 8]
    _work(store, 0, range(6, 12))
    assert other.ended() == ""
    _check_sums(store, 12)


# Adds to its rows: the first ones, and the rest when it is told to.
_SLOW = """
import sys
from baechi.replicas.served import RemoteStore
from test_store_links import _turn

store = RemoteStore(("127.0.0.1", int(sys.argv[1])), bytes.fromhex(sys.argv[2]))
with store.worker(0):
    _turn(store, 0, 0)
    print("begun", flush=True)
    sys.stdin.readline()
    for step in range(1, int(sys.argv[3])):
        _turn(store, 0, step)
"""


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_process_that_is_slowed_ten_times(staleness: int) -> None:
    """The others wait for it as the bound says, and all that it adds is there."""
    store, steps = _store(staleness, patience=60), 150
    with serve(store) as server:
        words = [str(server.address[1]), server.key.hex(), str(steps)]
        process = subprocess.Popen(
            [sys.executable, "-c", _SLOW, *words],
            cwd=pathlib.Path(__file__).parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        other = _Thread(_work, store, 1, range(steps))
        assert process.stdout.readline() == b"begun\n"
        with process.stdin, process.stdout, slowed(process.pid):
            process.stdin.write(b"go on\n")
            process.stdin.flush()
            # On a busy machine a clock takes it seconds.
            ahead, mine = 0, 1
            for turn in range(400):
                # The one that may be ahead first: clocks only grow.
                ahead, mine = store.report().clocks[1], store.report().clocks[0]
                assert ahead <= mine + staleness + 1
                if turn >= 20 and mine > 1:
                    break
                time.sleep(0.1)
            assert mine > 1
        assert process.wait(60) == 0
        assert other.ended() == ""
    _check_sums(store, steps)


def _pair() -> tuple[Connection, Connection]:
    with Listener(("127.0.0.1", 0)) as listener:
        mine = Client(listener.address)
        return mine, listener.accept()


class _Ranks:
    """Rank 0, a rank 1 of its own, and a rank 2 that is a connection alone."""

    def __init__(self, patience: float):
        self.errors: dict[int, str] = {}
        self.first = meeting.First(3, lambda rank: f"replica {rank}", self._fails(0), patience)
        (self.second, mine), (other, theirs) = _pair(), _pair()
        # The silent one first: it is what comes before the others.
        self._serve(2, mine)
        _until(lambda: 2 in self.first._outboxes)
        self._serve(1, theirs)
        self.first.wait_for_all(60)
        self.other = meeting.Other(1, other, self._fails(1), patience)

    def _serve(self, rank: int, connection: Connection) -> None:
        def serve() -> None:
            with connection:
                self.first.serve(rank, connection)

        threading.Thread(target=serve, daemon=True).start()

    def _fails(self, rank: int) -> Callable[[StoreError], None]:
        return lambda error: self.errors.update({rank: str(error)})


# More than a connection takes before somebody reads it.
_LONG = np.zeros(1 << 22, np.float32)


def test_a_rank_that_does_not_read_keeps_no_other_waiting() -> None:
    ranks = _Ranks(patience=60)
    ranks.second.send(("says", 0, "gives", 2))
    said = [ranks.first.say("gives", _LONG), ranks.other.say("gives", 1)]
    for answer in said:
        assert [np.size(each) for each in answer.result(30)] == [_LONG.size, 1, 1]
    assert not ranks.errors
    ranks.second.close()


def test_a_rank_that_does_not_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it goes on saying that it lives: not rank 0, which does."""
    monkeypatch.setattr(meeting, "_LEAST", 1.5)
    ranks = _Ranks(patience=0.1)
    ranks.second.send(("says", 0, "gives", 2))
    said = [ranks.first.say("gives", _LONG), ranks.other.say("gives", 1)]
    for answer in said:
        answer.result(30)
    for _ in range(40):
        if len(ranks.errors) == 2:
            break
        ranks.second.send(("lives",))
        time.sleep(0.1)
    for rank in (0, 1):
        assert ranks.errors[rank].startswith("rank 2 has taken nothing of what it was sent for 1.5")
    ranks.second.close()


def test_a_rank_that_stops_within_a_message_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "_EVERY", 0.1)
    monkeypatch.setattr(meeting, "_LEAST", 1.0)
    ranks = _Ranks(patience=0.1)
    with socket.socket(fileno=ranks.second.fileno()) as line:
        line.sendall((1000).to_bytes(4, "big") + b"some of it")
        _until(lambda: len(ranks.errors) == 2)
        line.detach()
    for rank in (0, 1):
        assert ranks.errors[rank].startswith("rank 2 has said nothing for 1 s: its process was st")
    ranks.second.close()


@pytest.mark.parametrize("stops", ["before what it is sent", "within its answer"])
def test_a_store_that_stops_within_a_message_is_an_error(
    monkeypatch: pytest.MonkeyPatch, stops: str
) -> None:
    """As one that does not answer."""
    with Listener(("127.0.0.1", 0), authkey=b"key") as listener:
        ends = threading.Event()

        def stop() -> None:
            with listener.accept() as connection:
                connection.recv()
                told = {"tables": {"w": (1 << 14, 256)}, "cache": None, "patience": 0.5}
                connection.send(("made", told))
                if stops == "within its answer":
                    connection.recv()
                    with socket.socket(fileno=connection.fileno()) as line:
                        line.sendall((1000).to_bytes(4, "big") + b"some of it")
                        line.detach()
                ends.wait(60)

        thread = threading.Thread(target=stop)
        thread.start()
        monkeypatch.setattr("baechi.replicas.remote._LEAST", 0.5)
        monkeypatch.setattr("baechi.replicas.remote._LONGER", 0.3)
        remote = RemoteStore(listener.address, b"key")
        words = r"has said nothing for 0\.8 s: it was stopped, or cannot be reached"
        with pytest.raises(StoreError, match=words), remote.worker(0):
            if stops == "within its answer":
                remote.get(0, "w", 1)
            else:
                remote.inc(0, "w", range(1 << 14), np.ones((1 << 14, 256), np.float32))
        ends.set()
        thread.join()
