# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placeto: Addanki et al., Learning Generalizable Device Placement Algorithms for Distributed
Machine Learning, NeurIPS 2019.

An episode walks over the groups; for each the policy chooses a device again, looking at an
embedding of the graph with its present placement. It is rewarded by what the step gains, or by
the step that an episode ends with (section 3.1).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.learned.features import View
from baechi.learned.layers import (
    Array,
    Params,
    compiled,
    dense,
    dense_init,
    entropy,
    gumbel,
    log_probabilities,
    taken,
)
from baechi.learned.reinforce import Baseline, adam, adam_init
from baechi.learned.trials import Trials

_HIDDEN = 32
_ROUNDS = 3  # of messages
_EPISODES = 4  # at a time
_DISCOUNT = 0.9
_ENTROPY = 0.01


def train(view: View, trials: Trials, seed: int) -> None:
    """Each decision is rewarded by what the step gains by it, for an evaluation each."""
    _train(view, trials, seed, by_ends=False)


def train_by_ends(view: View, trials: Trials, seed: int) -> None:
    """An episode is rewarded by the step that it ends with, for one evaluation."""
    _train(view, trials, seed, by_ends=True)


def _train(view: View, trials: Trials, seed: int, *, by_ends: bool) -> None:
    random = np.random.default_rng(seed)
    params = _init(random, view.features.shape[1], view.devices)
    seen = _seen(view)
    state, baseline = adam_init(params), Baseline()
    scores = random.random((_EPISODES, *view.allowed.shape))
    placement = np.where(view.allowed, scores, -1).argmax(axis=2).astype(np.int32)
    known = trials.costs(placement)
    best, best_cost = placement[known.argmin()], known.min()
    while trials.left:
        noise = gumbel(random, view.count, _EPISODES, view.devices)
        before, actions, costs = [], [], [known]
        for group in range(view.count):
            device = np.asarray(_act(params, seen, placement, group, noise[group]))
            before.append(placement)
            actions.append(device)
            placement = placement.copy()
            placement[:, group] = device
            if by_ends and group + 1 < view.count:
                continue
            found = trials.costs(placement)
            if len(found) < _EPISODES or not trials.left:
                return
            costs.append(found)
            if found.min() < best_cost:
                best, best_cost = placement[found.argmin()], found.min()
        if by_ends:
            # Not discounted: the first decision has as much of a part in it as the last.
            better = np.tile(baseline.advantages(costs[-1]), (view.count, 1))
        else:
            gains = -np.diff(np.array(costs), axis=0)
            better = baseline.advantages(-_returns(gains).T).T
        params, state = _update(params, state, seen, np.array(before), np.array(actions), better)
        # The next episodes improve what was best.
        placement = np.tile(best, (_EPISODES, 1))
        known = np.full(_EPISODES, best_cost)


def _init(random: np.random.Generator, features: int, devices: int) -> Params:
    width = _HIDDEN
    return {
        "own": dense_init(random, features + devices + 2, width),
        **{name: dense_init(random, width, width) for name in ("down", "down_sum", "up", "up_sum")},
        "hidden": dense_init(random, 8 * width, width),
        "logits": dense_init(random, width, devices),
    }


def _seen(view: View) -> Any:
    sends = view.adjacency() > 0
    reaches = sends.copy()
    while True:  # paths of twice the length
        longer = reaches | (reaches.astype(np.float32) @ reaches.astype(np.float32) > 0)
        if (longer == reaches).all():
            break
        reaches = longer
    parallel = ~(reaches | reaches.T | np.eye(view.count, dtype=bool))

    def mean(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return (rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)).astype(np.float32)

    return {
        "features": view.features,
        "allowed": view.allowed,
        "from": mean(sends.T),  # [group, senders]
        "to": mean(sends),
        "parents": mean(reaches.T),
        "children": mean(reaches),
        "parallel": mean(parallel),
    }


def _log_policy(params: Params, seen: Any, placement: Array, group: Array) -> Array:
    """Of one placement [groups]: log-probabilities [devices] of where the group goes."""
    count, devices = seen["allowed"].shape
    order = jnp.arange(count)
    flags = jnp.stack([order == group, order < group], axis=1)
    inputs = [seen["features"], jax.nn.one_hot(placement, devices), flags]
    first = jax.nn.relu(dense(params["own"], jnp.concatenate(inputs, axis=1)))
    embedded = []
    for way, neighbours in (("down", "from"), ("up", "to")):
        e = first
        for _ in range(_ROUNDS):
            messages = jax.nn.relu(dense(params[way], e))
            e = first + jax.nn.relu(dense(params[f"{way}_sum"], seen[neighbours] @ messages))
        embedded.append(e)
    both = jnp.concatenate(embedded, axis=1)
    pools = [seen[name][group] @ both for name in ("parents", "children", "parallel")]
    hidden = jax.nn.relu(dense(params["hidden"], jnp.concatenate([both[group], *pools])))
    return log_probabilities(dense(params["logits"], hidden), seen["allowed"][group])


@compiled
def _act(params: Params, seen: Any, placement: Array, group: Array, noise: Array) -> Array:
    log_p = jax.vmap(_log_policy, (None, None, 0, None))(params, seen, placement, group)
    return jnp.argmax(log_p + noise, axis=1).astype(jnp.int32)


def _returns(gains: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[steps, episodes]: what is gained from each step on, later gains discounted."""
    found = np.zeros_like(gains)
    later = np.zeros(gains.shape[1])
    for step in reversed(range(len(gains))):
        later = gains[step] + _DISCOUNT * later
        found[step] = later
    return found


@compiled
def _update(
    params: Params, state: Any, seen: Any, before: Array, actions: Array, better: Array
) -> tuple[Params, Any]:
    def loss(params: Params, group: Array) -> Array:
        log_p = jax.vmap(_log_policy, (None, None, 0, None))(params, seen, before[group], group)
        gained = better[group] * taken(log_p, actions[group])
        return -(gained + _ENTROPY * entropy(log_p)).mean()

    def add(total: Params, group: Array) -> tuple[Params, None]:
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, group)), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    total, _ = jax.lax.scan(add, zeros, jnp.arange(len(before)))
    return adam(params, total, state)
