# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNet (He et al., 2016) of bottleneck blocks, with batch normalization.

As in common implementations a stage's stride is in its 3x3 convolution.
Normalization is by the statistics of the batch; there are no running ones.
"""

from __future__ import annotations

import jax

from baechi import init
from baechi.models import layers, training
from baechi.models.presets.resnet import PRESETS as PRESETS
from baechi.models.presets.resnet import Config

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
