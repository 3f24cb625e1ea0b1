# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sequence of groups to a sequence of devices: LSTMs with attention.

Of Mirhoseini et al., Device Placement Optimization with Reinforcement Learning, ICML 2017,
section 3.2: an encoder over the groups; a decoder that at each step attends to all of them,
sees the device chosen last, and chooses that of the encoder's same step.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.learned.layers import (
    Array,
    Params,
    dense,
    dense_init,
    entropy,
    log_probabilities,
    lstm,
    lstm_init,
    lstm_step,
    taken,
)


def init(
    random: np.random.Generator, inputs: int, hidden: int, devices: int, both_ways: bool
) -> Params:
    """both_ways: the encoder reads from both ends, with half of its state each."""
    part = hidden // 2 if both_ways else hidden
    return {
        "forth": lstm_init(random, inputs, part),
        **({"back": lstm_init(random, inputs, part)} if both_ways else {}),
        "decoder": lstm_init(random, 2 * hidden, hidden),
        "devices": random.standard_normal((devices + 1, hidden), np.float32),  # the last: none yet
        "attention": dense_init(random, hidden, hidden),
        "mix": dense_init(random, 2 * hidden, hidden),
        "logits": dense_init(random, hidden, devices),
    }


def encode(params: Params, inputs: Array) -> Array:
    """[groups, inputs] to [groups, hidden]."""
    ways = [lstm(params["forth"], inputs)]
    if "back" in params:
        ways.append(lstm(params["back"], inputs, reverse=True))
    return jnp.concatenate(ways, axis=1)


def sample(params: Params, encoded: Array, allowed: Array, noise: Array) -> Array:
    """Devices [groups]. allowed, noise: [groups, devices], the latter of `gumbel`."""
    keys = dense(params["attention"], encoded)

    def step(carry: tuple[Array, Array, Array], xs: tuple[Array, ...]) -> Any:
        h, c, previous = carry
        own, may, shaken = xs
        read = jnp.concatenate([params["devices"][previous], own])
        h, c = lstm_step(params["decoder"], (h, c), dense(params["decoder"]["input"], read))
        device = jnp.argmax(_log_p(params, encoded, keys, h, may) + shaken).astype(jnp.int32)
        return (h, c, device), device

    start = (jnp.zeros(encoded.shape[1]), encoded[-1], _none_yet(params))
    return jax.lax.scan(step, start, (encoded, allowed, noise))[1]


def score(params: Params, encoded: Array, allowed: Array, devices: Array) -> tuple[Array, Array]:
    """The log-probabilities of devices [groups] and the entropies of their choice."""
    previous = jnp.concatenate([_none_yet(params)[None], devices[:-1]])
    read = jnp.concatenate([params["devices"][previous], encoded], axis=1)
    h = lstm(params["decoder"], read, start=encoded[-1])
    log_p = _log_p(params, encoded, dense(params["attention"], encoded), h, allowed)
    return taken(log_p, devices), entropy(log_p)


def _none_yet(params: Params) -> Array:
    return jnp.int32(params["devices"].shape[0] - 1)


def _log_p(params: Params, encoded: Array, keys: Array, h: Array, allowed: Array) -> Array:
    """Of one state of the decoder, or of all: what it attends to, and the devices."""
    weights = jax.nn.softmax(h @ keys.T / encoded.shape[1] ** 0.5)
    mixed = jnp.tanh(dense(params["mix"], jnp.concatenate([h, weights @ encoded], axis=-1)))
    return log_probabilities(dense(params["logits"], mixed), allowed)
