# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that the convolutional models share. Images are NHWC, filters HWIO."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import training


def filters(draws: init.Draws, height: int, width: int, inputs: int, outputs: int):
    """Filters, uniform with He's variance, so that ReLU layers keep their scale."""
    bound = math.sqrt(6.0 / (height * width * inputs))
    return draws.uniform(height, width, inputs, outputs, low=-bound, high=bound)


def convolution(x, weight, stride: int = 1, padding: str = "SAME"):
    """SAME has half of the filter on each side also where there is a stride."""
    around = [(0, 0)] * 2 if padding == "VALID" else [(size // 2,) * 2 for size in weight.shape[:2]]
    return lax.conv_general_dilated(
        x, weight, (stride, stride), around, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def normed_filters(draws: init.Draws, height: int, width: int, inputs: int, outputs: int):
    """The parameters of normed_convolution."""
    return {
        "w": filters(draws, height, width, inputs, outputs),
        "gain": init.ones(outputs),
        "bias": init.zeros(outputs),
    }


def normed_convolution(params, x, stride: int = 1, padding: str = "SAME"):
    """A convolution and batch normalization by the statistics of the batch."""
    with jax.named_scope("convolution"):
        x = convolution(x, params["w"], stride, padding)
    with jax.named_scope("norm"):
        mean = jnp.mean(x, axis=(0, 1, 2))
        centred = x - mean
        variance = jnp.mean(centred * centred, axis=(0, 1, 2))
        return centred * (lax.rsqrt(variance + 1e-3) * params["gain"]) + params["bias"]


def max_pool(x, size: int, stride: int, around: int = 0):
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    padding = ((0, 0), (around, around), (around, around), (0, 0))
    with jax.named_scope("max_pool"):
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


def average_pool(x, size: int):
    """The mean of each window of stride 1; outside of the image are zeros that count."""
    window = (1, size, size, 1)
    with jax.named_scope("average_pool"):
        total = lax.reduce_window(x, 0.0, lax.add, window, (1, 1, 1, 1), "SAME")
        return total * (1.0 / (size * size))


def classifier_parameters(draws: init.Draws, inputs: int, classes: int):
    return {"w": draws.weight(inputs, classes), "b": init.zeros(classes)}


def classifier_loss(params, x, targets, drop):
    """Cross entropy of a linear classifier of the image's mean, which may go
    through dropout."""
    with jax.named_scope("classifier"):
        logits = drop(jnp.mean(x, axis=(1, 2))) @ params["w"] + params["b"]
    return training.cross_entropy(logits, targets)


def image_batch(draws: init.Draws, batch: int, image: int, channels: int, classes: int):
    return {
        "x": draws.uniform(batch, image, image, channels, low=-1.0, high=1.0),
        "targets": draws.integers(batch, high=classes),
    }


def counts(text: str) -> list[int]:
    """The numbers of "3-4-6-3"."""
    parts = text.split("-")
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"'{text}' is not a list of numbers such as 3-4-6-3")
    return [int(part) for part in parts]
