# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A parameter store whose workers are in other processes: bounded as threads are, with nothing
lost, and an error where a process is."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import threading
import time
from multiprocessing.connection import Client, Listener
from typing import Any

import numpy as np
import pytest

import baechi
from baechi.replicas.arguments import StoreError
from baechi.replicas.served import RemoteStore, StoreServer, serve

# What a process does: address, key, its workers, steps.
_PROGRAM = """
import sys, threading
import numpy as np
from baechi.replicas.served import RemoteStore

port, key, workers, steps = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), sys.argv[3], sys.argv[4]
store = RemoteStore(("127.0.0.1", port), key)

def work(worker):
    random = np.random.default_rng(worker)
    with store.worker(worker):
        own = 0
        for step in range(int(steps)):
            rows = random.integers(0, 40, 6)
            seen = store.get(worker, "counts", rows)
            assert seen.shape == (6, 3) and (seen[:, 0] == seen[:, 2]).all()
            store.inc(worker, "counts", np.unique(rows), 1)
            store.inc(worker, "own", worker, np.float32([1, 0]))
            own += 1
            assert store.get(worker, "own", worker)[0] == own
            assert store.clock(worker) == step + 1


threads = [threading.Thread(target=work, args=(int(w),)) for w in workers.split(",")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", flush=True)
"""


def _store(staleness: int, **options: float) -> baechi.ParameterStore:
    tables = {"counts": (40, 3), "own": (4, 2)}
    return baechi.ParameterStore(
        tables, workers=4, staleness=staleness, checked=True, patience=60, **options
    )


def _start(server: StoreServer, workers: str, steps: int) -> subprocess.Popen[str]:
    program = textwrap.dedent(_PROGRAM)
    words = [str(server.address[1]), server.key.hex(), workers, str(steps)]
    command = [sys.executable, "-c", program, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("staleness, budget", [(0, None), (2, None), (3, 1e6)])
def test_processes_lose_nothing(staleness: int, budget: float | None) -> None:
    """Every read is checked by the store, and the sums are those of all that NumPy draws."""
    store = _store(staleness, **({} if budget is None else {"budget": budget}))
    steps = 60
    with serve(store) as server:
        started = [_start(server, workers, steps) for workers in ("0,2", "1", "3")]
        for process in started:
            told, _ = process.communicate(timeout=300)
            assert process.returncode == 0 and told.endswith("done\n"), told
    store.drain()
    expected = np.zeros((40, 3), np.float32)
    for worker in range(4):
        random = np.random.default_rng(worker)
        for _ in range(steps):
            expected[np.unique(random.integers(0, 40, 6))] += 1
    np.testing.assert_array_equal(store.read("counts"), expected)
    np.testing.assert_array_equal(store.read("own")[:, 0], steps)
    report = store.report()
    assert report.clocks == [steps] * 4
    assert len(report.reads_by_staleness) == staleness + 1


def test_a_process_that_ends_is_told() -> None:
    """Within seconds, by the others' next read."""
    store = _store(staleness=0)
    with serve(store) as server:
        killed = _start(server, "0", 10**6)
        remote = RemoteStore(server.address, server.key)

        def others(worker: int) -> None:
            with remote.worker(worker):
                while True:
                    remote.get(worker, "counts", 0)
                    remote.clock(worker)

        errors: list[StoreError] = []

        def work(worker: int) -> None:
            try:
                others(worker)
            except StoreError as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in (1, 2, 3)]
        for thread in threads:
            thread.start()
        while store.report().clocks[0] < 3:
            assert killed.poll() is None
            time.sleep(0.05)
        killed.kill()
        began = time.monotonic()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert time.monotonic() - began < 30
        killed.wait()
    assert len(errors) == 3
    for error in errors:
        assert "worker 0 is lost: its connection has ended, and it was not finished" in str(error)


def test_who_says_nothing_holds_up_no_worker() -> None:
    """Nor the server's end: a connection that has not said whether it has the key."""
    with serve(_store(staleness=0)) as server, socket.create_connection(server.address):
        began = time.monotonic()
        with RemoteStore(server.address, server.key).worker(0):
            pass
        server.close()
        assert time.monotonic() - began < 30


class _Unreadable:
    def __reduce__(self) -> Any:
        return int, ("no number",)


@pytest.mark.parametrize(
    "asked, words",
    [
        # More than a connection takes before somebody reads it.
        (("get", ("large", range(4096))), "its connection has ended, and it was not finished"),
        (("get", (_Unreadable(), 0)), "what it asks for cannot be read .ValueError: invalid lit"),
    ],
)
def test_one_that_goes_or_talks_nonsense_is_told(asked: Any, words: str) -> None:
    store = baechi.ParameterStore({"large": (4096, 1024)}, workers=2, patience=60)
    with serve(store) as server:
        with Client(server.address, authkey=server.key) as connection:
            connection.send(0)
            assert connection.recv()[1]["tables"] == {"large": (4096, 1024)}
            connection.send(asked)
        with pytest.raises(StoreError, match=f"worker 0 is lost: {words}"):
            store.clock(1)  # may tell it already
            store.get(1, "large", 0)


def test_errors_of_workers_are_told_to_the_others() -> None:
    store = _store(staleness=0)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with pytest.raises(ZeroDivisionError), remote.worker(0):
            raise ZeroDivisionError("of its own")
        with pytest.raises(StoreError, match="worker 0 is lost: ZeroDivisionError: of its own"):
            store.get(1, "counts", 0)


def test_what_is_wrong_is_refused() -> None:
    store = _store(staleness=1)
    server = serve(store)
    remote = RemoteStore(server.address, server.key)
    with remote.worker(0):
        assert remote.tables == {"counts": (40, 3), "own": (4, 2)}
        for wrong, words in (
            (lambda: remote.get(0, "none", 0), "there is no table 'none'; known: 'counts', 'own'"),
            (lambda: remote.get(0, "own", 9), "table 'own' has 4 rows, no row 9"),
            (lambda: remote.inc(0, "own", 0, np.zeros(3)), r"values of shape \(3,\), where \(2,\)"),
            (lambda: remote.get(0, ["own"], 0), r"there is no table \['own'\]; known"),  # type: ignore[arg-type]
            (lambda: remote.get(1, "own", 0), "worker 1 is not at work: use it within `with store"),
            (lambda: remote.worker(0).__enter__(), "worker 0 is at work already: give each thread"),
            (lambda: remote._ask(0, "drain"), "a worker asks for 'drain', which a store does not"),
        ):
            with pytest.raises(StoreError, match=words):
                wrong()
        assert remote.clock(0) == 1  # it goes on
    for worker, words in (
        (0, "worker 0 has a connection, or had one: each process takes workers of its own"),
        (4, "there is no worker 4 of 4"),
        (True, "a worker is True: give its number"),
    ):
        with pytest.raises(StoreError, match=words), remote.worker(worker):
            pass
    with pytest.raises(StoreError, match="has another key: give that of its server"):
        RemoteStore(server.address, b"another").worker(1).__enter__()
    with pytest.raises(StoreError, match="cannot be served at 127.0.0.1:"):
        serve(store, server.address)
    with pytest.raises(StoreError, match="the key is no bytes: give those that the workers'"):
        serve(store, key="word")  # type: ignore[arg-type]
    server.close()
    server.close()
    with pytest.raises(StoreError, match=r"no store can be reached at 127.0.0.1:\d+ .*: begin to"):
        remote.worker(1).__enter__()


def test_a_store_that_has_ended_is_told() -> None:
    program = """
        import baechi, sys, time
        from baechi.replicas.served import serve
        server = serve(baechi.ParameterStore({"a": (1, 1)}, workers=1))
        print(server.address[1], server.key.hex(), flush=True)
        time.sleep(600)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    port, key = process.stdout.readline().split()
    remote = RemoteStore(("127.0.0.1", int(port)), bytes.fromhex(key))
    with pytest.raises(StoreError, match="has ended, or cannot be reached any more: look at what"):
        with remote.worker(0):
            assert remote.get(0, "a", 0) == 0
            process.kill()
            process.wait()
            remote.get(0, "a", 0)
    process.stdout.close()


def test_a_store_whose_process_is_stopped_is_an_error() -> None:
    """The one who waits for it names it, and does not wait for it at the end."""
    with Listener(("127.0.0.1", 0), authkey=b"key") as listener:
        held = []

        def serve() -> None:
            connection = listener.accept()
            held.append(connection)
            connection.recv()
            told = {"tables": {"w": (4, 2)}, "cache": None, "patience": 0.5}
            connection.send(("made", told))

        thread = threading.Thread(target=serve)
        thread.start()
        remote = RemoteStore(listener.address, b"key")
        with (
            pytest.raises(StoreError, match=r"has said nothing for 0\.5 s: it was stopped, or can"),
            remote.worker(0),
        ):
            thread.join()
            remote._workers[0].patience = 0.5
            remote.get(0, "w", 1)
