# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the state of `baechi.stale_step` may consist of: optimizers' counts, short types and random
keys, compared with the mean of JAX's own steps of the parts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.replicas.arguments import StoreError

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0", "checked": True, "replicas": 2}


def _batches(count: int) -> list[tuple[Any, Any]]:
    random = np.random.default_rng(1)
    truth = random.normal(size=(8, 1))
    xs = random.normal(size=(count, 32, 8)).astype(np.float32)
    return [(x, (x @ truth).astype(np.float32)) for x in xs]


def _means(step: Any, state: Any, batches: list[tuple[Any, Any]]) -> Any:
    """Of each replica's own step, by JAX; what is no floating point is the first one's."""
    mapped = jax.jit(jax.vmap(step, in_axes=(None, 0, 0)))

    def mean(each: Any) -> Any:
        if not jax.dtypes.issubdtype(each.dtype, np.floating):
            return each[0]
        return each.astype(jnp.float32).mean(0).astype(each.dtype)

    for batch in batches:
        parts = [value.reshape(2, -1, value.shape[-1]) for value in batch]
        state = jax.tree.map(mean, mapped(state, *parts)[0])
    return state


def _adam(state: Any, x: Any, y: Any) -> Any:
    """With a count, as optimizers keep it."""
    params, (count, first, second) = state
    loss, gradients = jax.value_and_grad(lambda p: jnp.mean((x @ p - y) ** 2))(params)
    count += 1
    first = 0.9 * first + 0.1 * gradients
    second = 0.99 * second + 0.01 * gradients**2
    scale = jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    return (params - 0.05 * scale * first / (jnp.sqrt(second) + 1e-8), (count, first, second)), loss


def test_a_count_is_each_replicas_own() -> None:
    zeros = np.zeros((8, 1), np.float32)
    for staleness in (0, 2):
        state = zeros, (0, zeros, zeros)
        with baechi.stale_step(_adam, state, staleness=staleness, **OPTIONS) as step:
            for batch in _batches(20):
                step(*batch)
            found = step.state()
        assert found[1][0] == 20 and found[1][0].dtype == np.int32
        assert found[1][0].shape == ()
        if staleness == 0:
            expected = _means(_adam, jax.tree.map(jnp.asarray, state), _batches(20))
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("type_", [jnp.bfloat16, jnp.float16])
def test_short_types_are_shared_in_float32(type_: Any) -> None:
    def step(state: Any, x: Any, y: Any) -> Any:
        w = state["w"].astype(jnp.float32)
        gradient = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return {"w": (w - 0.1 * gradient).astype(state["w"].dtype)}, {}

    state = {"w": np.zeros((8, 1), type_)}
    with baechi.stale_step(step, state, staleness=0, **OPTIONS) as trained:
        for batch in _batches(12):
            trained(*batch)
        found = trained.state()["w"]
    expected = _means(step, {"w": jnp.zeros((8, 1), type_)}, _batches(12))["w"]
    assert found.dtype == type_
    tolerance = 4 * float(jnp.finfo(type_).eps)
    np.testing.assert_allclose(
        found.astype(np.float32), expected.astype(jnp.float32), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("typed", [True, False])
def test_random_keys_are_each_replicas_own(typed: bool) -> None:
    make = jax.random.key if typed else jax.random.PRNGKey

    def step(state: Any, x: Any, y: Any) -> Any:
        w, key = state
        key, mine = jax.random.split(key)
        kept = jax.random.bernoulli(mine, 0.5, x.shape)
        gradient = jax.grad(lambda w: jnp.mean(((x * kept) @ w - y) ** 2))(w)
        return (w - 0.1 * gradient, key), mine

    state = np.zeros((8, 1), np.float32), make(3)
    with baechi.stale_step(step, state, staleness=0, **OPTIONS) as trained:
        drawn = [trained(*batch).result() for batch in _batches(4)]
        w, key = trained.state()
    expected, of_jax = _means(step, state, _batches(4))
    data = jax.random.key_data
    np.testing.assert_array_equal(data(key), data(of_jax))
    assert key.dtype == of_jax.dtype and drawn[0].shape[0] == 2
    np.testing.assert_allclose(w, expected, rtol=1e-4, atol=1e-5)
    assert len({str(data(each)) for each in drawn}) == 4


def test_keys_of_a_batch_are_cut() -> None:
    def step(state: Any, keys: Any) -> Any:
        drawn = jax.vmap(jax.random.normal)(keys)
        return state + drawn.mean(), drawn

    keys = jax.random.split(jax.random.key(0), 6)
    with baechi.stale_step(step, np.float32(0), staleness=0, **OPTIONS) as trained:
        drawn = trained(keys).result().reshape(-1)
        state = trained.state()
    expected = jax.vmap(jax.random.normal)(keys)
    np.testing.assert_allclose(drawn, expected, rtol=1e-5)
    np.testing.assert_allclose(state, expected.mean(), rtol=1e-5)
    with baechi.stale_step(step, np.float32(0), staleness=0, **OPTIONS) as trained:
        with pytest.raises(ValueError, match=r"an argument of shape \(\) along dimension 0 in 2"):
            trained(jax.random.key(0))


@pytest.mark.parametrize("named", [True, False])
def test_static_values_make_programs(named: bool) -> None:
    def step(state: Any, x: Any, kind: str, power: int) -> Any:
        return state + (x.sum() if kind == "sum" else x.mean()) ** power, kind == "sum"

    static: dict[str, Any] = {"static_argnames": ("kind", "power")}
    if not named:
        static = {"static_argnums": (2, -1)}
    x = np.float32([1, 3, 5, 7])
    with baechi.stale_step(step, np.float32(0), staleness=0, **static, **OPTIONS) as trained:
        assert trained(x, "sum", 2).result().tolist() == [True, True]
        assert trained(x, "mean", 1).result().tolist() == [False, False]
        assert trained(x, "sum", 1).result().tolist() == [True, True]
        assert trained.state() == (4**2 + 12**2) / 2 + 4 + 8
        with pytest.raises(ValueError, match="static argument 'kind' is a list, which has no hash"):
            trained(x, ["sum"], 1)
        with pytest.raises(TypeError, match="is called with 'power' by name: give what follows"):
            trained(x, "sum", power=1)
    with (
        baechi.stale_step(step, np.float32(0), staleness=0, static_argnums=0, **OPTIONS) as trained,
        pytest.raises(ValueError, match="has the step's argument 0, which is its state"),
    ):
        trained(x, "sum", 1)


def test_what_replicas_disagree_about_is_told() -> None:
    """At the first call that makes it so, and not when all is done."""

    def step(state: Any, x: Any) -> Any:
        return {"w": state["w"] + 1, "seen": state["seen"] + (x > 0).sum()}, {}

    state = {"w": np.float32(0), "seen": 0}
    with baechi.stale_step(step, state, staleness=0, **OPTIONS) as trained:
        trained(np.float32([1, 2])).result()
        assert trained.state() == {"w": 1, "seen": 1}
        failed = trained(np.float32([1, -2]))
        words = r"state\['seen'\] of type int32 is 2 at replica 0 and 1 at replica 1: what is no"
        with pytest.raises(StoreError, match=words):
            failed.result()
        with pytest.raises(StoreError, match=words):
            trained.state()


def test_what_is_no_state_is_refused() -> None:
    options = {**OPTIONS, "staleness": 0}
    with pytest.raises(StoreError, match="the state has no array of floating point, which is what"):
        baechi.stale_step(_adam, {"count": np.int32(0)}, **options)
    with pytest.raises(StoreError, match=r"state\['z'\] is of type complex64: replicas share real"):
        baechi.stale_step(_adam, {"w": 0.0, "z": np.zeros(3, np.complex64)}, **options)
    with jax.enable_x64(True):
        with pytest.raises(StoreError, match="is of type float64 and shape .3,.: what replicas"):
            baechi.stale_step(_adam, np.zeros(3), **options)
    step = baechi.stale_step(
        lambda state: ({"w": state["w"], "count": state["count"] + 1.0}, {}),
        {"w": 0.0, "count": 0},
        **options,
    )
    with (
        step,
        pytest.raises(TypeError, match=r"the next state\['count'\] is float32 of shape \(\)"),
    ):
        step()


def test_a_step_of_another_framework_keeps_its_types() -> None:
    """And may change in place what is its own."""

    def step(state: Any, x: Any) -> Any:
        state["count"] += 1
        return {"w": state["w"] + x.mean(), "count": state["count"]}, 0

    options = {"replicas": 2, "staleness": 0, "compiled": False}
    state = {"w": np.zeros(1, np.float32), "count": np.zeros(2, np.int64)}
    with baechi.stale_step(step, state, **options) as trained:
        for _ in range(3):
            trained(np.float32([1, 3]))
        found = trained.state()
        assert found["w"] == 6 and found["count"].tolist() == [3, 3]
        assert found["count"].dtype == np.int64
        found["count"][:] = 0  # not the replicas'
        assert trained.state()["count"].tolist() == [3, 3] and not state["count"].any()
    with pytest.raises(StoreError, match="is of type float64 and shape"):
        baechi.stale_step(step, {"w": np.zeros(1)}, **options)


@pytest.mark.parametrize("revised", [0.3, {"state['in']": 0.3, "state['out']": 0.2}])
def test_revised_steps_of_one_replica_are_those_of_adagrad(revised: Any) -> None:
    """Nothing is late there, and what the step multiplies the gradient by changes nothing."""

    def train(state: Any, x: Any, y: Any) -> Any:
        def loss_of(p: Any) -> Any:
            return jnp.mean((jnp.tanh(x @ p["in"]) @ p["out"] - y) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(state)
        return jax.tree.map(lambda p, g: p - 0.125 * g, state, gradients), loss

    random = np.random.default_rng(0)
    state = {
        "in": (random.normal(size=(8, 40)) / 3).astype(np.float32),
        "out": (random.normal(size=(40, 1)) / 6).astype(np.float32),
    }
    expected = {name: np.array(value, np.float64) for name, value in state.items()}
    sums = {name: np.zeros(value.shape) for name, value in state.items()}
    options: Any = {"costs": "roofline", "budget": "0", "revised": revised}
    with baechi.stale_step(train, state, replicas=1, staleness=0, **options) as step:
        for _ in range(6):
            x = random.normal(size=(16, 8)).astype(np.float32)
            y = np.tanh(x[:, :1])
            step(x, y).result()
            inner = np.tanh(x @ expected["in"])
            error = 2 * (inner @ expected["out"] - y) / len(x)
            gradients = {
                "in": x.T @ ((error @ expected["out"].T) * (1 - inner**2)),
                "out": inner.T @ error,
            }
            for name, gradient in gradients.items():
                size = revised if isinstance(revised, float) else revised[f"state['{name}']"]
                sums[name] += gradient**2
                expected[name] -= size * gradient / np.sqrt(sums[name])
        found = step.state()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("staleness", [0, 2])
def test_revised_steps_of_several_replicas_train(staleness: int) -> None:
    random = np.random.default_rng(0)
    truth = random.normal(size=(8, 1)).astype(np.float32)

    def train(w: Any, x: Any, y: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - gradient, loss

    options: Any = {"costs": "roofline", "budget": "0", "checked": True, "revised": 0.3}
    start = np.zeros((8, 1), np.float32)
    with baechi.stale_step(train, start, replicas=4, staleness=staleness, **options) as step:
        for _ in range(300):
            x = random.normal(size=(32, 8)).astype(np.float32)
            step(x, x @ truth)
        np.testing.assert_allclose(step.state(), truth, atol=0.02)


def test_what_cannot_be_revised_is_told() -> None:
    def made(revised: Any) -> None:
        baechi.stale_step(
            lambda s, x: (s, x), np.zeros(3), replicas=2, staleness=1, revised=revised
        )

    with pytest.raises(StoreError, match=r"revised has 'w', which replicas do not share; .* state"):
        made({"w": 0.1})
    with pytest.raises(StoreError, match="is revised with steps of 0"):
        made(0)
