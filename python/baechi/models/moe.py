# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Transformer with a mixture of experts in place of each block's MLP.

Routing as in GShard (Lepikhin et al., 2021): every token goes to its two best
experts, by dense dispatch within each sequence; what is over an expert's
capacity is dropped. Each expert has parameters and operators of its own, so
that experts can go to different devices.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import training, transformer


@dataclasses.dataclass(frozen=True)
class Config:
    hidden: int
    heads: int
    layers: int
    experts: int
    expert_hidden: int
    sequence: int
    batch: int
    vocabulary: int
    capacity: float = 1.0  # an expert's places, in its share of the tokens
    balance: float = 0.01  # the weight of the loss that balances the experts
    optimizer: str = "sgd"
    learning_rate: float = 0.05
    dropout: float = 0.0  # of the embedding and of what every block adds


PRESETS = {
    "tiny": Config(
        hidden=16, heads=2, layers=1, experts=4, expert_hidden=16, sequence=8, batch=2,
        vocabulary=20,
    ),
    "small": Config(
        hidden=256, heads=4, layers=2, experts=8, expert_hidden=2048, sequence=128, batch=8,
        vocabulary=1000,
    ),
    # The base Transformer's sizes with 16 experts a block.
    "paper": Config(
        hidden=512, heads=8, layers=6, experts=16, expert_hidden=2048, sequence=128, batch=16,
        vocabulary=30000, optimizer="adam", learning_rate=1e-4, dropout=0.1,
    ),
    "large": Config(
        hidden=1024, heads=16, layers=12, experts=32, expert_hidden=4096, sequence=256, batch=16,
        vocabulary=30000, optimizer="adam", learning_rate=1e-4, dropout=0.1,
    ),
}  # fmt: skip

CHOICES = 2  # experts of a token


def training_step(config: Config):
    if config.hidden % config.heads:
        raise ValueError(f"hidden={config.hidden} is not a multiple of heads={config.heads}")
    if config.experts < CHOICES:
        raise ValueError(f"experts={config.experts}: a token goes to {CHOICES}")
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
        balance = 0.0
        for i, block in enumerate(params["blocks"]):
            with jax.named_scope(f"l{i}"):
                with jax.named_scope("attention"):
                    h = transformer.norm(block["norm1"], x)
                    x = x + drop(transformer.attention(config, block, h))
                with jax.named_scope("moe"):
                    h = transformer.norm(block["norm2"], x)
                    h, unbalance = _mixture(config, block, h)
                    x, balance = x + drop(h), balance + unbalance
        with jax.named_scope("head"):
            logits = transformer.norm(params["norm"], x) @ params["head"]
        return training.cross_entropy(logits, targets) + config.balance * balance

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)


def _parameters(config: Config, draws: init.Draws):
    d = config.hidden

    def expert():
        return {
            "w1": draws.weight(d, config.expert_hidden),
            "w2": draws.weight(config.expert_hidden, d),
        }

    def block():
        return {
            "norm1": transformer.norm_parameters(d),
            "qkv": draws.weight(d, 3 * d),
            "out": draws.weight(d, d),
            "norm2": transformer.norm_parameters(d),
            "router": draws.weight(d, config.experts),
            "experts": [expert() for _ in range(config.experts)],
        }

    return {
        "tokens": draws.weight(config.vocabulary, d, fan_in=d),
        "positions": draws.weight(config.sequence, d, fan_in=d),
        "blocks": [block() for _ in range(config.layers)],
        "norm": transformer.norm_parameters(d),
        "head": draws.weight(d, config.vocabulary),
    }


def _route(config: Config, router, x):
    """What goes where: [batch, token, expert, place] of zeros and ones, the same
    with the weights of the experts, and how far the experts are from balance."""
    probabilities = jax.nn.softmax(x @ router, axis=-1)
    _, chosen = lax.top_k(lax.stop_gradient(probabilities), CHOICES)
    # First choices take places before second ones: [batch, choice * token, expert].
    hot = jax.nn.one_hot(jnp.swapaxes(chosen, 1, 2), config.experts, dtype=x.dtype)
    queue = hot.reshape(x.shape[0], -1, config.experts)
    before = jnp.tril(jnp.ones((queue.shape[1],) * 2, x.dtype), -1)
    place = jnp.sum(jnp.einsum("pq,bqe->bpe", before, queue) * queue, axis=-1)
    share = CHOICES * config.sequence / config.experts
    places = jax.nn.one_hot(
        place.reshape(hot.shape[:-1]).astype(jnp.int32),
        max(1, int(config.capacity * share)),
        dtype=x.dtype,
    )  # a place over the capacity is all zeros
    gates = jnp.einsum("bkse,bse->bks", hot, probabilities)
    gates = gates / jnp.sum(gates, axis=1, keepdims=True)
    dispatch = jnp.einsum("bkse,bksc->bsec", hot, places)
    combine = jnp.einsum("bks,bkse,bksc->bsec", gates, hot, places)
    used = jnp.mean(hot[:, 0], axis=(0, 1))
    return dispatch, combine, config.experts * jnp.sum(used * jnp.mean(probabilities, axis=(0, 1)))


def _mixture(config: Config, params, x):
    with jax.named_scope("router"):
        dispatch, combine, unbalance = _route(config, params["router"], x)
    total = 0.0
    for i, expert in enumerate(params["experts"]):
        with jax.named_scope(f"e{i}"):
            taken = jnp.einsum("bsc,bsd->bcd", dispatch[:, :, i], x)
            y = jax.nn.gelu(taken @ expert["w1"]) @ expert["w2"]
            total = total + jnp.einsum("bsc,bcd->bsd", combine[:, :, i], y)
    return total, unbalance
