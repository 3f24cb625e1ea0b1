# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNets: the published sizes and smaller ones."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    image: int  # height and width, of three channels
    stem: str  # "imagenet": 7x7 of stride 2 and a pool of stride 2; "cifar": 3x3
    blocks: str  # of each stage
    width: int  # filters of the stem and of the first stage's inner convolutions
    classes: int
    batch: int
    optimizer: str = "sgd"
    learning_rate: float = 0.05


PRESETS = {
    "tiny": Config(
        image=15, stem="imagenet", blocks="1-1", width=4, classes=5, batch=2, learning_rate=0.01,
    ),
    "small": Config(
        image=112, stem="imagenet", blocks="2-2-2-2", width=64, classes=100, batch=4,
        learning_rate=0.01,
    ),
    # ResNet-50 on ImageNet.
    "paper": Config(
        image=224, stem="imagenet", blocks="3-4-6-3", width=64, classes=1000, batch=32
    ),
    # ResNet-152 of twice the batch.
    "large": Config(
        image=224, stem="imagenet", blocks="3-8-36-3", width=64, classes=1000, batch=64
    ),
}  # fmt: skip
