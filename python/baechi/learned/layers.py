# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers and policies' parts, in plain JAX: parameters are nested dictionaries."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

Params: TypeAlias = dict[str, Any]
Array: TypeAlias = jax.Array

# Logits are kept within these bounds: no choice becomes certain too early (Bello et al., 2017,
# as used by Mirhoseini et al., 2018).
_CLIP = 5.0


# Compiling is most of the work of a small budget, so it is kept short.
compiled = functools.partial(
    jax.jit,
    compiler_options={
        "xla_backend_optimization_level": 1,
        "xla_llvm_disable_expensive_passes": True,
    },
)


# First values and noise are numpy's: nothing but a policy and its training is compiled.
def dense_init(
    random: np.random.Generator, inputs: int, outputs: int, scale: float = 1.0
) -> Params:
    weights = random.standard_normal((inputs, outputs), np.float32)
    weights *= np.float32(scale / max(inputs, 1) ** 0.5)
    return {"w": weights, "b": np.zeros(outputs, np.float32)}


def gumbel(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """The largest of log-probabilities and this noise is a sample of them."""
    return -np.log(random.standard_exponential(shape, np.float32) + np.float32(1e-30))


def dense(params: Params, x: Array) -> Array:
    return x @ params["w"] + params["b"]


def lstm_init(random: np.random.Generator, inputs: int, hidden: int) -> Params:
    return {
        "input": dense_init(random, inputs, 4 * hidden),
        "state": dense_init(random, hidden, 4 * hidden)["w"],
    }


def lstm(params: Params, inputs: Array, start: Array | None = None, reverse: bool = False) -> Array:
    """[steps, inputs] to the states [steps, hidden]; start: the first cell."""
    zeros = jnp.zeros(params["state"].shape[0])

    def step(state: tuple[Array, Array], gates: Array) -> tuple[tuple[Array, Array], Array]:
        state = lstm_step(params, state, gates)
        return state, state[0]

    begin = (zeros, zeros if start is None else start)
    return jax.lax.scan(step, begin, dense(params["input"], inputs), reverse=reverse)[1]


def lstm_step(params: Params, state: tuple[Array, Array], gates: Array) -> tuple[Array, Array]:
    """gates: what the step's input says of them, [4 * hidden]."""
    h, c = state
    enter, forget, new, leave = jnp.split(gates + h @ params["state"], 4)
    c = jax.nn.sigmoid(forget + 1) * c + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(c), c


def log_probabilities(logits: Array, allowed: Array) -> Array:
    """Over the last axis; about -1e9 where not allowed."""
    return jax.nn.log_softmax(jnp.where(allowed, _CLIP * jnp.tanh(logits / _CLIP), -1e9))


def entropy(log_p: Array) -> Array:
    return -(jnp.exp(log_p) * jnp.maximum(log_p, -50)).sum(-1)


def taken(log_p: Array, action: Array) -> Array:
    """Of the last axis the entry that an action names."""
    return jnp.take_along_axis(log_p, action[..., None], axis=-1)[..., 0]
