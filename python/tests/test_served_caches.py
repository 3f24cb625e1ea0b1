# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The caches of workers in other processes: what they see, under random schedules, and what is sent
for it. `unittests/Runtime/ProcessCacheTest.cpp` has the library's part."""

from __future__ import annotations

import concurrent.futures
import socket
import threading
import time
from typing import Any

import numpy as np
import pytest

import baechi
from baechi.replicas.arguments import StoreError
from baechi.replicas.served import RemoteStore, serve

ROWS, WORKERS, CLOCKS = 10, 4, 25


def _schedule(seed: int, worker: int) -> list[list[tuple[str, np.ndarray]]]:
    """What a worker does in each clock: all know it of all."""
    random = np.random.default_rng((seed, worker))
    clocks = []
    for _ in range(CLOCKS):
        done = []
        for _ in range(random.integers(0, 5)):
            what = ("get", "inc", "sleep")[random.integers(0, 3)]
            done.append((what, np.unique(random.integers(0, ROWS, random.integers(1, 5)))))
        clocks.append(done)
    return clocks


def _updates(seed: int, worker: int) -> np.ndarray:
    """How often a worker adds to each row before each clock."""
    made = np.zeros((CLOCKS + 1, ROWS), np.float32)
    for clock, done in enumerate(_schedule(seed, worker)):
        made[clock + 1] = made[clock]
        for what, rows in done:
            if what == "inc":
                made[clock + 1, rows] += 1
    return made


def _work(seed: int, worker: int, store: Any, staleness: int, exact: bool) -> None:
    updates = [_updates(seed, other) for other in range(WORKERS)]
    own = np.zeros(ROWS, np.float32)
    one = np.eye(WORKERS, dtype=np.float32)[worker]
    with store.worker(worker):
        for clock, done in enumerate(_schedule(seed, worker)):
            if exact:  # who does not read does not wait, and goes ahead
                store.get(worker, "counts", 0)
            for what, rows in done:
                if what == "sleep":
                    time.sleep(0.0005 * len(rows))
                elif what == "inc":
                    store.inc(worker, "counts", rows, one)
                    own[rows] += 1
                else:
                    seen = store.get(worker, "counts", rows)
                    for other in range(WORKERS):
                        found = seen[:, other]
                        if other == worker:
                            assert (found == own[rows]).all()
                            continue
                        promised = updates[other][max(clock - staleness, 0), rows]
                        assert (found >= promised).all(), (clock, other, found, promised)
                        assert (found <= updates[other][-1, rows]).all()
                        assert not exact or (found == promised).all()
            assert store.clock(worker) == clock + 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "staleness, budget, order",
    [
        (0, None, "relative"),
        (2, None, "relative"),
        (1, 3e4, "relative"),
        (3, 1e5, "random"),
        (2, float("inf"), "age"),
    ],
)
def test_reads_see_what_the_bound_promises(
    seed: int, staleness: int, budget: float | None, order: str
) -> None:
    """And all own updates, under random schedules: each worker adds to its own number of a row, so
    that a reader knows how many must be within. Worker 0 is beside the store."""
    store = baechi.ParameterStore(
        {"counts": (ROWS, WORKERS)},
        workers=WORKERS,
        staleness=staleness,
        budget=budget,
        order=order,
        round_bytes=100,
        patience=60,
    )
    with serve(store) as server, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        stores: list[Any] = [store]
        stores += [RemoteStore(server.address, server.key) for _ in range(1, WORKERS)]
        exact = staleness == 0 and budget is None
        done = [
            pool.submit(_work, seed, worker, each, staleness, exact)
            for worker, each in enumerate(stores)
        ]
        for each in done:
            each.result()
    store.drain()
    expected = np.stack([_updates(seed, worker)[-1] for worker in range(WORKERS)], axis=1)
    np.testing.assert_array_equal(store.read("counts"), expected)
    report = store.report()
    assert report.clocks == [CLOCKS] * WORKERS
    reads = sum(
        len(rows)
        for worker in range(WORKERS)
        for clock in _schedule(seed, worker)
        for what, rows in clock
        if what == "get"
    )
    assert sum(report.reads_by_staleness) == reads + exact * WORKERS * CLOCKS


def _counted(remote: RemoteStore) -> list[str]:
    """The messages from now on."""
    said: list[str] = []
    answer = remote._answer

    def counted(connection: Any, asked: Any) -> Any:
        said.append(asked[0])
        return answer(connection, asked)

    remote._answer = counted  # type: ignore[method-assign]
    return said


def test_reads_within_the_bound_need_no_message() -> None:
    store = baechi.ParameterStore({"w": np.ones((5, 2), np.float32)}, workers=2, staleness=2)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with remote.worker(0):
            said = _counted(remote)
            remote.get(0, "w", range(5))
            assert said == ["fetch"]
            for clock in range(3):
                said.clear()
                for _ in range(4):
                    remote.get(0, "w", [1, 3])
                    remote.inc(0, "w", [1, 4], 1)
                assert remote.clock(0) == clock + 1
                assert said == ["sync"]
            said.clear()
            store.clock(1)
            store.inc(1, "w", 3, 10)
            assert remote.get(0, "w", 4).tolist() == [13, 13]
            assert "sync" in said
            store.clock(1)
            store.clock(1)
            for _ in range(100):  # as soon as the others have come as far
                remote.flush(0)
                remote.clock(0)
                store.clock(1)
            assert remote.get(0, "w", 3).tolist() == [11, 11]


def test_a_budget_bounds_what_is_sent_between_clocks() -> None:
    """Bytes of rows in a second, each way; all of it is sent at the end."""
    budget = 20_000.0
    store = baechi.ParameterStore(
        {"w": (4000, 8)}, workers=2, staleness=50, budget=budget, round_bytes=440
    )
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with remote.worker(0), store.worker(1):
            remote.inc(0, "w", range(4000), 1)
            began = time.monotonic()
            time.sleep(1.0)
            sent = store.report().bytes_sent[0]
            took = time.monotonic() - began
            assert 0 < sent <= budget * took + 2 * 440
    store.drain()
    assert (store.read("w") == 1).all()


def test_a_budget_moves_rows_to_a_reader_between_clocks() -> None:
    store = baechi.ParameterStore({"w": (3, 1)}, workers=2, staleness=9, budget=1e6)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with remote.worker(0), store.worker(1):
            assert remote.get(0, "w", 1) == 0
            store.get(1, "w", 1)
            store.inc(1, "w", 1, 5)
            remote.inc(0, "w", 1, 2)
            for _ in range(3000):
                if remote.get(0, "w", 1) == 7 and store.get(1, "w", 1) == 7:
                    break
                time.sleep(0.01)
            assert remote.get(0, "w", 1) == 7 and store.get(1, "w", 1) == 7


def test_drain_and_save_have_what_was_flushed(tmp_path: Any) -> None:
    store = baechi.ParameterStore({"w": (3, 1)}, workers=2, staleness=5, budget=1e3)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with remote.worker(0):
            assert remote.get(0, "w", 0) == 0
            remote.inc(0, "w", 0, 3)
            remote.flush(0)
            store.inc(1, "w", 0, 1)
            store.drain()
            assert store.read("w", 0) == 4
            store.save(tmp_path / "saved")
            remote.inc(0, "w", 0, 1)
        store.finish(1)
    store.drain()
    assert store.read("w", 0) == 5
    again = baechi.ParameterStore.restore(tmp_path / "saved", staleness=5)
    with serve(again) as server:
        remote = RemoteStore(server.address, server.key)
        with remote.worker(0):
            assert remote.get(0, "w", 0) == 4


def test_a_worker_that_somebody_goes_on_for_has_its_rows_here() -> None:
    """After it was lost, where the others wait for it."""
    store = baechi.ParameterStore({"w": (2, 1)}, workers=2, when_lost="wait", patience=60)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with pytest.raises(ZeroDivisionError), remote.worker(0):
            assert remote.get(0, "w", 1) == 0
            with pytest.raises(StoreError, match="worker 0 has its rows in another process: let"):
                store.get(0, "w", 1)
            raise ZeroDivisionError
        while True:
            try:
                store.inc(0, "w", 1, 3)
                break
            except StoreError:  # its connection has not ended yet
                time.sleep(0.01)
        store.clock(0)
        store.clock(1)
        assert store.get(1, "w", 1) == 3 and store.get(0, "w", 1) == 3


def test_stores_whose_workers_share_rows_keep_them() -> None:
    """As of one process: each read is a message."""
    store = baechi.ParameterStore({"w": (2, 1)}, workers=4, processes=2, staleness=1, checked=True)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with remote.worker(0), remote.worker(2), store.worker(1), store.worker(3):
            said = _counted(remote)
            remote.inc(0, "w", 0, 2)
            assert remote.get(2, "w", 0) == 2
            assert remote.clock(0) == 1
            remote.flush(0)
            assert said == ["inc", "get", "clock"]


def test_gradients_make_steps_of_adaptive_revision() -> None:
    """The bits of a worker beside the store."""
    made = []
    for is_remote in (False, True):
        store = baechi.ParameterStore({"w": (3, 2)}, revised={"w": 0.5}, checked=True)
        with serve(store) as server:
            own: Any = RemoteStore(server.address, server.key) if is_remote else store
            with own.worker(0):
                for clock in range(5):
                    w = own.get(0, "w", range(3))
                    own.inc(0, "w", range(3), w - np.linspace(-1, 1, 6).reshape(3, 2))
                    own.inc(0, "w", 1, clock)
                    own.clock(0)
        store.drain()
        made.append(store.read("w"))
    assert made[0].any()
    np.testing.assert_array_equal(made[0], made[1])


def test_a_number_that_is_not_finite_stops_its_worker() -> None:
    store = baechi.ParameterStore({"w": (3, 2)}, workers=2)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)
        with pytest.raises(StoreError, match="worker 0 at clock 1 adds a number that is not fin"):
            with remote.worker(0):
                remote.clock(0)
                remote.inc(0, "w", 2, np.float32([1, np.nan]))
        with pytest.raises(StoreError, match="worker 0 is lost: StoreError: worker 0 at clock 1"):
            store.get(1, "w", 0)


@pytest.mark.parametrize("first, second", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_worker_is_done_by_one_at_a_time(first: int, second: int) -> None:
    """Of threads, of processes, and of one of each."""
    store = baechi.ParameterStore({"w": (1, 1)}, workers=2)
    with serve(store) as server:
        ways: list[Any] = [store, RemoteStore(server.address, server.key)]
        ways.append(RemoteStore(server.address, server.key))
        other = ways[2] if first == second == 1 else ways[second]
        words = "worker 1 is at work already: give|worker 1 has a connection, or had one: each pro"
        with ways[first].worker(1):
            for _ in range(2):
                with pytest.raises(StoreError, match=words), other.worker(1):
                    pass
            ways[first].clock(1)  # it goes on
        for _ in range(100):
            if 1 not in store._at_work:
                break
            time.sleep(0.01)
        with store.worker(1):  # it may go on
            store.clock(1)


def test_addresses_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the place, with the mend."""
    store = baechi.ParameterStore({"w": (1, 1)})
    for address, words in (
        (("127.0.0.1", 70000), "the address's port is 70000: give a number from 0 to 65535"),
        (("127.0.0.1", -1), "the address's port is -1: give a number from 0 to 65535"),
        (("127.0.0.1", "7000"), "the address's port is '7000': give a number from 0 to 65535"),
        (("127.0.0.1", True), "the address's port is True: give a number"),
        ("127.0.0.1:7000", "the address is '127.0.0.1:7000': give the machine's name or number"),
        ((b"host", 1), "the address is .b'host', 1.: give the machine's name"),
    ):
        for call in (lambda: serve(store, address), lambda: RemoteStore(address, b"key")):  # noqa: B023
            with pytest.raises(StoreError, match=words):
                call()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = f"cannot be served at 127.0.0.1:{port} .*: another program has port {port}: give"
        with pytest.raises(StoreError, match=words):
            serve(store, ("127.0.0.1", port))
    nowhere = "no-such-machine.invalid"
    words = rf"cannot be served at {nowhere}:7 .*no machine has the name '{nowhere}': give a name"
    with pytest.raises(StoreError, match=words):
        serve(store, (nowhere, 7))
    # Of TEST-NET-1, which no machine has.
    with pytest.raises(StoreError, match=r"at 192\.0\.2\.1:0 .*: give an address of this mach"):
        serve(store, ("192.0.2.1", 0))
    with pytest.raises(StoreError, match=rf"no store can be reached at {nowhere}:7 .*: begin to"):
        RemoteStore((nowhere, 7), b"key").worker(0).__enter__()
    with pytest.raises(StoreError, match="the key is no bytes: give that of the store's server"):
        RemoteStore(("127.0.0.1", 7), "word")  # type: ignore[arg-type]
    timed = baechi.ParameterStore({"w": (1, 1)}, network=baechi.replicas.store.Network(1e6))
    with (
        serve(timed) as server,
        pytest.raises(StoreError, match="the store's time is simulated"),
    ):
        RemoteStore(server.address, server.key).worker(0).__enter__()


def test_nobody_is_held_up_by_one_that_connects_while_others_work() -> None:
    """Threads of one process with a connection each."""
    store = baechi.ParameterStore({"w": (8, 1)}, workers=4, staleness=1, patience=60)
    with serve(store) as server:
        remote = RemoteStore(server.address, server.key)

        def work(worker: int) -> None:
            with remote.worker(worker):
                for _ in range(50):
                    remote.get(worker, "w", range(8))
                    remote.inc(worker, "w", worker, 1)
                    remote.clock(worker)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    store.drain()
    assert store.read("w")[:4].tolist() == [[50]] * 4
