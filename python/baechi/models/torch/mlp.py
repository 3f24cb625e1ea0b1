# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A multilayer perceptron that classifies, trained with Adam."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from baechi.models.torch import Training, make_optimizer


@dataclasses.dataclass(frozen=True)
class Config:
    inputs: int
    hidden: int
    layers: int  # hidden layers
    classes: int
    batch: int
    optimizer: str = "adam"
    learning_rate: float = 1e-3


PRESETS = {
    "tiny": Config(inputs=16, hidden=32, layers=2, classes=10, batch=8, learning_rate=1e-2),
    "small": Config(inputs=784, hidden=1024, layers=4, classes=10, batch=256, learning_rate=1e-4),
    "large": Config(
        inputs=1024, hidden=4096, layers=8, classes=1000, batch=512, learning_rate=1e-4
    ),
}


class Mlp(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        widths = [config.inputs] + [config.hidden] * config.layers
        self.hidden = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.head = nn.Linear(config.hidden, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            x = layer(x).relu()
        return self.head(x)


def training(config: Config) -> Training:
    model = Mlp(config)
    x = torch.rand(config.batch, config.inputs) * 2 - 1
    target = torch.randint(0, config.classes, (config.batch,))
    optimizer = make_optimizer(config.optimizer, model, config.learning_rate)
    return Training(model, nn.functional.cross_entropy, optimizer, (x, target))
