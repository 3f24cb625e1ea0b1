# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.ParameterStore` and the exchange of replicas in simulated time."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import baechi
from baechi.replicas import exchange, library

try:
    library.library()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

from baechi.replicas.store import ORDERS, Network, StoreError  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "replicas.md"


def run(workers, body):
    errors = []

    def guarded(worker):
        try:
            body(worker)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("budget", [None, 2e6, float("inf")])
@pytest.mark.parametrize("staleness", [0, 2])
def test_reads_are_within_the_bound_and_nothing_is_lost(staleness, budget):
    workers, clocks = 3, 10
    store = baechi.ParameterStore(
        {"counts": np.zeros((20, workers))}, workers=workers, staleness=staleness, budget=budget,
        patience=300, checked=True,
    )  # fmt: skip

    def body(worker):
        one = np.eye(workers)[worker]
        with store.worker(worker):
            for clock in range(clocks):
                seen = store.get(worker, "counts", range(20))
                assert (seen >= clock - staleness).all()
                assert (seen[:, worker] == clock).all()
                store.inc(worker, "counts", range(20), one)
                assert store.clock(worker) == clock + 1

    run(workers, body)
    store.drain()
    assert (store.read("counts") == clocks).all()
    report = store.report()
    assert report.clocks == [clocks] * workers
    assert sum(report.reads_by_staleness) == 20 * clocks * workers
    assert all(report.bytes_sent)


def test_one_worker_is_a_numpy_loop():
    random = np.random.default_rng(1)
    a, b = random.normal(size=(30, 4)).astype(np.float32), random.normal(size=30)
    store = baechi.ParameterStore({"x": np.zeros((1, 4))})
    x = np.zeros(4, np.float32)
    for row, target in zip(a, b, strict=True):
        seen = store.get(0, "x", 0)
        np.testing.assert_array_equal(seen, x)
        update = np.float32(0.1) * (np.float32(target) - row @ x) * row
        store.inc(0, "x", 0, update)
        store.clock(0)
        x = x + update


def test_a_worker_that_raises_is_named():
    store = baechi.ParameterStore({"x": (4, 2)}, workers=2)

    def body(worker):
        with store.worker(worker):
            if worker == 1:
                raise KeyError("batch")
            store.clock(0)
            store.get(0, "x", 0)

    with pytest.raises((StoreError, KeyError)):
        run(2, body)
    with pytest.raises(StoreError, match="worker 1 is lost: KeyError: 'batch'"):
        store.get(0, "x", 0)


def test_a_late_worker_is_named():
    store = baechi.ParameterStore({"x": (4, 2)}, workers=2, patience=0.05)
    store.clock(0)
    with pytest.raises(StoreError, match="for worker 1, which is at clock 0"):
        store.get(0, "x", 0)


def test_a_store_goes_on_from_its_file(tmp_path):
    store = baechi.ParameterStore({"x": (4, 2), "bias": (1, 3)}, workers=1)
    store.inc(0, "bias", 0, [1, 2, 3])
    store.clock(0)
    store.save(tmp_path / "state")
    again = baechi.ParameterStore.restore(tmp_path / "state")
    assert again.tables == {"x": (4, 2), "bias": (1, 3)}
    assert again.report().clocks == [1]
    assert again.get(0, "bias", 0).tolist() == [1, 2, 3]
    with pytest.raises(StoreError, match="cannot be read"):
        baechi.ParameterStore.restore(tmp_path / "none")


@pytest.mark.parametrize("order", ORDERS)
def test_simulated_time_keeps_bound_and_budget(order):
    def simulate():
        store = baechi.ParameterStore(
            {"counts": np.zeros((200, 3))}, workers=3, staleness=1, budget=2e4, order=order,
            checked=True, round_bytes=1000, network=Network(1e6),
        )  # fmt: skip
        seen = []

        def body(worker):
            random = np.random.default_rng(worker)
            for clock in range(6):
                for _ in range(4):
                    rows = random.choice(200, 30, replace=False)
                    seen.append(store.get(worker, "counts", rows).sum())
                    yield 0.01 + 0.001 * worker
                    store.inc(worker, "counts", rows, np.eye(3)[worker])
                assert store.clock(worker) == clock + 1
                yield 0

        store.run(body)
        return store, seen

    (store, seen), (again, same) = simulate(), simulate()
    assert seen == same
    assert store.seconds == again.seconds >= 6 * 4 * 0.012
    report = store.report()
    assert report == again.report()
    for sent in report.bytes_sent:
        assert sent <= 1.05 * store.seconds * 2e4
    store.drain()
    assert (store.read("counts").sum(axis=0) == 6 * 4 * 30).all()


def test_simulated_time_is_asked_for():
    store = baechi.ParameterStore({"x": (4, 2)})
    with pytest.raises(StoreError, match="is not simulated: give it a network"):
        store.run(lambda worker: iter([0.0]))
    with pytest.raises(StoreError, match="the network has 0 bytes per second"):
        baechi.ParameterStore({"x": (4, 2)}, network=Network(0))


def test_adaptive_revision_of_late_gradients():
    """Sixteen workers, two clocks late, are as good as AdaGrad, one gradient after the other,
    over a decade of steps."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(16, 20, 8))
    targets = inputs @ random.normal(size=8) + 0.3 * random.normal(size=(16, 20))

    def loss(w):
        return float(np.square(inputs @ w - targets).mean())

    def gradient(worker, w):
        return inputs[worker].T @ (inputs[worker] @ w - targets[worker]) / 20

    for step in (0.5, 1.0, 2.0, 5.0):
        w, squares = np.zeros(8), np.zeros(8)
        for _ in range(40):
            for worker in range(16):
                g = gradient(worker, w)
                squares += g * g
                w -= step * g / np.sqrt(squares)
        store = baechi.ParameterStore(
            {"w": (1, 8)}, revised={"w": step}, workers=16, staleness=2, checked=True,
            network=Network(1e6),
        )  # fmt: skip

        def body(worker, store=store):
            for _ in range(40):
                g = gradient(worker, store.get(worker, "w", 0))
                yield 0.01
                store.inc(worker, "w", 0, g)
                store.clock(worker)
                yield 0

        store.run(body)
        store.drain()
        assert loss(store.read("w", 0)) < 1.02 * loss(w)


KILLED = """
import baechi, os, signal, sys
import numpy as np
store = baechi.ParameterStore({"sums": np.zeros((5, 2))}, workers=1)
for clock in range(100):
    store.inc(0, "sums", range(5), 1)
    if store.clock(0) % 10 == 0:
        store.save(sys.argv[1])
    if clock == 57:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_goes_on_from_its_last_file(tmp_path):
    file = tmp_path / "state"
    path = os.pathsep.join(map(str, sys.path))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, file], env={**os.environ, "PYTHONPATH": path}
    )
    assert killed.returncode == -signal.SIGKILL
    store = baechi.ParameterStore.restore(file)
    (clock,) = store.report().clocks
    assert clock == 50
    for _ in range(clock, 100):
        store.inc(0, "sums", range(5), 1)
        store.clock(0)
    store.drain()
    assert (store.read("sums") == 100).all()


@pytest.mark.parametrize("when_lost", ["stop", "wait"])
def test_a_thread_that_ends_in_the_middle(when_lost):
    """Nobody hangs: within the patience the others name it."""
    store = baechi.ParameterStore(
        {"x": (4, 2)}, workers=3, patience=0.5, when_lost=when_lost, checked=True
    )
    told = []

    def body(worker):
        for clock in range(10):
            if worker == 1 and clock == 4:
                return  # without a word
            try:
                store.get(worker, "x", 0)
            except StoreError as error:
                told.append(str(error))
                return
            store.inc(worker, "x", 0, 1)
            store.clock(worker)

    run(3, body)
    assert len(told) == 2
    for text in told:
        assert "for worker 1, which is at clock 4" in text


def test_p3_hides_a_large_last_layer():
    layers = [exchange.Layer(f"conv{i}", 200_000, 4_000_000, 8_000_000) for i in range(8)]
    layers.append(exchange.Layer("dense", 20_000_000, 1_000_000, 2_000_000))
    steps = {policy: exchange.simulate(layers, policy, 1.25e9) for policy in exchange.POLICIES}
    assert steps["p3"].step_ns < steps["slices"].step_ns < steps["fifo"].step_ns
    assert steps["p3"].step_ns >= steps["p3"].bound_ns
    stored = {p: exchange.simulate(layers, p, 1.25e9, stored=True) for p in exchange.POLICIES}
    assert all(stored[policy].step_ns >= steps[policy].step_ns for policy in exchange.POLICIES)
    asked = exchange.simulate(layers, "fifo", 1.25e9, asked=True)
    assert asked.step_ns > steps["fifo"].step_ns
    busy = exchange.simulate(layers, "fifo", 1.25e9, server_bytes_per_second=1e9)
    assert busy.step_ns > steps["fifo"].step_ns
    with pytest.raises(exchange.ExchangeError, match="a server adds -1"):
        exchange.simulate(layers, "fifo", 1e9, server_bytes_per_second=-1)
    with pytest.raises(exchange.ExchangeError, match="unknown policy 'lifo'"):
        exchange.simulate(layers, "lifo", 1e9)
    with pytest.raises(exchange.ExchangeError, match="unknown servers 'last'"):
        exchange.simulate(layers, "p3", 1e9, servers="last")
    with pytest.raises(exchange.ExchangeError, match="there is no layer"):
        exchange.simulate([], "p3", 1e9)


def test_p3_is_never_slower_than_fifo_in_the_table():
    from baechi.experiments import p3, replicated

    for model in replicated.models():
        for gbits in model.gbits:
            fifo, ours = (p3._step(model.layers, policy, gbits) for policy in ("fifo", "p3"))
            assert ours.step_ns <= 1.01 * fifo.step_ns, (model.name, gbits)


def test_models_have_the_published_numbers_of_parameters():
    from baechi.experiments import replicated

    counts = {m.name: sum(layer.parameters for layer in m.layers) for m in replicated.models()}
    # torchvision's, Inception-V3 without its auxiliary head of 3,326,696.
    assert counts["resnet-50"] == 25_557_032
    assert counts["vgg-19"] == 143_667_240
    assert counts["inception-v3"] == 23_834_568


def test_models_have_the_published_multiplications():
    from baechi.experiments import replicated

    shapes = {model.name: model.shapes.found for model in replicated.models()}
    found = {name: sum(each[2] for each in layers) / 1e9 for name, layers in shapes.items()}
    # He et al., table 1 and figure 3; torchvision's documentation of Inception-V3.
    assert found["resnet-50"] == pytest.approx(3.8, rel=0.02)
    assert found["vgg-19"] == pytest.approx(19.6, rel=0.02)
    assert found["inception-v3"] == pytest.approx(5.71, rel=0.01)


def test_bosen_s_experiment(tmp_path, capsys):
    from baechi.experiments import command, report

    pytest.importorskip("matplotlib")
    assert command.main(["bosen", "--quick", f"--output={tmp_path}"]) == 0
    known = report.read(tmp_path / "experiments.json")
    rows = known["bosen"].rows
    policies = {row["policy"] for row in rows}
    assert {"no delay", "clock only", "relative", "round-robin"} <= policies
    for row in rows:
        assert row["used"] is None or float(row["used"].removesuffix(" %")) <= 105
    assert {row["way"] for row in known["bosen-seconds"].rows} == {"by hand", "managed"}
    assert "<svg" in (tmp_path / "experiments-bosen.svg").read_text()
    assert "## bosen: Bounded staleness" in capsys.readouterr().out
    assert command.main(["bosen-large", "--quick", f"--output={tmp_path}"]) == 0
    assert len(report.read(tmp_path / "experiments.json")["bosen-large"].rows) == 8
    assert command.main(["bosen", "--models=none"]) == 1
    assert "unknown problem 'none'; known: matrix factorisation" in capsys.readouterr().err


def test_a_slot_s_updates_are_gradients():
    """Of the losses, by differences: rows and columns that a slot touches."""
    from baechi.experiments import stale

    for kind in (stale.Factorisation, stale.Regression):
        problem = kind(stale.Size(1, 1, 200, 30, 3))
        table = np.random.default_rng(2).normal(size=problem.table.shape).astype(np.float32)
        rows = problem.rows(0, 0)
        before = problem.loss(table)
        update = problem.update(0, 0, table[rows], 1e-5)
        if kind is stale.Factorisation:  # which moved its own users, too
            problem = kind(stale.Size(1, 1, 200, 30, 3))

        def total(loss, kind=kind):
            return loss**2 * 200 if kind is stale.Factorisation else loss * 200

        moved = table.copy()
        moved[rows] += update
        expected = -np.square(update.astype(np.float64)).sum() / 1e-5
        found = total(problem.loss(moved)) - total(before)
        assert found == pytest.approx(expected, rel=0.05)


def test_topics_keep_their_counts():
    from baechi.experiments import stale

    problem = stale.Topics(stale.Size(2, 4, 1_000, 51, 5))
    table = problem.table.copy()
    for slot in range(4):
        for worker in range(2):
            rows = problem.rows(worker, slot)
            table[rows] += problem.update(worker, slot, table[rows], 1.0)
    counted = np.zeros_like(table)
    np.add.at(counted, (problem.word, problem.topic), 1)
    counted[-1] = counted[:-1].sum(axis=0)
    np.testing.assert_array_equal(table, counted)
    assert problem.loss(table) < problem.loss(problem.table)


def test_the_page_s_programs_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(compile(program, str(PAGE), "exec"), {})
