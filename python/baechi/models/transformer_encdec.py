# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The encoder-decoder Transformer (Vaswani et al., 2017).

Normalization is after each residual sum, the MLPs have ReLU, and dropout is on
embeddings and on what every sublayer adds, as in the paper. Positions are
learned (its table 3, row E), and the embeddings and the classifier have weights
of their own, so that they can be on different devices.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from baechi import init
from baechi.models import training
from baechi.models.transformer import norm, norm_parameters


@dataclasses.dataclass(frozen=True)
class Config:
    hidden: int
    heads: int
    layers: int  # of the encoder and of the decoder
    inner: int  # width of the MLPs
    sequence: int  # of source and target
    batch: int
    vocabulary: int  # of source and target
    optimizer: str = "adam"
    learning_rate: float = 1e-4
    dropout: float = 0.1


PRESETS = {
    "tiny": Config(
        hidden=16, heads=2, layers=1, inner=32, sequence=8, batch=2, vocabulary=20,
        learning_rate=1e-3,
    ),
    "small": Config(
        hidden=256, heads=4, layers=2, inner=1024, sequence=64, batch=8, vocabulary=1000
    ),
    # The paper's base model with the sequences and the vocabulary of GNMT's presets.
    "paper": Config(
        hidden=512, heads=8, layers=6, inner=2048, sequence=50, batch=64, vocabulary=30000
    ),
    # The paper's big model.
    "large": Config(
        hidden=1024, heads=16, layers=6, inner=4096, sequence=50, batch=128, vocabulary=30000,
        dropout=0.3,
    ),
}  # fmt: skip


def training_step(config: Config):
    if config.hidden % config.heads:
        raise ValueError(f"hidden={config.hidden} is not a multiple of heads={config.heads}")
    draws = init.Draws()
    params = _parameters(config, draws)
    tokens = (config.batch, config.sequence)
    batch = {
        "source": draws.integers(*tokens, high=config.vocabulary),
        "inputs": draws.integers(*tokens, high=config.vocabulary),
        "targets": draws.integers(*tokens, high=config.vocabulary),
    }

    def loss(params, drop, source, inputs, targets):
        def sublayer(name, params, x, function):
            with jax.named_scope(name):
                return norm(params["norm"], x + drop(function(params, x)))

        def attend(of=None, causal=False):
            return lambda params, x: _attention(config, params, x, x if of is None else of, causal)

        with jax.named_scope("encoder"):
            x = drop(_embed(params["encoder"], source))
            for i, block in enumerate(params["encoder"]["blocks"]):
                with jax.named_scope(f"l{i}"):
                    x = sublayer("attention", block["attention"], x, attend())
                    x = sublayer("mlp", block["mlp"], x, _mlp)
        memory = x
        with jax.named_scope("decoder"):
            x = drop(_embed(params["decoder"], inputs))
            for i, block in enumerate(params["decoder"]["blocks"]):
                with jax.named_scope(f"l{i}"):
                    x = sublayer("attention", block["attention"], x, attend(causal=True))
                    x = sublayer("cross", block["cross"], x, attend(of=memory))
                    x = sublayer("mlp", block["mlp"], x, _mlp)
        with jax.named_scope("head"):
            logits = x @ params["head"]
        return training.cross_entropy(logits, targets)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)


def _parameters(config: Config, draws: init.Draws):
    d = config.hidden

    def attention():
        weights = {name: draws.weight(d, d) for name in ("query", "key", "value", "out")}
        return {**weights, "norm": norm_parameters(d)}

    def mlp():
        return {
            "w1": draws.weight(d, config.inner),
            "b1": init.zeros(config.inner),
            "w2": draws.weight(config.inner, d),
            "b2": init.zeros(d),
            "norm": norm_parameters(d),
        }

    def stack(*attentions: str):
        return {
            "tokens": draws.weight(config.vocabulary, d, fan_in=d),
            "positions": draws.weight(config.sequence, d, fan_in=d),
            "blocks": [
                {**{name: attention() for name in attentions}, "mlp": mlp()}
                for _ in range(config.layers)
            ],
        }

    return {
        "encoder": stack("attention"),
        "decoder": stack("attention", "cross"),
        "head": draws.weight(d, config.vocabulary),
    }


def _embed(params, tokens):
    with jax.named_scope("embed"):
        rows = jnp.take(params["tokens"], tokens, axis=0, mode="clip")
        return rows * math.sqrt(rows.shape[-1]) + params["positions"]


def _mlp(params, x):
    return jax.nn.relu(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def _attention(config: Config, params, x, memory, causal: bool):
    """Queries from `x`, keys and values from `memory`: [batch, sequence, hidden]."""
    batch, sequence, hidden = x.shape
    size = hidden // config.heads

    def heads(of, weight):
        return (of @ weight).reshape(batch, sequence, config.heads, size)

    q = heads(x, params["query"])
    k, v = heads(memory, params["key"]), heads(memory, params["value"])
    scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) * (1.0 / math.sqrt(size))
    if causal:
        visible = jnp.tril(jnp.ones((sequence, sequence), bool))
        scores = jnp.where(visible, scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(batch, sequence, hidden) @ params["out"]
