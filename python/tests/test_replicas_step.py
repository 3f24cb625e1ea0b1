# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`replicas=N`: training steps whose batch is divided over devices, compared with `jax.jit`
and PyTorch within the bounds of reordered sums, and bit for bit with the same replicas on one
device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0"}


def _parameters() -> dict[str, Any]:
    random = np.random.default_rng(0)
    sizes = [16, 64, 64, 8]
    return {
        f"l{i}": {
            "w": (random.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32),
            "b": np.zeros(b, np.float32),
        }
        for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False))
    }


def _loss(params: Any, x: Any, y: Any, key: Any = None) -> Any:
    for name in sorted(params):
        x = x @ params[name]["w"] + params[name]["b"]
        if name != "l2":
            x = jax.nn.relu(x)
            if key is not None:
                key, own = jax.random.split(key)
                x = jnp.where(jax.random.bernoulli(own, 0.8, x.shape), x / 0.8, 0)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x) * jax.nn.one_hot(y, 8), axis=1))


def _sgd(params: Any, x: Any, y: Any) -> Any:
    loss, gradients = jax.value_and_grad(_loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


def _adam(state: Any, x: Any, y: Any) -> Any:
    params, m, v, count = state
    loss, gradients = jax.value_and_grad(_loss)(params, x, y)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda g: g * jnp.minimum(1, 0.5 / norm), gradients)
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)

    # With a smaller epsilon, gradients that are nearly zero are divided by themselves, and
    # their last bits decide.
    def update(p: Any, m: Any, v: Any) -> Any:
        return p - 0.01 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-3)

    return (jax.tree.map(update, params, m, v), m, v, count), loss


def _adam_state() -> Any:
    params = _parameters()
    zeros = jax.tree.map(np.zeros_like, params)
    return params, zeros, zeros, np.float32(0)


def _lamb(state: Any, x: Any, y: Any) -> Any:
    """With trust ratios, of the norms of whole parameters and of their updates (You et al.,
    "Large Batch Optimization for Deep Learning", ICLR 2020)."""
    params, m, v, count = state
    loss, gradients = jax.value_and_grad(_loss)(params, x, y)
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)

    def update(p: Any, m: Any, v: Any) -> Any:
        step = (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-3) + 0.01 * p
        norm, length = jnp.sqrt(jnp.sum(p * p)), jnp.sqrt(jnp.sum(step * step))
        trust = jnp.where((norm > 0) & (length > 0), norm / length, 1.0)
        return p - 0.01 * trust * step

    return (jax.tree.map(update, params, m, v), m, v, count), loss


def _dropout(params: Any, x: Any, y: Any) -> Any:
    key = jax.random.key(jnp.sum(y))
    loss, gradients = jax.value_and_grad(_loss)(params, x, y, key)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


def _batch_norm(params: Any, x: Any, y: Any) -> Any:
    """With the statistics of the whole batch, and running ones."""

    def loss_of(weights: Any) -> Any:
        h = x @ weights["in"]
        mean, variance = h.mean(0), h.var(0)
        h = jax.nn.relu((h - mean) / jnp.sqrt(variance + 1e-5)) @ weights["out"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(h) * jax.nn.one_hot(y, 8), axis=1)), mean

    (loss, mean), gradients = jax.value_and_grad(loss_of, has_aux=True)(params["weights"])
    weights = jax.tree.map(lambda p, g: p - 0.1 * g, params["weights"], gradients)
    return {"weights": weights, "mean": 0.9 * params["mean"] + 0.1 * mean}, loss


def _norm_state() -> Any:
    random = np.random.default_rng(1)
    return {
        "weights": {
            "in": random.normal(size=(16, 64)).astype(np.float32),
            "out": random.normal(size=(64, 8)).astype(np.float32),
        },
        "mean": np.zeros(64, np.float32),
    }


def _sgd_and_after(params: Any, x: Any, y: Any) -> Any:
    """With the loss of the new parameters, which are read in the step that makes them."""
    made, loss = _sgd(params, x, y)
    return made, loss + _loss(made, x, y)


STEPS = {
    "sgd": (_sgd, _parameters),
    "loss of new parameters": (_sgd_and_after, _parameters),
    "adam and clipping by norm": (_adam, _adam_state),
    "lamb": (_lamb, _adam_state),
    "dropout": (_dropout, _parameters),
    "batch norm": (_batch_norm, _norm_state),
}


def _batches() -> list[tuple[Any, Any]]:
    random = np.random.default_rng(2)
    batches = []
    for _ in range(5):
        x = random.normal(size=(64, 16)).astype(np.float32)
        batches.append((x, random.integers(0, 8, 64).astype(np.int32)))
    return batches


def _train(step: Any, state: Any) -> tuple[list[float], list[Any]]:
    losses = []
    for x, y in _batches():
        state, loss = step(state, x, y)
        losses.append(float(loss))
    return losses, [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


@pytest.mark.parametrize("name", STEPS)
def test_replicas_are_the_step_of_jax(name: str) -> None:
    function, make = STEPS[name]
    losses, leaves = _train(jax.jit(function), make())
    bits = None
    for machine, replicas in (("host:2", 2), ("host:1", 2), ("host:2", 4), ("host:4", 4)):
        step = baechi.jit(function, machine=machine, replicas=replicas, donate_argnums=0, **OPTIONS)
        found, state = _train(step, make())
        np.testing.assert_allclose(found, losses, rtol=2e-5)
        for mine, theirs in zip(state, leaves, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5)
        key = (replicas, [f.hex() for f in found], [leaf.tobytes() for leaf in state])
        if bits is not None and bits[0] == replicas:
            assert key == bits, f"{machine}: other bits than on another machine"
        bits = key


def test_each_parameter_has_one_owner_with_its_state() -> None:
    step = baechi.jit(_adam, machine="host:2", replicas=2, donate_argnums=0, **OPTIONS)
    _train(step, _adam_state())
    devices = step.placement
    owners = {name: device for name, device in devices.items() if name.startswith("state/")}
    assert set(owners.values()) == {"host0", "host1"}
    for layer in ("l0", "l1", "l2"):
        assert len({owners[f"state/{part}/{layer}/w"] for part in (0, 1, 2)}) == 1
    memory = step.memory()
    resident = [memory[device].resident_bytes for device in ("host0", "host1")]
    # The largest weight and its moments have a device for themselves; the batch is anybody's.
    largest = 3 * 64 * 64 * 4
    assert largest <= max(resident) <= largest + 64 * 17 * 4


def test_what_cannot_be_replicated_is_refused() -> None:
    x, y = _batches()[0]
    step = baechi.jit(_sgd, machine="host:3", replicas=3, donate_argnums=0, **OPTIONS)
    with pytest.raises(baechi.CompileError, match="is of 64, which does not divide into 3"):
        step(_parameters(), x, y)
    step = baechi.jit(_sgd, machine="host:4", replicas=2, donate_argnums=0, **OPTIONS)
    with pytest.raises(baechi.CompileError, match="2 replicas, and the machine 4 devices"):
        step(_parameters(), x, y)
    with pytest.raises(ValueError, match="replicas cut the batch and nothing else"):
        baechi.jit(_sgd, replicas=2, splits="any")
    with pytest.raises(ValueError, match="1 to 64 parts"):
        baechi.jit(_sgd, replicas=0)
    with pytest.raises(TypeError, match="how many parts"):
        baechi.jit(_sgd, replicas="2")  # type: ignore[arg-type]


def test_state_that_is_not_donated_is_no_batch() -> None:
    """Where most work is along a weight's features, and a result is like the batch."""
    random = np.random.default_rng(1)
    weights = {
        "in": random.normal(size=(32, 512)).astype(np.float32) / 8,
        "out": random.normal(size=(512, 32)).astype(np.float32) / 32,
    }
    x = random.normal(size=(8, 32)).astype(np.float32)

    def reconstruct(state: Any, x: Any) -> Any:
        def loss(state: Any) -> Any:
            found = jnp.tanh(x @ state["in"]) @ state["out"]
            return jnp.mean((found - x) ** 2), found

        (value, found), gradients = jax.value_and_grad(loss, has_aux=True)(state)
        return jax.tree.map(lambda p, g: p - g, state, gradients), value, found

    step = baechi.jit(reconstruct, machine="host:2", replicas=2, **OPTIONS)
    found, expected = step(weights, x), jax.jit(reconstruct)(weights, x)
    assert "dimension 0 of x: 2 pieces of 4" in step.report()
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_state_of_the_batch_is_cut_with_it() -> None:
    random = np.random.default_rng(2)
    weights = {"w": random.normal(size=(12, 12)).astype(np.float32) / 4}
    hidden = np.zeros((16, 12), np.float32)
    x = random.normal(size=(16, 12)).astype(np.float32)

    def recur(state: Any, x: Any) -> Any:
        weights, hidden = state

        def loss(weights: Any) -> Any:
            new = jnp.tanh(hidden @ weights["w"] + x)
            return jnp.mean((new - x) ** 2), new

        (value, new), gradients = jax.value_and_grad(loss, has_aux=True)(weights)
        return (jax.tree.map(lambda p, g: p - g, weights, gradients), new), value

    step = baechi.jit(recur, machine="host:2", replicas=2, donate_argnums=0, **OPTIONS)
    found = expected = (weights, hidden)
    for _ in range(3):
        found, _ = step(found, x)
        expected, _ = jax.jit(recur)(expected, x)
    assert "dimension 0 of" in step.report()
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_arguments_are_named() -> None:
    step = baechi.jit(
        _sgd, machine="host:2", replicas=2, split={"x": (0, 2)}, donate_argnums=0, **OPTIONS
    )
    losses, _ = _train(step, _parameters())
    np.testing.assert_allclose(losses, _train(jax.jit(_sgd), _parameters())[0], rtol=2e-5)


def _net(torch: Any) -> Any:
    """The same numbers each time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))


def test_a_step_of_pytorch_has_replicas() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    compile_step = pytest.importorskip("baechi.torch").compile_step

    def make() -> Any:
        model = _net(torch)
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    model, optimizer = make()
    expected = []
    for x, y in _batches():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y).long())
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    model, optimizer = make()
    step = compile_step(
        model, torch.nn.functional.cross_entropy, optimizer, machine="host:2", replicas=2, **OPTIONS
    )
    found = [float(step(torch.tensor(x), torch.tensor(y).long())) for x, y in _batches()]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_replicas_mean_what_ddp_means() -> None:
    """As docs/replicas.md says: the average of the gradients of the parts' losses."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    compile_step = pytest.importorskip("baechi.torch").compile_step

    def make() -> Any:
        model = _net(torch)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(found: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(found, y)

    model, optimizer = make()
    for x, y in _batches():
        optimizer.zero_grad()
        halves = zip(torch.tensor(x).chunk(2), torch.tensor(y).long().chunk(2), strict=True)
        for mine, labels in halves:  # each rank's, whose average DDP takes
            (loss_of(model(mine), labels) / 2).backward()
        optimizer.step()
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    model, optimizer = make()
    step = compile_step(model, loss_of, optimizer, machine="host:2", replicas=2, **OPTIONS)
    for x, y in _batches():
        step(torch.tensor(x), torch.tensor(y).long())
    for found, other in zip(model.parameters(), expected, strict=True):
        np.testing.assert_allclose(found.detach(), other, rtol=1e-4, atol=1e-6)
