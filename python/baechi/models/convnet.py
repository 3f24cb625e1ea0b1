# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plain stack of 3x3 convolutions with ReLU that classifies images."""

from __future__ import annotations

import dataclasses

import jax

from baechi import init
from baechi.models import layers, training


@dataclasses.dataclass(frozen=True)
class Config:
    image: int  # height and width
    channels: int  # of the image
    filters: int  # of every layer
    layers: int
    classes: int
    batch: int
    optimizer: str = "sgd"
    learning_rate: float = 0.05


PRESETS = {
    "tiny": Config(image=6, channels=3, filters=4, layers=2, classes=5, batch=2),
    # The layers that most of Inception-V3's time goes to.
    "small": Config(image=35, channels=64, filters=64, layers=4, classes=10, batch=8),
}


def training_step(config: Config):
    draws = init.Draws()
    widths = [config.channels] + [config.filters] * config.layers
    params = {
        "layers": [
            layers.filters(draws, 3, 3, inputs, outputs)
            for inputs, outputs in zip(widths, widths[1:])
        ],
        "classifier": layers.classifier_parameters(draws, widths[-1], config.classes),
    }
    batch = layers.image_batch(draws, config.batch, config.image, config.channels, config.classes)

    def loss(params, drop, x, targets):
        for i, weight in enumerate(params["layers"]):
            with jax.named_scope(f"l{i}"):
                x = jax.nn.relu(layers.convolution(x, weight))
        return layers.classifier_loss(params["classifier"], x, targets, drop)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer)
