# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recurrent network for speech, unrolled over time, as Deep Speech 2 (Amodei et al., 2016)
has it: a convolution along time, bidirectional recurrent layers with rectified units, and a
classifier of every frame, whose loss stands in for CTC's."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from baechi import init
from baechi.models import training


@dataclasses.dataclass(frozen=True)
class Config:
    features: int  # of a frame
    hidden: int
    layers: int  # recurrent ones, in both directions
    symbols: int
    sequence: int  # frames
    batch: int
    context: int = 5  # frames that the convolution sees
    optimizer: str = "sgd"
    learning_rate: float = 0.05


PRESETS = {
    "tiny": Config(features=6, hidden=8, layers=2, symbols=5, sequence=4, batch=2),
    "small": Config(features=80, hidden=256, layers=5, symbols=29, sequence=40, batch=32),
}


def training_step(config: Config):
    draws = init.Draws()
    h = config.hidden
    params = {
        "convolution": draws.weight(config.context * config.features, h),
        "layers": [[_cell(draws, h) for _ in range(2)] for _ in range(config.layers)],
        "classifier": draws.weight(h, config.symbols),
    }
    frames = (config.sequence, config.batch)  # time first: a step's rows are neighbours
    batch = {
        "frames": draws.uniform(*frames, config.features, low=-1.0, high=1.0),
        "targets": draws.integers(*frames, high=config.symbols),
    }

    def loss(params, drop, frames, targets):
        half = config.context // 2
        padded = jnp.pad(frames, ((half, config.context - 1 - half), (0, 0), (0, 0)))
        xs = []
        for t in range(config.sequence):
            with jax.named_scope(f"convolution/t{t}"):
                seen = jnp.concatenate([padded[t + k] for k in range(config.context)], axis=-1)
                xs.append(_clipped(seen @ params["convolution"]))
        for i, (forth, back) in enumerate(params["layers"]):
            with jax.named_scope(f"l{i}"):
                ahead = _recurrent(forth, xs, range(config.sequence))
                behind = _recurrent(back, xs, reversed(range(config.sequence)))
                xs = [a + b for a, b in zip(ahead, behind, strict=True)]
        total = 0.0
        for t, x in enumerate(xs):
            with jax.named_scope(f"classifier/t{t}"):
                total = total + training.cross_entropy(x @ params["classifier"], targets[t])
        return total / config.sequence

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer)


def _cell(draws: init.Draws, width: int):
    return {
        "input": draws.weight(width, width, fan_in=2 * width),
        "state": draws.weight(width, width, fan_in=2 * width),
        "bias": init.zeros(width),
    }


def _clipped(x):
    return jnp.clip(x, 0.0, 20.0)


def _recurrent(params, xs, times):
    """What a layer makes of every frame, in the order of the frames."""
    made = [None] * len(xs)
    state = jnp.zeros_like(xs[0])
    for t in times:
        with jax.named_scope(f"t{t}"):
            state = _clipped(xs[t] @ params["input"] + state @ params["state"] + params["bias"])
        made[t] = state
    return made
