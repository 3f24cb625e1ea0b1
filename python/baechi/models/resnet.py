# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNet (He et al., 2016) of bottleneck blocks, with batch normalization.

As in common implementations a stage's stride is in its 3x3 convolution.
Normalization is by the statistics of the batch; there are no running ones.
"""

from __future__ import annotations

import dataclasses

import jax

from baechi import init
from baechi.models import layers, training


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

EXPANSION = 4  # outputs of a block, in inner filters


def training_step(config: Config):
    if config.stem not in ("imagenet", "cifar"):
        raise ValueError(f"unknown stem '{config.stem}'; known: imagenet, cifar")
    draws = init.Draws()
    params, outputs = _parameters(config, draws)
    params["classifier"] = layers.classifier_parameters(draws, outputs, config.classes)
    batch = layers.image_batch(draws, config.batch, config.image, 3, config.classes)

    def loss(params, drop, x, targets):
        with jax.named_scope("stem"):
            stride = 2 if config.stem == "imagenet" else 1
            x = jax.nn.relu(layers.normed_convolution(params["stem"], x, stride))
            if config.stem == "imagenet":
                x = layers.max_pool(x, 3, 2, around=1)
        for i, stage in enumerate(params["stages"]):
            for j, block in enumerate(stage):
                with jax.named_scope(f"s{i}/l{j}"):
                    x = _block(block, x, stride=2 if i > 0 and j == 0 else 1)
        return layers.classifier_loss(params["classifier"], x, targets, drop)

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer)


def _parameters(config: Config, draws: init.Draws):
    size = 7 if config.stem == "imagenet" else 3
    stem = layers.normed_filters(draws, size, size, 3, config.width)
    inputs, stages = config.width, []
    for i, blocks in enumerate(layers.counts(config.blocks)):
        inner = config.width * 2**i
        outputs, stage = EXPANSION * inner, []
        for _ in range(blocks):
            block = {
                "reduce": layers.normed_filters(draws, 1, 1, inputs, inner),
                "middle": layers.normed_filters(draws, 3, 3, inner, inner),
                "expand": layers.normed_filters(draws, 1, 1, inner, outputs),
            }
            if not stage:
                block["shortcut"] = layers.normed_filters(draws, 1, 1, inputs, outputs)
            stage.append(block)
            inputs = outputs
        stages.append(stage)
    return {"stem": stem, "stages": stages}, inputs


def _block(params, x, stride: int):
    shortcut = x
    if "shortcut" in params:
        with jax.named_scope("shortcut"):
            shortcut = layers.normed_convolution(params["shortcut"], x, stride)
    with jax.named_scope("reduce"):
        x = jax.nn.relu(layers.normed_convolution(params["reduce"], x))
    with jax.named_scope("middle"):
        x = jax.nn.relu(layers.normed_convolution(params["middle"], x, stride))
    with jax.named_scope("expand"):
        x = layers.normed_convolution(params["expand"], x)
    return jax.nn.relu(x + shortcut)
