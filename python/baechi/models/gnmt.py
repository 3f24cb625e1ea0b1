# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GNMT (Wu et al., 2016): LSTM encoder and decoder with attention, unrolled.

As in the paper: the encoder's bottom layer is bidirectional, layers from the
third on have residual connections, attention is additive, asked by the
decoder's bottom layer, and its context goes to every decoder layer. Dropout is
on the inputs of the layers (section 7).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import training


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int  # of the encoder and of the decoder; the bidirectional one is one
    hidden: int
    sequence: int  # of source and target
    batch: int
    vocabulary: int  # of source and target
    optimizer: str = "sgd"
    learning_rate: float = 5.0  # gradients of a mean over all tokens are small
    dropout: float = 0.0  # of the input of every layer


PRESETS = {
    "tiny": Config(layers=2, hidden=8, sequence=2, batch=2, vocabulary=12, learning_rate=2.0),
    "small": Config(layers=2, hidden=256, sequence=10, batch=32, vocabulary=1000),
    # Many operators that cost little to run: for compile times.
    "large": Config(layers=4, hidden=32, sequence=16, batch=4, vocabulary=64, learning_rate=2.0),
    # The sizes that the Baechi paper (Jeon et al., 2020) measured; it also took batch=256.
    "paper": Config(
        layers=4, hidden=512, sequence=40, batch=128, vocabulary=30000,
        optimizer="adam", learning_rate=1e-3, dropout=0.2,
    ),
    "paper50": Config(
        layers=4, hidden=512, sequence=50, batch=128, vocabulary=30000,
        optimizer="adam", learning_rate=1e-3, dropout=0.2,
    ),
    # GNMT's own size, with the sequences of the Baechi paper.
    "full": Config(
        layers=8, hidden=1024, sequence=50, batch=128, vocabulary=30000,
        optimizer="adam", learning_rate=1e-3, dropout=0.2,
    ),
}  # fmt: skip


def training_step(config: Config):
    draws = init.Draws()
    params = _parameters(config, draws)
    tokens = (config.sequence, config.batch)  # time first: a step's rows are neighbours
    batch = {
        "source": draws.integers(*tokens, high=config.vocabulary),
        "inputs": draws.integers(*tokens, high=config.vocabulary),
        "targets": draws.integers(*tokens, high=config.vocabulary),
    }

    def loss(params, drop, source, inputs, targets):
        with jax.named_scope("encoder"):
            memory = _encode(params["encoder"], source, drop)
        with jax.named_scope("decoder"):
            outputs = _decode(params["decoder"], inputs, memory, drop)
        with jax.named_scope("head"):
            logits = outputs @ params["head"]["w"] + params["head"]["b"]
        return training.cross_entropy(logits, targets)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)


def _parameters(config: Config, draws: init.Draws):
    h, vocabulary = config.hidden, config.vocabulary

    def cell(*inputs: int):
        """A weight for each input and for the state: no concatenation."""
        fan_in = sum(inputs) + h
        return {
            "inputs": [draws.weight(size, 4 * h, fan_in=fan_in) for size in inputs],
            "state": draws.weight(h, 4 * h, fan_in=fan_in),
            "bias": init.zeros(4 * h),
        }

    def embedding():
        return draws.uniform(vocabulary, h, low=-1.0, high=1.0)

    return {
        "encoder": {
            "embedding": embedding(),
            "forward": cell(h),
            "reverse": cell(h),
            # The first layer above reads both directions.
            "upper": [cell(*([h, h] if i == 0 else [h])) for i in range(config.layers - 1)],
        },
        "decoder": {
            "embedding": embedding(),
            "cells": [cell(h, h) for _ in range(config.layers)],
            "attention": {
                "query": draws.weight(h, h),
                "key": draws.weight(h, h),
                "score": draws.weight(h),
            },
        },
        "head": {"w": draws.weight(h, vocabulary), "b": init.zeros(vocabulary)},
    }


def _embed(table, tokens):
    """One [batch, hidden] row block for every time step."""
    with jax.named_scope("embed"):
        steps = jnp.take(table, tokens, axis=0, mode="clip")
        parts = lax.split(steps, [1] * steps.shape[0], axis=0)
        return [lax.squeeze(part, [0]) for part in parts]


def _cell(params, inputs, state):
    """One LSTM step; its new state is (output, memory)."""
    output, memory = state
    gates = output @ params["state"] + params["bias"]
    for x, weight in zip(inputs, params["inputs"]):
        gates = gates + x @ weight
    i, f, g, o = lax.split(gates, [output.shape[-1]] * 4, axis=1)
    memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


def _zero_state(x):
    return jnp.zeros_like(x), jnp.zeros_like(x)


def _layer(params, steps, drop):
    """An LSTM layer over the time steps, each a list of inputs."""
    state, outputs = _zero_state(steps[0][0]), []
    drops = [drop.steps(len(steps), x.shape) for x in steps[0]]
    for t, inputs in enumerate(steps):
        with jax.named_scope(f"t{t}"):
            inputs = [of_input[t](x) for of_input, x in zip(drops, inputs)]
            state = _cell(params, inputs, state)
        outputs.append(state[0])
    return outputs


def _encode(params, source, drop):
    embedded = [[x] for x in _embed(params["embedding"], source)]
    with jax.named_scope("forward"):
        forward = _layer(params["forward"], embedded, drop)
    with jax.named_scope("reverse"):
        reverse = _layer(params["reverse"], embedded[::-1], drop)[::-1]
    steps = [[a, b] for a, b in zip(forward, reverse)]
    for i, cell in enumerate(params["upper"]):
        with jax.named_scope(f"l{i + 1}"):
            outputs = _layer(cell, steps, drop)
            if i > 0:
                outputs = [y + x for y, (x,) in zip(outputs, steps)]
        steps = [[y] for y in outputs]
    return jnp.stack([sum(inputs) for inputs in steps], axis=1)  # [batch, time, hidden]


def _attend(params, query, keys, memory):
    hidden = jnp.tanh((query @ params["query"])[:, None, :] + keys)
    weights = jax.nn.softmax(hidden @ params["score"], axis=-1)
    return jnp.einsum("bt,bth->bh", weights, memory)


def _decode(params, inputs, memory, drop):
    with jax.named_scope("keys"):
        keys = memory @ params["attention"]["key"]
    steps = _embed(params["embedding"], inputs)
    states = [_zero_state(steps[0]) for _ in params["cells"]]
    drops = []
    for i in range(len(states)):
        with jax.named_scope(f"l{i}"):
            drops.append(drop.steps(len(steps), steps[0].shape))
    context, outputs = jnp.zeros_like(steps[0]), []
    for t, x in enumerate(steps):
        for i, cell in enumerate(params["cells"]):
            with jax.named_scope(f"l{i}/t{t}"):
                states[i] = _cell(cell, [drops[i][t](x), context], states[i])
                x = states[i][0] + x if i > 1 else states[i][0]
            if i == 0:
                with jax.named_scope(f"attention/t{t}"):
                    context = _attend(params["attention"], x, keys, memory)
        outputs.append(x)
    return jnp.stack(outputs)
