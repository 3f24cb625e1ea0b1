# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""REINFORCE (Williams, 1992) for policies that place everything at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from baechi.learned.layers import Array, Params, compiled
from baechi.learned.trials import Trials

# (parameters, what the policy sees, actions) to log-probability and entropy, of a sample each
# and of a decision on average.
LogProbability = Callable[[Params, Any, Any], tuple[Array, Array]]
# (parameters, what it sees, noise) to actions and the devices of the groups.
Sample = Callable[[Params, Any, Any], tuple[Any, Array]]

BATCH = 16
_RATE = 0.003
_ENTROPY = 0.1
_MEMORY = 0.8  # of the moving average


class Baseline:
    """A moving average of costs, and their deviation: how much better a sample was."""

    def __init__(self) -> None:
        self._mean: Any = None
        self._square = 0.0

    def advantages(self, costs: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """[samples, ...] of costs; averages are over the samples alone."""
        mean = costs.mean(axis=0)
        if self._mean is None:
            self._mean, self._square = mean, float(((costs - mean) ** 2).mean())
        better = self._mean - costs
        self._mean = _MEMORY * self._mean + (1 - _MEMORY) * mean
        self._square = _MEMORY * self._square + (1 - _MEMORY) * float((better**2).mean())
        return (better / (self._square**0.5 + 1e-6)).astype(np.float32)


def adam_init(params: Params) -> Any:
    zeros = jax.tree.map(np.zeros_like, params)
    return zeros, zeros, np.zeros((), np.int32)


def adam(params: Params, gradient: Params, state: Any, rate: float = _RATE) -> tuple[Params, Any]:
    """A step of Adam (Kingma and Ba, 2015)."""
    first, second, count = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    scale = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = jax.tree.map(
        lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, first, second
    )
    return params, (first, second, count)


def train(
    sample: Sample,
    log_probability: LogProbability,
    params: Params,
    seen: Any,
    trials: Trials,
    noise: Callable[[], Any],
) -> None:
    """noise: for a batch of BATCH.

    Samples a batch, evaluates it, makes what was better than the baseline more likely."""
    state, baseline = adam_init(params), Baseline()
    while trials.left:
        actions, choices = _sampled(sample, params, seen, noise())
        costs = trials.costs(np.asarray(choices))
        if len(costs) == BATCH and trials.left:
            better = baseline.advantages(costs)
            params, state = _update(log_probability, params, state, seen, actions, better)


@functools.partial(compiled, static_argnums=0)
def _sampled(sample: Sample, params: Params, seen: Any, noise: Any) -> Any:
    return sample(params, seen, noise)


@functools.partial(compiled, static_argnums=0)
def _update(
    log_probability: LogProbability,
    params: Params,
    state: Any,
    seen: Any,
    actions: Any,
    better: Array,
) -> tuple[Params, Any]:
    def loss(params: Params) -> Array:
        log_p, entropy = log_probability(params, seen, actions)
        return -(better * log_p).mean() - _ENTROPY * entropy.mean()

    return adam(params, jax.grad(loss)(params), state)
