# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`factors="smaller"`: of large dense layers the factors of gradients are sent, which are fewer
bytes. The bits are those of gradients that are sent, and the values JAX's."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from test_replicas_step import OPTIONS

WIDTH, BATCH = 256, 16


def _loss(params: Any, x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ params["in"])
    return jnp.mean((jnp.tanh(hidden @ params["middle"]) @ params["out"] - y) ** 2)


def _train(state: Any, x: Any, y: Any) -> Any:
    params, moments = state
    loss, gradients = jax.value_and_grad(_loss)(params, x, y)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return (jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments), loss


def _arguments() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(3)

    def normal(*shape: int) -> Any:
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {"in": normal(32, WIDTH), "middle": normal(WIDTH, WIDTH), "out": normal(WIDTH, 4)}
    return (params, jax.tree.map(np.zeros_like, params)), normal(BATCH, 32), normal(BATCH, 4)


def _run(step: Any) -> list[Any]:
    state, x, y = _arguments()
    for _ in range(4):
        state, loss = step(state, x, y)
    return [np.asarray(leaf) for leaf in jax.tree.leaves((state, loss))]


def _step(machine: str = "host:2", replicas: int = 2, **options: Any) -> Any:
    return baechi.jit(
        _train, machine=machine, replicas=replicas, donate_argnums=0, **OPTIONS, **options
    )


def _sent(step: Any) -> int:
    """Bytes between devices in a step."""
    queues = step._latest.library.program["queues"]
    return sum(message["bytes"] for queue in queues for message in queue["messages"])


@pytest.mark.parametrize("exchange", [None, "fifo", "p3"])
@pytest.mark.parametrize("devices", [2, 4])
def test_bits_are_those_of_gradients(devices: int, exchange: str | None) -> None:
    machine = f"host:{devices}"
    factors = _step(machine, devices, factors="smaller", exchange=exchange)
    gradients = _step(machine, devices, exchange=exchange)
    alone = _step("host:1", devices)
    for a, b, c in zip(_run(factors), _run(gradients), _run(alone), strict=True):
        assert np.array_equal(a, b) and np.array_equal(a, c)
    # A gradient of 256 x 256 is gone from each device but its owner.
    assert _sent(gradients) - _sent(factors) > (devices - 1) * 0.7 * 4 * WIDTH**2


def test_other_parameters_are_in_slices(tmp_path: pathlib.Path) -> None:
    """On links on which these are worth it."""
    devices = [{"name": f"host{i}", "kind": "host", "memory": 1 << 30} for i in range(2)]
    link = {"latency_ns": 100, "bytes_per_us": 50}
    thin = {"format": "baechi-machine", "version": 1, "devices": devices, "link_default": link}
    (tmp_path / "thin.json").write_text(json.dumps({**thin, "link_model": "parallel"}))
    options = {"exchange": "p3", "slice_bytes": 2048, "transfers": "network"}
    step = _step(str(tmp_path / "thin.json"), factors="smaller", **options)
    for a, b in zip(_run(step), _run(_step("host:1")), strict=True):
        assert np.array_equal(a, b)
    sliced = {name.split(".")[0] for name in step.placement if ".piece" in name}
    assert "0/out" in " ".join(sliced) and "middle" not in " ".join(sliced)


def test_values_are_jaxs() -> None:
    found = _run(_step(factors="smaller", check="first"))
    for a, b in zip(found, _run(jax.jit(_train)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_large_batches_send_gradients() -> None:
    """Where the factors are more bytes."""
    state, x, y = _arguments()
    x, y = np.tile(x, (64, 1)), np.tile(y, (64, 1))
    steps = [_step(), _step(factors="smaller")]
    for step in steps:
        step(state, x, y)
    assert _sent(steps[0]) == _sent(steps[1])


def test_what_no_factors_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match="factors is 'small': did you mean 'smaller'"):
        _step(factors="small")
    with pytest.raises(ValueError, match="it is of the gradients of replicas; give replicas=N"):
        _run(_step(replicas=1, factors="smaller"))
