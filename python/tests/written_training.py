# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of training that are written for replicas, for tests."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

REPLICAS = 4


def parameters(seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "in": (random.normal(size=(16, 32)) / 4).astype(np.float32),
        "bias": np.zeros(32, np.float32),
        "out": (random.normal(size=(32, 8)) / 6).astype(np.float32),
    }


def batch(seed: int = 1) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(32, 16)).astype(np.float32)
    return x, random.integers(0, 8, 32).astype(np.int32)


def loss_of(params: Any, x: Any, y: Any) -> Any:
    logits = jnp.tanh(x @ params["in"] + params["bias"]) @ params["out"]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, 8), axis=1))


def updated(params: Any, gradients: Any) -> Any:
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def sgd(mesh: Any) -> Callable[..., Any]:
    """Gradients of a replica's own loss, averaged: as pmap's examples do."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("batch"), P("batch")),
        out_specs=P(),
        check_vma=False,
    )
    def step(params: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        return updated(params, lax.pmean(gradients, "batch")), lax.pmean(loss, "batch")

    return step


def outside(mesh: Any) -> Callable[..., Any]:
    """The gradient of a loss that is computed by replicas."""
    specs = (P(), P("batch"), P("batch"))

    def mean(params: Any, x: Any, y: Any) -> Any:
        return lax.pmean(loss_of(params, x, y), "batch")

    def step(params: Any, x: Any, y: Any) -> Any:
        of_replicas = jax.shard_map(mean, mesh=mesh, in_specs=specs, out_specs=P())
        loss, gradients = jax.value_and_grad(of_replicas)(params, x, y)
        return updated(params, gradients), loss

    return step


def momentum(mesh: Any) -> Callable[..., Any]:
    """With parts of a replica's batch one after the other, in a loop."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("batch"), P("batch")),
        out_specs=P(),
        check_vma=False,
    )
    def step(state: Any, x: Any, y: Any) -> Any:
        params, moments = state

        def add(sums: Any, part: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(params, *part)
            return jax.tree.map(jnp.add, sums, gradients), loss

        zeros = jax.tree.map(jnp.zeros_like, params)
        parts = x.reshape(2, -1, 16), y.reshape(2, -1)
        gradients, losses = lax.scan(add, zeros, parts)
        gradients = lax.pmean(jax.tree.map(lambda g: g / 2, gradients), "batch")
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
        return (updated(params, moments), moments), lax.pmean(losses.mean(), "batch")

    return step


def sharded_update(mesh: Any) -> Callable[..., Any]:
    """Each replica updates its rows of a parameter, and all get all of them."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("batch"), P("batch")),
        out_specs=P(),
        check_vma=False,
    )
    def step(params: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)

        def update(p: Any, g: Any) -> Any:
            g = lax.psum_scatter(g, "batch", tiled=True) / REPLICAS
            rows = len(p) // REPLICAS
            own = lax.dynamic_slice_in_dim(p, lax.axis_index("batch") * rows, rows)
            return lax.all_gather(own - 0.1 * g, "batch", tiled=True)

        return jax.tree.map(update, params, gradients), lax.pmean(loss, "batch")

    return step


def contrastive(mesh: Any) -> Callable[..., Any]:
    """Each replica's rows against the rows of all."""

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P(), check_vma=False
    )
    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            own = jnp.tanh(x @ params["in"])
            all_rows = lax.all_gather(own, "batch", tiled=True)
            labels = lax.axis_index("batch") * len(own) + jnp.arange(len(own))
            scores = jax.nn.log_softmax(own @ all_rows.T)
            return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

        value, gradients = jax.value_and_grad(loss)(params)
        return updated(params, lax.pmean(gradients, "batch")), lax.pmean(value, "batch")

    return step


def norm(statistics: str) -> Callable[[Any], Callable[..., Any]]:
    """Batch normalisation with the statistics of all replicas or of each."""

    def make(mesh: Any) -> Callable[..., Any]:
        @functools.partial(
            jax.shard_map, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs=P()
        )
        def step(params: Any, x: Any, y: Any) -> Any:
            def loss(params: Any) -> Any:
                h = x @ params["in"]
                mean, square = h.mean(0), (h * h).mean(0)
                if statistics == "all":
                    mean, square = lax.pmean((mean, square), "batch")
                h = (h - mean) / jnp.sqrt(square - mean * mean + 1e-3)
                logits = jax.nn.relu(h) @ params["out"]
                own = -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, 8), axis=1))
                return lax.pmean(own, "batch")

            value, gradients = jax.value_and_grad(loss)(params)
            return updated(params, gradients), value

        return step

    return make


def dropout(mesh: Any) -> Callable[..., Any]:
    """A mask of its own for each replica, by its number."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("batch"), P("batch"), P()),
        out_specs=P(),
        check_vma=False,
    )
    def step(params: Any, x: Any, y: Any, seed: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("batch"))
        x = jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        return updated(params, lax.pmean(gradients, "batch")), lax.pmean(loss, "batch")

    return step


def scaled(mesh: Any) -> Callable[..., Any]:
    """With what is done to the batch before it is cut, and to gradients of all replicas."""
    specs = (P(), P("batch"), P("batch"))

    def gradients(params: Any, x: Any, y: Any) -> Any:
        loss, own = jax.value_and_grad(loss_of)(params, x, y)
        return lax.pmean((loss, own), "batch")

    def step(params: Any, x: Any, y: Any) -> Any:
        x = jnp.maximum((x - 0.25) / 2, -1)
        of_replicas = jax.shard_map(
            gradients, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False
        )
        loss, own = of_replicas(params, x, y)
        return updated(params, own), loss + x.mean()

    return step
