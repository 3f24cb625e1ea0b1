# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder-only Transformer language model (pre-norm, causal attention)."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import training
from baechi.models.presets.transformer import PRESETS as PRESETS
from baechi.models.presets.transformer import Config


def training_step(config: Config):
    if config.hidden % config.heads:
        raise ValueError(f"hidden={config.hidden} is not a multiple of heads={config.heads}")
    draws = init.Draws()
    tokens = (config.batch, config.sequence)
    params = _parameters(config, draws)
    batch = {
        "tokens": draws.integers(*tokens, high=config.vocabulary),
        "targets": draws.integers(*tokens, high=config.vocabulary),
    }

    def loss(params, drop, tokens, targets):
        with jax.named_scope("embed"):
            x = jnp.take(params["tokens"], tokens, axis=0, mode="clip") + params["positions"]
            x = drop(x)
        for i, block in enumerate(params["blocks"]):
            with jax.named_scope(f"l{i}"):
                with jax.named_scope("attention"):
                    added = attention(config, block, norm(block["norm1"], x))
                    x = x + drop(added)
                with jax.named_scope("mlp"):
                    h = norm(block["norm2"], x) @ block["w1"] + block["b1"]
                    x = x + drop(jax.nn.gelu(h) @ block["w2"]) + block["b2"]
        with jax.named_scope("head"):
            logits = norm(params["norm"], x) @ params["head"]
        return training.cross_entropy(logits, targets)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)


def _parameters(config: Config, draws: init.Draws):
    d = config.hidden

    def block():
        return {
            "norm1": norm_parameters(d),
            "qkv": draws.weight(d, 3 * d),
            "out": draws.weight(d, d),
            "norm2": norm_parameters(d),
            "w1": draws.weight(d, 4 * d),
            "b1": init.zeros(4 * d),
            "w2": draws.weight(4 * d, d),
            "b2": init.zeros(d),
        }

    return {
        "tokens": draws.weight(config.vocabulary, d, fan_in=d),
        "positions": draws.weight(config.sequence, d, fan_in=d),
        "blocks": [block() for _ in range(config.layers)],
        "norm": norm_parameters(d),
        "head": draws.weight(d, config.vocabulary),
    }


def norm_parameters(width: int):
    return {"gain": init.ones(width), "bias": init.zeros(width)}


def norm(params, x):
    with jax.named_scope("norm"):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        centred = x - mean
        variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
        return centred * lax.rsqrt(variance + 1e-5) * params["gain"] + params["bias"]


def attention(config: Config, block, x):
    batch, sequence, hidden = x.shape
    size = hidden // config.heads
    split = (batch, sequence, config.heads, size)
    q, k, v = (part.reshape(split) for part in jnp.split(x @ block["qkv"], 3, axis=-1))
    scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) * (1.0 / math.sqrt(size))
    causal = jnp.tril(jnp.ones((sequence, sequence), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhc->bqhc", weights, v)
    return mixed.reshape(batch, sequence, hidden) @ block["out"]
