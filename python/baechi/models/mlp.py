# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A multilayer perceptron that classifies, trained with Adam.

`paper` is the ReLU network of three layers of Srivastava et al., 2014, table 2.
"""

from __future__ import annotations

import jax

from baechi import init
from baechi.models import training
from baechi.models.presets.mlp import PRESETS as PRESETS
from baechi.models.presets.mlp import Config


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
