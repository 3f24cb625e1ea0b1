# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNet (He et al., 2016) of bottleneck blocks.

As in common implementations a stage's stride is in its 3x3 convolution. Batch
normalization keeps running statistics.
"""

from __future__ import annotations

import torch
from torch import nn

from baechi.models.presets.resnet import PRESETS as PRESETS
from baechi.models.presets.resnet import Config
from baechi.models.torch import Training, make_optimizer

EXPANSION = 4  # outputs of a block, in inner filters


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """A convolution with batch normalization."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Block(nn.Module):
    def __init__(self, inputs: int, inner: int, stride: int):
        super().__init__()
        outputs = EXPANSION * inner
        self.reduce = convolution(inputs, inner, 1)
        self.middle = convolution(inner, inner, 3, stride)
        self.expand = convolution(inner, outputs, 1)
        plain = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if plain else convolution(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.reduce(x).relu()
        y = self.middle(y).relu()
        return (self.expand(y) + self.shortcut(x)).relu()


class ResNet(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        if config.stem not in ("imagenet", "cifar"):
            raise ValueError(f"unknown stem '{config.stem}'; known: imagenet, cifar")
        large = config.stem == "imagenet"
        self.stem = convolution(3, config.width, 7 if large else 3, 2 if large else 1)
        self.pool = nn.MaxPool2d(3, 2, padding=1) if large else nn.Identity()
        stages, inputs = [], config.width
        for i, count in enumerate(map(int, config.blocks.split("-"))):
            inner, blocks = config.width * 2**i, []
            for j in range(count):
                blocks.append(Block(inputs, inner, 2 if i > 0 and j == 0 else 1))
                inputs = EXPANSION * inner
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.classifier = nn.Linear(inputs, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.stem(x).relu())
        return self.classifier(self.stages(x).mean((2, 3)))


def training(config: Config) -> Training:
    model = ResNet(config)
    x = torch.rand(config.batch, 3, config.image, config.image) * 2 - 1
    target = torch.randint(0, config.classes, (config.batch,))
    optimizer = make_optimizer(config.optimizer, model, config.learning_rate)
    return Training(model, nn.functional.cross_entropy, optimizer, (x, target))
