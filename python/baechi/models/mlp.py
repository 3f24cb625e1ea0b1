# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A multilayer perceptron that classifies, trained with Adam.

`paper` is the ReLU network of three layers of Srivastava et al., 2014, table 2.
"""

from __future__ import annotations

import dataclasses

import jax

from baechi import init
from baechi.models import training


@dataclasses.dataclass(frozen=True)
class Config:
    inputs: int
    hidden: int
    layers: int  # hidden layers
    classes: int
    batch: int
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    dropout: float = 0.0  # of every hidden layer's outputs


PRESETS = {
    "tiny": Config(inputs=16, hidden=32, layers=2, classes=10, batch=8, learning_rate=1e-2),
    "small": Config(inputs=784, hidden=1024, layers=4, classes=10, batch=256, learning_rate=1e-4),
    "paper": Config(inputs=784, hidden=2048, layers=3, classes=10, batch=128, dropout=0.5),
    "large": Config(
        inputs=1024, hidden=4096, layers=8, classes=1000, batch=512, learning_rate=1e-4
    ),
}


def training_step(config: Config):
    draws = init.Draws()
    widths = [config.inputs] + [config.hidden] * config.layers + [config.classes]
    params = [
        {"w": draws.weight(rows, columns), "b": init.zeros(columns)}
        for rows, columns in zip(widths, widths[1:])
    ]
    batch = {
        "x": draws.uniform(config.batch, config.inputs, low=-1.0, high=1.0),
        "targets": draws.integers(config.batch, high=config.classes),
    }

    def loss(params, drop, x, targets):
        for i, layer in enumerate(params):
            with jax.named_scope(f"l{i}"):
                x = x @ layer["w"] + layer["b"]
                if i + 1 < len(params):
                    x = drop(jax.nn.relu(x))
        return training.cross_entropy(x, targets)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer, config.dropout)
