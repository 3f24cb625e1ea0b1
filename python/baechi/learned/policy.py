# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A policy for all graphs and machines: Placeto's walks (Addanki et al., NeurIPS 2019) over an
embedding that treats every device alike.

A group's chances of going to a device are computed from what is there and what talks to it, by
the same parameters for each device, so that it need not be known how many there are. It is
trained once (pretraining.py) and then places graphs that it has not seen.
"""

from __future__ import annotations

import functools
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.learned.layers import Array, Params, compiled, dense, dense_init, log_probabilities
from baechi.learned.scene import BINS, Scene

SHIPPED = pathlib.Path(__file__).parent / "trained.npz"
_HIDDEN = 32
_ROUNDS = 2  # of messages each way
_STATIC, _DYNAMIC, _FLAGS = 12, 10, 2
_WAYS = ("down", "up")


def init(random: np.random.Generator) -> Params:
    width = _HIDDEN
    messages = {
        f"{way}{part}": dense_init(random, width, width) for way in _WAYS for part in ("", "_sum")
    }
    return {
        "own": dense_init(random, _STATIC + 2 * _DYNAMIC + _FLAGS, width),
        **messages,
        "hidden": dense_init(random, 6 * width + _STATIC + _DYNAMIC, 2 * width),
        "score": dense_init(random, 2 * width, 1, 0.1),
    }


def seen(scene: Scene) -> dict[str, Any]:
    """What the functions below are given of a problem."""

    def mean(rows: Any) -> Any:
        return (rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)).astype(np.float32)

    return {
        "static": scene.static,
        "times": scene.times,
        "fastest": np.where(scene.allowed, scene.times, np.inf).min(axis=1, keepdims=True),
        "sends": scene.sends,
        "from": mean(scene.sends.T),
        "to": mean(scene.sends),
        "when": scene.when,
        "share": mean(scene.when),
        "held": scene.held,
        "allowed": scene.allowed,
        "there": scene.allowed.any(axis=0).astype(np.float32),
        "count": np.float32(scene.count),
    }


def _dynamic(see: Any, on: Array) -> Array:
    """[groups, devices, _DYNAMIC] of a placement as [groups, devices] of 0 and 1."""
    devices = see["there"].sum()
    load = (on * see["times"]).sum(0) * devices
    bins = on.T @ see["when"]
    # Work that wants to run at the same time, but for the group's own.
    busy = see["share"] @ bins.T - on * (see["share"] * see["when"]).sum(1, keepdims=True)
    into, out = see["sends"].T @ on, see["sends"] @ on
    full = (on * see["held"]).sum(0)
    wide = jnp.ones_like(on)
    slower = see["times"] / jnp.maximum(see["fastest"], 1e-9) - 1
    columns = [
        on,
        load * wide,
        busy * devices * BINS,
        jnp.log(into * see["count"] + 0.01),
        jnp.log(out * see["count"] + 0.01),
        jnp.sqrt(jnp.minimum(into + out, 4.0)),
        jnp.log1p(jnp.maximum(slower, 0)),
        jnp.minimum(full, 2.0) * wide,
        # Whether it would overflow with the group.
        jnp.where(full + (1 - on) * see["held"] > 1, 1.0, 0.0),
        see["allowed"].astype(jnp.float32),
    ]
    return jnp.stack(columns, axis=-1)


def log_policy(params: Params, see: Any, placement: Array, group: Array) -> Array:
    """Of one placement [groups]: log-probabilities [devices] of where the group goes."""
    count, devices = see["allowed"].shape
    on = jax.nn.one_hot(placement, devices)
    dynamic = _dynamic(see, on)
    there = see["there"][:, None]

    def others(values: Array) -> Array:
        """The mean over the machine's devices, the same for each."""
        mean = (values * there).sum(-2, keepdims=True) / there.sum()
        return jnp.broadcast_to(mean, values.shape)

    order = jnp.arange(count)
    flags = jnp.stack([order == group, order < group], axis=1).astype(jnp.float32)
    fixed = jnp.concatenate([see["static"], flags], axis=1)
    fixed = jnp.broadcast_to(fixed[:, None], (count, devices, fixed.shape[1]))
    inputs = jnp.concatenate([fixed, dynamic, others(dynamic)], axis=2)
    first = jax.nn.relu(dense(params["own"], inputs))
    embedded = [first[group]]
    for way, neighbours in zip(_WAYS, ("from", "to"), strict=True):
        e = first
        for _ in range(_ROUNDS):
            messages = jax.nn.relu(dense(params[way], e))
            heard = jnp.einsum("gh,hdc->gdc", see[neighbours], messages)
            e = first + jax.nn.relu(dense(params[f"{way}_sum"], heard))
        embedded.append(e[group])
    own = jnp.concatenate(embedded, axis=1)
    about = jnp.concatenate([fixed[group, :, :_STATIC], dynamic[group]], axis=1)
    hidden = dense(params["hidden"], jnp.concatenate([own, others(own), about], axis=1))
    score = dense(params["score"], jax.nn.relu(hidden))[:, 0]
    return log_probabilities(score, see["allowed"][group])


@compiled
def walk(params: Params, see: Any, start: Array, noise: Array) -> tuple[Array, Array, Array]:
    """From placements [n, groups] a walk each over all groups: the placements before each
    decision [groups, n, groups], the decisions [groups, n], and the ends. noise: of Gumbel,
    [groups, n, devices]; zeros take what is most likely."""
    groups = start.shape[1]

    def step(placement: Array, given: Any) -> tuple[Array, tuple[Array, Array]]:
        group, noise = given
        log_p = jax.vmap(log_policy, (None, None, 0, None))(params, see, placement, group)
        device = jnp.argmax(log_p + noise, axis=1).astype(jnp.int32)
        return placement.at[:, group].set(device), (placement, device)

    end, (before, actions) = jax.lax.scan(step, start, (jnp.arange(groups), noise))
    return before, actions, end


def save(params: Params, file: str | os.PathLike[str]) -> None:
    """As an .npz, the same bytes for the same parameters."""
    np.savez(file, **_flat(params))


def load(file: str | os.PathLike[str]) -> Params:
    """Raises ValueError for a file that is not such a policy's."""
    expected = init(np.random.default_rng(0))
    try:
        with np.load(file, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{file}: no policy can be read from it: {error}") from error
    wanted = {name: value.shape for name, value in _flat(expected).items()}
    if {name: value.shape for name, value in found.items()} != wanted:
        raise ValueError(
            f"{file}: not the parameters of this version's policy: train it again with "
            "python -m baechi.learned"
        )
    params: Params = {}
    for name, value in found.items():
        layer, part = name.split(".")
        params.setdefault(layer, {})[part] = value.astype(np.float32)
    return params


@functools.cache
def shipped() -> Params:
    """The policy that comes with the package."""
    return load(SHIPPED)


def _flat(params: Params) -> dict[str, Any]:
    return {
        f"{layer}.{part}": np.asarray(value)
        for layer, parts in params.items()
        for part, value in parts.items()
    }
