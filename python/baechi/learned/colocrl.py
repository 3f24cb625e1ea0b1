# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ColocRL: Mirhoseini et al., Device Placement Optimization with Reinforcement Learning,
ICML 2017. A sequence-to-sequence network over the groups that are placed together."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.learned import reinforce, seq2seq
from baechi.learned.features import View
from baechi.learned.layers import Array, Params, dense, dense_init, gumbel
from baechi.learned.trials import Trials

_HIDDEN = 64


def train(view: View, trials: Trials, seed: int) -> None:
    random = np.random.default_rng(seed)
    params = {
        "features": dense_init(random, view.features.shape[1], _HIDDEN),
        "sends": dense_init(random, view.count, _HIDDEN),
        "receives": dense_init(random, view.count, _HIDDEN),
        "placer": seq2seq.init(random, _HIDDEN, _HIDDEN, view.devices, both_ways=False),
    }
    seen = {
        "features": view.features,
        "adjacency": view.adjacency(),
        "allowed": view.allowed,
    }

    def noise() -> Any:
        return gumbel(random, reinforce.BATCH, *view.allowed.shape)

    reinforce.train(_sample, _log_probability, params, seen, trials, noise)


def _encoded(params: Params, seen: Any) -> Array:
    embedded = jnp.tanh(
        dense(params["features"], seen["features"])
        + dense(params["sends"], seen["adjacency"])
        + dense(params["receives"], seen["adjacency"].T)
    )
    return seq2seq.encode(params["placer"], embedded)


def _sample(params: Params, seen: Any, noise: Array) -> tuple[Array, Array]:
    encoded = _encoded(params, seen)
    devices = jax.vmap(seq2seq.sample, (None, None, None, 0))(
        params["placer"], encoded, seen["allowed"], noise
    )
    return devices, devices


def _log_probability(params: Params, seen: Any, devices: Array) -> tuple[Array, Array]:
    encoded = _encoded(params, seen)
    log_p, entropy = jax.vmap(seq2seq.score, (None, None, None, 0))(
        params["placer"], encoded, seen["allowed"], devices
    )
    return log_p.sum(axis=1), entropy.mean(axis=1)
