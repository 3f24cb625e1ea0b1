# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.stale_step`: without staleness it is the mean of JAX's own steps of the parts; with it
every read is within the bound, nothing is lost, and training ends where JAX's does."""

from __future__ import annotations

import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.replicas.arguments import StoreError

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0", "checked": True}
REPLICAS = 4


def _loss(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2)


def _train(state: Any, x: Any, y: Any) -> Any:
    params, moments = state
    loss, gradients = jax.value_and_grad(_loss)(params, x, y)
    moments = jax.tree.map(lambda m, g: 0.5 * m + g, moments, gradients)
    return (jax.tree.map(lambda p, m: p - 0.05 * m, params, moments), moments), loss


def _state() -> Any:
    random = np.random.default_rng(0)
    params = {
        "in": (random.normal(size=(8, 40)) / 3).astype(np.float32),
        "out": (random.normal(size=(40, 1)) / 6).astype(np.float32),
    }
    return params, jax.tree.map(np.zeros_like, params)


def _batches(count: int) -> list[tuple[Any, Any]]:
    random = np.random.default_rng(1)
    truth = random.normal(size=(8, 1))
    xs = random.normal(size=(count, 32, 8)).astype(np.float32)
    return [(x, np.tanh(x @ truth).astype(np.float32)) for x in xs]


def _jax(batches: list[tuple[Any, Any]], step: Any = None) -> tuple[Any, list[float]]:
    step, state, losses = jax.jit(step or _train), _state(), []
    for x, y in batches:
        state, loss = step(state, x, y)
        losses.append(float(jnp.mean(loss)))
    return state, losses


def test_no_replica_waits_for_a_later_plan(monkeypatch: Any, tmp_path: Any) -> None:
    """Programs are compiled before any replica runs, whatever other steps do."""
    monkeypatch.setenv("BAECHI_REPLAN", "auto")
    options = {"profile": tmp_path / "profile.json", "budget": "0"}
    with baechi.stale_step(_train, _state(), replicas=2, staleness=0, **options) as step:
        assert step(*_batches(1)[0]).result().shape == (2,)
        for each in step._steps.values():
            assert not each._latest.measures()  # type: ignore[attr-defined]


def test_without_staleness_it_is_the_step_of_the_whole_batch() -> None:
    batches = _batches(12)
    with baechi.stale_step(_train, _state(), replicas=REPLICAS, staleness=0, **OPTIONS) as step:
        losses = [step(x, y) for x, y in batches]
        found = step.state()
    expected, of_all = _jax(batches)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert all(loss.result().shape == (REPLICAS,) for loss in losses)
    np.testing.assert_allclose([loss.result().mean() for loss in losses], of_all, rtol=1e-4)


def test_it_is_the_mean_of_the_replicas_own_states() -> None:
    """Also where an update is no sum over the batch, and of what all replicas have."""

    def adaptive(state: Any, x: Any, y: Any, rate: Any) -> Any:
        gradients = jax.grad(_loss)(state, x, y)
        return jax.tree.map(lambda p, g: p - rate * jnp.sign(g), state, gradients), {}

    state, rate = _state()[0], np.float32(0.01)
    mapped = jax.jit(jax.vmap(adaptive, in_axes=(None, 0, 0, None)))
    options = {"replicas": REPLICAS, "staleness": 0, "in_axes": (0, 0, None), **OPTIONS}
    with baechi.stale_step(adaptive, state, **options) as step:
        for x, y in _batches(3):
            assert step(x, y, rate).result() == {}
            parts = x.reshape(REPLICAS, -1, 8), y.reshape(REPLICAS, -1, 1)
            state = jax.tree.map(lambda p: p.mean(0), mapped(state, *parts, rate)[0])
        for a, b in zip(jax.tree.leaves(step.state()), jax.tree.leaves(state), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("staleness, bandwidth", [(1, None), (3, None), (3, 2e5)])
def test_late_states_train_as_well(staleness: int, bandwidth: float | None) -> None:
    """With a loss of at most three times JAX's, which is a hundredth of the first, however late the
    replicas' threads are."""
    batches = _batches(300)
    _, plain = _jax(batches)
    assert np.mean(plain[-10:]) < 0.01 * plain[0]
    options = {"replicas": REPLICAS, "staleness": staleness, "bandwidth": bandwidth, **OPTIONS}
    with baechi.stale_step(_train, _state(), ahead=8, **options) as step:
        losses = [step(x, y) for x, y in batches]
        late = float(np.mean([loss.result().mean() for loss in losses[-10:]]))
        report = step.report()
        found = step.state()
    assert report.clocks == [len(batches)] * REPLICAS
    assert len(report.reads_by_staleness) == staleness + 1
    assert sum(report.reads_by_staleness) >= REPLICAS * len(batches) * 4
    x, y = batches[-1]
    assert max(late, float(_loss(found[0], x, y))) < 3 * np.mean(plain[-10:])


def test_replicas_go_on_without_the_slowest_within_the_bound() -> None:
    """Nobody is held up by a call that another has not begun, as long as the bound allows."""
    held, seen = threading.Event(), []

    def wait(number: Any) -> Any:
        if number == 0 and not held.wait(60):
            raise TimeoutError
        seen.append(int(number))
        return number

    def step(state: Any, number: Any) -> Any:
        told = jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), number[0])
        return state + told * 0 + 1, told

    numbers = np.arange(2, dtype=np.float32)
    held.set()
    with baechi.stale_step(
        step, np.zeros(3, np.float32), replicas=2, staleness=2, ahead=4, **OPTIONS
    ) as trained:
        trained(numbers).result()
        held.clear()
        seen.clear()
        calls = [trained(numbers) for _ in range(4)]
        for _ in range(500):
            if seen.count(1) == 3:
                break
            time.sleep(0.1)
        time.sleep(0.3)
        assert seen == [1, 1, 1]  # the next read would be later than the bound
        held.set()
        for call in calls:
            call.result()
        np.testing.assert_array_equal(trained.state(), np.full(3, 5, np.float32))


def test_steps_of_other_frameworks_are_called_as_they_are() -> None:
    """One of PyTorch's, which changes in place what it is given."""
    torch = pytest.importorskip("torch")

    def train(state: Any, x: Any, y: Any) -> Any:
        w = torch.from_numpy(state["w"]).requires_grad_()
        optimizer = torch.optim.SGD([w], lr=0.05)
        loss = ((torch.from_numpy(x) @ w - torch.from_numpy(y)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return {"w": w.detach()}, loss.item()

    batches = _batches(20)
    state = {"w": np.zeros((8, 1), np.float32)}
    expected = {"w": state["w"].copy()}
    options = {"replicas": REPLICAS, "staleness": 0, "checked": True, "compiled": False}
    with baechi.stale_step(train, state, **options) as step:
        losses = [step(x, y) for x, y in batches]
        found = step.state()
    for (x, y), loss in zip(batches, losses, strict=True):
        expected, of_all = train(expected, x, y)
        expected = {"w": expected["w"].numpy()}
        np.testing.assert_allclose(loss.result().mean(), of_all, rtol=1e-4)
    np.testing.assert_allclose(found["w"], expected["w"], rtol=1e-4, atol=1e-5)
    assert not state["w"].any()
    with pytest.raises(TypeError, match="has 'costs', an option of compiling, and compiled=False"):
        baechi.stale_step(train, state, costs="roofline", **options)
    with baechi.stale_step(lambda s: (s["w"], 0), state, **options) as step:
        with pytest.raises(TypeError, match="the next state has the structure"):
            step().result()


def test_what_cannot_be_shared_is_refused() -> None:
    options = {"replicas": 2, "staleness": 0, **OPTIONS}
    with pytest.raises(TypeError, match="has no option 'machine': each replica has a host device"):
        baechi.stale_step(_train, _state(), machine="host:2", **options)
    with pytest.raises(StoreError, match="ahead is 0: give how many calls may wait"):
        baechi.stale_step(_train, _state(), ahead=0, **options)
    with pytest.raises(TypeError, match="staleness"):
        baechi.stale_step(_train, _state(), replicas=2)
    x, y = _batches(1)[0]
    for step, words in (
        (lambda s, x, y: s, r"returns dict: a step of stale_step returns"),
        (lambda s, x, y: ((s,), x), "the next state has the structure"),
        (lambda s, x, y: ({"w": s["w"][:2]}, x), r"the next state\['w'\] is float32 of shape"),
    ):
        with baechi.stale_step(step, {"w": np.zeros(3, np.float32)}, **options) as trained:
            with pytest.raises(TypeError, match=words):
                trained(x, y)
    with baechi.stale_step(_train, _state(), **options) as trained:
        with pytest.raises(ValueError, match=r"of shape \(31, 8\) along dimension 0 in 2 parts"):
            trained(x[:31], y)
        with pytest.raises(ValueError, match="in_axes has 1 entries, and the step is called with"):
            trained._batches._axes = (0,)
            trained(x, y)


def test_without_staleness_there_is_no_bandwidth() -> None:
    with pytest.raises(StoreError, match="bandwidth is 1000000.0 and staleness 0: what is"):
        baechi.stale_step(_train, _state(), replicas=2, staleness=0, bandwidth=1e6)


@pytest.mark.parametrize("axis", [0, None])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_batch_may_be_written_to_after_the_call(axis: int | None, compiled: bool) -> None:
    def train(w: Any, x: Any) -> Any:
        mean = x.mean()
        if not compiled:
            x[:] = -1  # its own
        return w + mean, mean

    batch = np.empty(4, np.float32)
    options = {"replicas": 2, "staleness": 0, "in_axes": axis, "compiled": compiled}
    with baechi.stale_step(train, np.zeros(1, np.float32), **options) as step:
        for k in range(6):
            batch[:] = k
            step(batch)
        assert step.state() == 15
    assert (batch == 5).all()


def test_a_closed_one_takes_no_calls() -> None:
    """It still has the state."""
    step = baechi.stale_step(
        lambda state, x: (state + x.mean(), x),
        np.zeros(3, np.float32),
        replicas=2,
        staleness=0,
        **OPTIONS,
    )
    with step:
        step(np.float32([1, 3])).result()
    with pytest.raises(RuntimeError, match="is called after close()"):
        step(np.float32([1, 3]))
    step.close()
    assert step.state().tolist() == [2, 2, 2]


def test_none_is_no_array_to_cut() -> None:
    def step(state: Any, batch: Any, mask: Any) -> Any:
        assert mask is None and batch["mask"] is None
        return state + batch["x"].mean(), batch["x"]

    with baechi.stale_step(
        step, np.zeros(3, np.float32), replicas=2, staleness=0, **OPTIONS
    ) as trained:
        parts = trained({"mask": None, "x": np.float32([1, 3])}, None).result()
        assert parts.tolist() == [[1], [3]]
        assert trained.state().tolist() == [2, 2, 2]


def test_a_replica_that_fails_is_told() -> None:
    """By its calls, the next one, and whoever asks for the state."""

    def wait(x: Any) -> Any:
        if x < 0:
            raise ZeroDivisionError("below zero")
        return x

    def step(state: Any, x: Any) -> Any:
        told = jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), x[0])
        return state + told, told

    with baechi.stale_step(
        step, np.zeros(3, np.float32), replicas=2, staleness=1, **OPTIONS
    ) as trained:
        trained(np.float32([1, 2])).result()
        failed = trained(np.float32([1, -1]))
        with pytest.raises(Exception, match="below zero"):
            failed.result()
        for _ in range(2):
            with pytest.raises(Exception, match="below zero"):
                trained(np.float32([1, 2])).result()
            with pytest.raises(Exception, match="below zero"):
                trained.state()


def test_the_error_is_that_of_the_replica_that_failed() -> None:
    """Not of those that stop for it, before or after."""
    is_called_again = threading.Event()

    def step(state: Any, x: Any) -> Any:
        if x[0] < 0:
            is_called_again.wait(60)
            raise ZeroDivisionError("below zero")
        return state, x

    with baechi.stale_step(
        step, np.zeros(3, np.float32), replicas=3, staleness=0, compiled=False
    ) as trained:
        for _ in range(2):
            trained(np.float32([1, 2, -1]))
        is_called_again.set()
        for thread in trained._threads:
            thread.join(60)
        with pytest.raises(ZeroDivisionError, match="below zero"):
            trained.state()
