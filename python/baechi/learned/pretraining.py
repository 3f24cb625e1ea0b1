# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a policy on a set of problems by policy gradients.

What a decision gains at once is known for every device that a group could go to, by an
evaluation each, so its expectation under the policy is differentiated as it is; what later
decisions gain is credited to the device that was taken (REINFORCE). Together they are the
gradient of the discounted return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from baechi.graphs.evaluator import Evaluator
from baechi.learned import features, policy
from baechi.learned.layers import Array, Params, compiled, entropy, gumbel, taken
from baechi.learned.reinforce import adam, adam_init
from baechi.learned.scene import Scene, scene
from baechi.learned.training_set import Problem, problems

PROBLEMS, ROUNDS = 96, 2000
_EPISODES = 4
_GROUPS, _DEVICES = 48, 4  # what problems are padded to; larger ones are left out
_DISCOUNT = 0.97
_ENTROPY = 0.01
_RATE = 0.003


class _Known(NamedTuple):
    evaluator: Evaluator
    of_operator: features.Ints
    scene: Scene
    alone_ns: float


def train(
    seed: int = 0,
    *,
    rounds: int = ROUNDS,
    chosen: Sequence[Problem] | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> Params:
    """The parameters after so many rounds, each of some episodes on one problem.

    chosen: the problems; None: those of training_set.py for the seed."""
    random = np.random.default_rng(seed)
    known = []
    for problem in problems(seed, PROBLEMS) if chosen is None else chosen:
        if found := _known(problem):
            known.append(found)
    if not known:
        raise ValueError(
            f"problems: none has at most {_GROUPS} groups, {_DEVICES} devices and a step on each"
        )
    params = policy.init(random)
    state, scale, gains = adam_init(params), 0.1, []
    for number in range(rounds):
        if number % len(known) == 0:
            order = random.permutation(len(known))
        one = known[order[number % len(known)]]
        see = policy.seen(one.scene)
        start = np.tile(_start(random, one), (_EPISODES, 1))
        noise = gumbel(random, _GROUPS, _EPISODES, _DEVICES)
        before, actions, _ = policy.walk(params, see, start, noise)
        costs = _costs(one, np.asarray(before))
        now, later = _advantages(costs, np.asarray(before), np.asarray(actions))
        scale = 0.98 * scale + 0.02 * float(np.sqrt((later**2).mean() + (now**2).mean()) + 1e-6)
        rate = _RATE * (1 - 0.9 * number / rounds)
        params, state = _update(
            params, state, see, before, actions, now / scale, later / scale, rate
        )
        first = costs[0, 0, start[0, 0]]
        last = costs[
            one.scene.count - 1, np.arange(_EPISODES), np.asarray(actions)[one.scene.count - 1]
        ]
        gains.append(float(first - last.mean()))
        if (number + 1) % 50 == 0:
            progress(
                f"round {number + 1} of {rounds}: an episode gains "
                f"{np.mean(gains[-len(known) :]):.3f} (logarithm of the step)"
            )
    return jax.tree.map(np.asarray, params)


def _known(problem: Problem) -> _Known | None:
    evaluator = Evaluator(problem.graph, problem.machine)
    view = features.view(problem.graph, problem.machine, evaluator, "auto")
    if view.count > _GROUPS or view.devices > _DEVICES or view.count < 2:
        return None
    made = scene(problem.graph, problem.machine, view).padded(_GROUPS, _DEVICES)
    return _Known(evaluator, view.of_operator, made, view.work_ns)


def _start(random: np.random.Generator, one: _Known) -> Any:
    """Anywhere, or, as often, all on one device."""
    allowed = one.scene.allowed
    scores = random.random(allowed.shape)
    if random.random() < 0.5:
        scores = np.tile(scores[:1], (len(allowed), 1))
    return np.where(allowed, scores, -1).argmax(axis=1).astype(np.int32)


def _costs(one: _Known, before: Any) -> Any:
    """[groups, episodes, devices]: the logarithm of the step, and what it is above a memory, if
    the group went to the device. Those of padding, and of devices that are not allowed, are as
    if it stayed."""
    groups, devices = one.scene.count, one.scene.allowed.shape[1]
    rows = np.repeat(before[:groups, :, None, :groups], devices, axis=2)
    for group in range(groups):
        for device in range(devices):
            if one.scene.allowed[group, device]:
                rows[group, :, device, group] = device
    flat, place = np.unique(rows.reshape(-1, groups), axis=0, return_inverse=True)
    found = one.evaluator.many(np.ascontiguousarray(flat[:, one.of_operator]))
    limit = np.maximum(one.evaluator.memory_limit, 1)
    above = np.maximum(found.peak_bytes / limit - 1, 0).sum(axis=1)
    costs = np.log(found.step_ns / one.alone_ns) + np.where(above > 0, 0.3 + above, 0)
    costs = costs[place.ravel()].reshape(groups, _EPISODES, devices)
    padding = np.tile(costs[-1:], (len(before) - groups, 1, 1)) * 0
    return np.concatenate([costs, padding])


def _advantages(costs: Any, before: Any, actions: Any) -> tuple[Any, Any]:
    """What each device gains at once [groups, episodes, devices], and what is gained after the
    decision, beside other episodes of the same start [groups, episodes]."""
    groups = np.arange(len(costs))
    stay = before[groups, :, groups]
    now = np.take_along_axis(costs, stay[..., None], axis=2) - costs
    gained = np.take_along_axis(now, actions[..., None], axis=2)[..., 0]
    later = np.zeros_like(gained)
    for group in reversed(groups[:-1]):
        later[group] = _DISCOUNT * (gained[group + 1] + later[group + 1])
    return now.astype(np.float32), (later - later.mean(axis=1, keepdims=True)).astype(np.float32)


@compiled
def _update(
    params: Params,
    state: Any,
    see: Any,
    before: Array,
    actions: Array,
    now: Array,
    later: Array,
    rate: float,
) -> tuple[Params, Any]:
    def loss(params: Params, group: Array) -> Array:
        log_p = jax.vmap(policy.log_policy, (None, None, 0, None))(
            params, see, before[group], group
        )
        at_once = (jnp.exp(log_p) * now[group]).sum(-1)
        credited = later[group] * taken(log_p, actions[group])
        real = group < see["count"]
        return -jnp.where(real, at_once + credited + _ENTROPY * entropy(log_p), 0).mean()

    def add(total: Params, group: Array) -> tuple[Params, None]:
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, group)), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    total, _ = jax.lax.scan(add, zeros, jnp.arange(len(before)))
    total = jax.tree.map(lambda g: g / see["count"], total)
    return adam(params, total, state, rate)
