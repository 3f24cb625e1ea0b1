# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all models share: the optimizers, the loss and the form of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from baechi import init
from baechi.models import dropout


class StepResult(NamedTuple):
    loss: Any
    params: Any
    optimizer: Any


class RandomStepResult(NamedTuple):
    loss: Any
    params: Any
    optimizer: Any
    key: Any


class Sgd:
    """Plain stochastic gradient descent: no state."""

    def __init__(self, learning_rate: float):
        self.learning_rate = learning_rate

    def initial_state(self, params):
        return ()

    def update(self, params, grads, state):
        def one(path, param, grad):
            with jax.named_scope(_scope(path)):
                return param - self.learning_rate * grad

        return jax.tree_util.tree_map_with_path(one, params, grads), state


class Adam:
    """Adam (Kingma, Ba, 2015, algorithm 1). The powers of the decay rates are
    state, so that the step needs no power function."""

    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, learning_rate: float):
        self.learning_rate = learning_rate

    def initial_state(self, params):
        return {
            "m": jax.tree.map(init.zeros_like, params),
            "v": jax.tree.map(init.zeros_like, params),
            "beta1_power": init.constant(value=self.beta1),
            "beta2_power": init.constant(value=self.beta2),
        }

    def update(self, params, grads, state):
        power1, power2 = state["beta1_power"], state["beta2_power"]
        rate = self.learning_rate * jnp.sqrt(1 - power2) / (1 - power1)

        def one(path, param, grad, m, v):
            with jax.named_scope(_scope(path)):
                m = self.beta1 * m + (1 - self.beta1) * grad
                v = self.beta2 * v + (1 - self.beta2) * grad * grad
                return param - rate * m / (jnp.sqrt(v) + self.epsilon), m, v

        new = jax.tree_util.tree_map_with_path(one, params, grads, state["m"], state["v"])
        params, m, v = jax.tree.transpose(
            jax.tree.structure(params), jax.tree.structure((0, 0, 0)), new
        )
        return params, {
            "m": m,
            "v": v,
            "beta1_power": power1 * self.beta1,
            "beta2_power": power2 * self.beta2,
        }


OPTIMIZERS = {"sgd": Sgd, "adam": Adam}


def _scope(path) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def make_optimizer(name: str, learning_rate: float):
    if name not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise ValueError(f"unknown optimizer '{name}'; known: {known}")
    return OPTIMIZERS[name](learning_rate)


def make_step(loss: Callable, params, batch: dict, algorithm, rate: float = 0.0):
    """The whole training step of `loss(params, drop, **batch)`, for the importer.

    `drop` is a Dropout of this rate; where that is 0 the step has no key.
    """
    dropout.check(rate)

    def advance(params, optimizer, batch, drop):
        value, grads = jax.value_and_grad(loss)(params, drop, **batch)
        with jax.named_scope("update"):
            params, optimizer = algorithm.update(params, grads, optimizer)
        return StepResult(value, params, optimizer)

    def step(params, optimizer, batch):
        return advance(params, optimizer, batch, dropout.Dropout())

    def random_step(params, optimizer, key, batch):
        with jax.named_scope("key"):
            key, drawn = jax.random.split(key)
        return RandomStepResult(
            *advance(params, optimizer, batch, dropout.Dropout(rate, drawn)), key
        )

    state = algorithm.initial_state(params)
    if rate == 0:
        return step, (params, state, batch), (0, 1)
    return random_step, (params, state, dropout.initial_key(), batch), (0, 1, 2)


def cross_entropy(logits, targets):
    """Mean cross entropy of integer targets. One-hot, because the gradient of
    picking single elements would be a scatter."""
    with jax.named_scope("loss"):
        picked = jax.nn.one_hot(targets, logits.shape[-1], dtype=logits.dtype)
        return -jnp.mean(jnp.sum(picked * jax.nn.log_softmax(logits), axis=-1))
