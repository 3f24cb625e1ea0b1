# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A multilayer perceptron that classifies, trained with Adam."""

from __future__ import annotations

import torch
from torch import nn

from baechi.models.presets.mlp import PRESETS as PRESETS
from baechi.models.presets.mlp import Config
from baechi.models.torch import Training, make_optimizer


class Mlp(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        widths = [config.inputs] + [config.hidden] * config.layers
        self.hidden = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.drop = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.hidden, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            x = self.drop(layer(x).relu())
        return self.head(x)


def training(config: Config) -> Training:
    model = Mlp(config)
    x = torch.rand(config.batch, config.inputs) * 2 - 1
    target = torch.randint(0, config.classes, (config.batch,))
    optimizer = make_optimizer(config.optimizer, model, config.learning_rate)
    return Training(model, nn.functional.cross_entropy, optimizer, (x, target))
