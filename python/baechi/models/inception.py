# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inception-V3 (Szegedy et al., 2016): blocks of parallel branches.

Without the auxiliary classifier. Normalization is by the statistics of the
batch; there are no running ones.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from baechi import init
from baechi.models import layers, training


@dataclasses.dataclass(frozen=True)
class Config:
    image: int  # height and width, of three channels
    stem: str  # "paper": to an eighth of the image; "short": to a half
    blocks: str  # of the three kinds A-B-C; a reduction is before the first B and C
    width: int  # in sixty-fourths of the paper's numbers of filters
    classes: int
    batch: int
    optimizer: str = "sgd"
    learning_rate: float = 0.05
    dropout: float = 0.0  # before the classifier


PRESETS = {
    "tiny": Config(
        image=23, stem="short", blocks="1-1-0", width=4, classes=5, batch=2, learning_rate=0.02
    ),
    "small": Config(
        image=75, stem="short", blocks="1-1-0", width=64, classes=100, batch=4, learning_rate=0.01
    ),
    # All 94 convolutions. The Baechi paper (Jeon et al., 2020) measured batches of 32 and 64.
    "paper": Config(
        image=299, stem="paper", blocks="3-4-2", width=64, classes=1000, batch=32, dropout=0.2
    ),
    # Twice the filters: four times the parameters.
    "large": Config(
        image=299, stem="paper", blocks="3-4-2", width=128, classes=1000, batch=64, dropout=0.2
    ),
}

# A tuple is a convolution: height, width, filters and, where they are not 1 and
# SAME, stride and padding. A list is a chain; a dictionary has branches by name,
# whose outputs are joined.
STEMS = {
    "paper": [
        (3, 3, 32, 2, "VALID"), (3, 3, 32, 1, "VALID"), (3, 3, 64), "max_pool",
        (1, 1, 80), (3, 3, 192, 1, "VALID"), "max_pool",
    ],
    "short": [(3, 3, 32, 2, "VALID"), (3, 3, 64, 1, "VALID")],
}  # fmt: skip


def _block_a(pooled: int):
    return {
        "b1x1": [(1, 1, 64)],
        "b5x5": [(1, 1, 48), (5, 5, 64)],
        "b3x3": [(1, 1, 64), (3, 3, 96), (3, 3, 96)],
        "pool": ["average_pool", (1, 1, pooled)],
    }


def _block_b(inner: int):
    return {
        "b1x1": [(1, 1, 192)],
        "b7x7": [(1, 1, inner), (1, 7, inner), (7, 1, 192)],
        "b7x7twice": [(1, 1, inner), (7, 1, inner), (1, 7, inner), (7, 1, inner), (1, 7, 192)],
        "pool": ["average_pool", (1, 1, 192)],
    }


BLOCK_C = {
    "b1x1": [(1, 1, 320)],
    "b3x3": [(1, 1, 384), {"row": [(1, 3, 384)], "column": [(3, 1, 384)]}],
    "b3x3twice": [(1, 1, 448), (3, 3, 384), {"row": [(1, 3, 384)], "column": [(3, 1, 384)]}],
    "pool": ["average_pool", (1, 1, 192)],
}
REDUCTION_B = {
    "b3x3": [(3, 3, 384, 2, "VALID")],
    "b3x3twice": [(1, 1, 64), (3, 3, 96), (3, 3, 96, 2, "VALID")],
    "pool": ["max_pool"],
}
REDUCTION_C = {
    "b3x3": [(1, 1, 192), (3, 3, 320, 2, "VALID")],
    "b7x7": [(1, 1, 192), (1, 7, 192), (7, 1, 192), (3, 3, 192, 2, "VALID")],
    "pool": ["max_pool"],
}


def _network(config: Config):
    """The blocks by name, each a chain."""
    if config.stem not in STEMS:
        raise ValueError(f"unknown stem '{config.stem}'; known: {', '.join(STEMS)}")
    numbers = layers.counts(config.blocks)
    if len(numbers) != 3:
        raise ValueError(f"blocks={config.blocks}: expected three numbers such as 3-4-2")
    a, b, c = numbers
    network = {"stem": STEMS[config.stem]}
    network |= {f"a{i}": [_block_a(pooled=32 if i == 0 else 64)] for i in range(a)}
    if b:
        network["reduction_b"] = [REDUCTION_B]
    inner = [128] + [160] * (b - 2) + [192]  # the last one is wide, the first narrow
    network |= {f"b{i}": [_block_b(inner[i])] for i in range(b)}
    if c:
        network["reduction_c"] = [REDUCTION_C]
    network |= {f"c{i}": [BLOCK_C] for i in range(c)}
    return network


def training_step(config: Config):
    draws = init.Draws()
    network, params, outputs = _network(config), {}, 3
    for name, chain in network.items():
        params[name], outputs = _parameters(config, draws, chain, outputs)
    params["classifier"] = layers.classifier_parameters(draws, outputs, config.classes)
    batch = layers.image_batch(draws, config.batch, config.image, 3, config.classes)

    def loss(params, drop, x, targets):
        for name, chain in network.items():
            with jax.named_scope(name):
                x = _chain(chain, params[name], x)
        return layers.classifier_loss(params["classifier"], x, targets, drop)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)


def _parameters(config: Config, draws: init.Draws, chain, inputs: int):
    """The parameters of a chain's parts and the number of its outputs."""
    params = {}
    for i, part in enumerate(chain):
        if isinstance(part, dict):
            branches, total = {}, 0
            for name, branch in part.items():
                branches[name], outputs = _parameters(config, draws, branch, inputs)
                total += outputs
            params[f"l{i}"], inputs = branches, total
        elif isinstance(part, tuple):
            height, width, filters = part[:3]
            outputs = max(1, filters * config.width // 64)
            params[f"l{i}"] = layers.normed_filters(draws, height, width, inputs, outputs)
            inputs = outputs
    return params, inputs


def _chain(chain, params, x):
    for i, part in enumerate(chain):
        with jax.named_scope(f"l{i}"):
            if part == "max_pool":
                x = layers.max_pool(x, 3, 2)
            elif part == "average_pool":
                x = layers.average_pool(x, 3)
            elif isinstance(part, dict):
                x = _branches(part, params[f"l{i}"], x)
            else:
                x = jax.nn.relu(layers.normed_convolution(params[f"l{i}"], x, *part[3:]))
    return x


def _branches(branches, params, x):
    outputs = []
    for name, chain in branches.items():
        with jax.named_scope(name):
            outputs.append(_chain(chain, params[name], x))
    return jnp.concatenate(outputs, axis=-1)
