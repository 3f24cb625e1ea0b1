# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stack of LSTM layers, unrolled over time, that follows a sequence of vectors."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import training


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int
    hidden: int  # also the width of inputs and targets
    sequence: int
    batch: int
    optimizer: str = "sgd"
    learning_rate: float = 0.2


PRESETS = {
    "tiny": Config(layers=2, hidden=8, sequence=3, batch=2),
    "small": Config(layers=2, hidden=512, sequence=20, batch=64, learning_rate=2.0),
}


def training_step(config: Config):
    draws = init.Draws()
    h = config.hidden

    params = [cell_parameters(draws, h) for _ in range(config.layers)]
    shape = (config.sequence, config.batch, h)  # time first: a step's rows are neighbours
    batch = {
        "inputs": draws.uniform(*shape, low=-1.0, high=1.0),
        "targets": draws.uniform(*shape, low=-0.5, high=0.5),
    }

    def loss(params, drop, inputs, targets):
        zero = jnp.zeros(shape[1:])
        states = [(zero, zero) for _ in params]
        total = 0.0
        for t in range(config.sequence):
            x = inputs[t]
            for i, layer in enumerate(params):
                with jax.named_scope(f"l{i}/t{t}"):
                    states[i] = cell(layer, x, states[i])
                x = states[i][0]
            with jax.named_scope(f"loss/t{t}"):
                total = total + jnp.mean(jnp.sum((x - targets[t]) ** 2, axis=-1))
        return total / config.sequence

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer)


def cell_parameters(draws: init.Draws, width: int):
    """Of an LSTM cell whose input is as wide as its output."""
    return {
        "input": draws.weight(width, 4 * width, fan_in=2 * width),
        "state": draws.weight(width, 4 * width, fan_in=2 * width),
        "bias": init.zeros(4 * width),
    }


def cell(params, x, state):
    """One LSTM step; its new state is (output, memory)."""
    output, memory = state
    gates = x @ params["input"] + output @ params["state"] + params["bias"]
    i, f, g, o = lax.split(gates, [output.shape[-1]] * 4, axis=1)
    memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory
