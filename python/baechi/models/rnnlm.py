# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An RNN language model (Zaremba et al., 2014): LSTM layers unrolled over time.

As in the paper dropout is on what goes up, never on what goes from one time
step to the next. Every sequence starts from a state of zeros.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import lstm, training


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int
    hidden: int
    sequence: int
    batch: int
    vocabulary: int
    optimizer: str = "sgd"
    learning_rate: float = 1.0
    dropout: float = 0.5  # of the input of every layer and of the classifier


PRESETS = {
    "tiny": Config(layers=2, hidden=8, sequence=3, batch=2, vocabulary=12, dropout=0.2),
    "small": Config(layers=2, hidden=256, sequence=10, batch=16, vocabulary=1000),
    # The paper's medium and large model of the Penn Treebank.
    "paper": Config(layers=2, hidden=650, sequence=35, batch=20, vocabulary=10000),
    "large": Config(
        layers=2, hidden=1500, sequence=35, batch=20, vocabulary=10000, dropout=0.65
    ),
}  # fmt: skip


def training_step(config: Config):
    draws = init.Draws()
    h = config.hidden
    params = {
        "embedding": draws.uniform(config.vocabulary, h, low=-1.0, high=1.0),
        "cells": [lstm.cell_parameters(draws, h) for _ in range(config.layers)],
        "head": {"w": draws.weight(h, config.vocabulary), "b": init.zeros(config.vocabulary)},
    }
    tokens = (config.sequence, config.batch)  # time first: a step's rows are neighbours
    batch = {
        "tokens": draws.integers(*tokens, high=config.vocabulary),
        "targets": draws.integers(*tokens, high=config.vocabulary),
    }

    def loss(params, drop, tokens, targets):
        with jax.named_scope("embed"):
            x = jnp.take(params["embedding"], tokens, axis=0, mode="clip")
            steps = [lax.squeeze(part, [0]) for part in lax.split(x, [1] * len(x), axis=0)]
        for i, cell in enumerate(params["cells"]):
            with jax.named_scope(f"l{i}"):
                steps = _layer(cell, steps, drop)
        with jax.named_scope("head"):
            x = drop(jnp.stack(steps))
            logits = x @ params["head"]["w"] + params["head"]["b"]
        return training.cross_entropy(logits, targets)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)


def _layer(params, steps, drop):
    zero = jnp.zeros_like(steps[0])
    state, outputs = (zero, zero), []
    drops = drop.steps(len(steps), zero.shape)
    for t, x in enumerate(steps):
        with jax.named_scope(f"t{t}"):
            state = lstm.cell(params, drops[t](x), state)
        outputs.append(state[0])
    return outputs
