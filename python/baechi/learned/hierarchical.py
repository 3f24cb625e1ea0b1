# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HierarchicalRL: Mirhoseini et al., A Hierarchical Model for Device Placement, ICLR 2018.

A feed-forward grouper puts every unit into one of a fixed number of groups, a sequence-to-
sequence placer puts every group on a device; both are trained together.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.learned import reinforce, seq2seq
from baechi.learned.features import View
from baechi.learned.layers import (
    Array,
    Params,
    dense,
    dense_init,
    entropy,
    gumbel,
    taken,
)
from baechi.learned.trials import Trials

_HIDDEN = 64
_MOST_GROUPS = 32
# Of the grouper's first logits: like units are in one group from the beginning.
_SHARPNESS = 3.0


def train(view: View, trials: Trials, seed: int) -> None:
    groups = min(_MOST_GROUPS, view.count)
    random = np.random.default_rng(seed)
    inputs = view.features.shape[1]
    params = {
        "grouper": dense_init(random, inputs, _HIDDEN),
        "groups": dense_init(random, _HIDDEN, groups, scale=_SHARPNESS),
        "embedding": dense_init(random, inputs + 1 + 2 * groups, _HIDDEN),
        "placer": seq2seq.init(random, _HIDDEN, _HIDDEN, view.devices, both_ways=True),
    }
    seen = {
        "features": view.features,
        "edges": view.edges,
        "traffic": view.traffic,
        "allowed": view.allowed,
    }

    def noise() -> Any:
        return (
            gumbel(random, reinforce.BATCH, view.count, groups),
            gumbel(random, reinforce.BATCH, groups, view.devices),
        )

    reinforce.train(_sample, _log_probability, params, seen, trials, noise)


def _grouper(params: Params, seen: Any) -> Array:
    """Log-probabilities [units, groups]."""
    hidden = jnp.tanh(dense(params["grouper"], seen["features"]))
    return jax.nn.log_softmax(dense(params["groups"], hidden))


def _embedded(params: Params, seen: Any, group: Array, groups: int) -> tuple[Array, Array]:
    """What the placer reads of groups [units], and the number of each one's units."""
    count = jax.ops.segment_sum(jnp.ones(len(group)), group, groups)
    total = jax.ops.segment_sum(seen["features"], group, groups)
    mean = total / jnp.maximum(count, 1)[:, None]
    pairs = group[seen["edges"][:, 0]] * groups + group[seen["edges"][:, 1]]
    sent = jax.ops.segment_sum(seen["traffic"], pairs, groups * groups).reshape(groups, groups)
    sent = sent / jnp.maximum(sent.max(), 1e-6)
    share = (count / len(group))[:, None]
    inputs = jnp.concatenate([mean, share, sent, sent.T], axis=1)
    return jnp.tanh(dense(params["embedding"], inputs)), count


def _encoded(params: Params, seen: Any, group: Array) -> tuple[Array, Array, Array]:
    """Of the groups: the placer's encoding, where they may be (anywhere), how many units."""
    groups = params["groups"]["b"].shape[0]
    embedded, count = _embedded(params, seen, group, groups)
    anywhere = jnp.ones((groups, seen["allowed"].shape[1]), bool)
    return seq2seq.encode(params["placer"], embedded), anywhere, count


def _sample(params: Params, seen: Any, noise: Any) -> tuple[Any, Array]:
    for_groups, for_devices = noise
    group = jnp.argmax(_grouper(params, seen) + for_groups, axis=2).astype(jnp.int32)

    def one(group: Array, noise: Array) -> tuple[Array, Array]:
        encoded, anywhere, _ = _encoded(params, seen, group)
        device = seq2seq.sample(params["placer"], encoded, anywhere, noise)
        wanted = device[group]
        # A unit that may not be where its group is goes to the first place where it may.
        may = taken(seen["allowed"], wanted)
        return device, jnp.where(may, wanted, jnp.argmax(seen["allowed"], axis=1))

    device, choices = jax.vmap(one)(group, for_devices)
    return (group, device), choices


def _log_probability(params: Params, seen: Any, actions: Any) -> tuple[Array, Array]:
    log_groups = _grouper(params, seen)

    def one(group: Array, device: Array) -> tuple[Array, Array]:
        encoded, anywhere, count = _encoded(params, seen, group)
        log_p, uncertain = seq2seq.score(params["placer"], encoded, anywhere, device)
        log_p = jnp.where(count > 0, log_p, 0)  # where an empty group is does not matter
        both = taken(log_groups, group).sum() + log_p.sum()
        return both, uncertain.mean() + entropy(log_groups).mean()

    return jax.vmap(one)(*actions)
