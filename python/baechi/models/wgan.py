# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Wasserstein GAN with gradient penalty (Gulrajani et al., 2017): a generator and a
critic of images, both of convolutions. The penalty is on a gradient, whose gradient a step
needs. Both are trained in one step, the generator against the critic as it was before."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init
from baechi.models import layers, training


@dataclasses.dataclass(frozen=True)
class Config:
    image: int  # height and width, a multiple of 4
    channels: int  # of the image
    width: int  # filters of the critic's first layer
    noise: int  # numbers that an image is made of
    batch: int
    penalty: float = 10.0  # the weight of the gradient's
    optimizer: str = "adam"
    learning_rate: float = 1e-4


PRESETS = {
    "tiny": Config(image=8, channels=1, width=4, noise=4, batch=2),
    "small": Config(image=32, channels=3, width=32, noise=64, batch=16),
}


def training_step(config: Config):
    if config.image % 4:
        raise ValueError(f"image={config.image} is not a multiple of 4")
    draws = init.Draws()
    image = (config.batch, config.image, config.image, config.channels)
    params = {"critic": _critic_parameters(config, draws), "generator": _generator(config, draws)}
    batch = {
        "x": draws.uniform(*image, low=-1.0, high=1.0),
        "noise": draws.uniform(config.batch, config.noise, low=-1.0, high=1.0),
        "mix": draws.uniform(config.batch, 1, 1, 1, low=0.0, high=1.0),
    }

    def loss(params, drop, x, noise, mix):
        with jax.named_scope("generator"):
            made = generate(config, params["generator"], noise)
        against = lax.stop_gradient(params["critic"])
        with jax.named_scope("critic"):
            still = lax.stop_gradient(made)
            value = jnp.mean(critic(params["critic"], still) - critic(params["critic"], x))
            between = mix * x + (1 - mix) * still
            slope = jax.grad(lambda image: jnp.sum(critic(params["critic"], image)))(between)
            norm = jnp.sqrt(jnp.sum(slope * slope, axis=(1, 2, 3)) + 1e-12)
            value = value + config.penalty * jnp.mean((norm - 1) ** 2)
        with jax.named_scope("judged"):
            return value - jnp.mean(critic(against, made))

    optimizer = training.make_optimizer(config.optimizer, config.learning_rate)
    return training.make_step(loss, params, batch, optimizer)


def _critic_parameters(config: Config, draws: init.Draws):
    widths = [config.channels, config.width, 2 * config.width, 4 * config.width]
    return {
        "layers": [
            layers.filters(draws, 3, 3, inputs, outputs)
            for inputs, outputs in zip(widths, widths[1:])
        ],
        "score": draws.weight(widths[-1], 1),
    }


def critic(params, x):
    """A number for each image."""
    for i, weight in enumerate(params["layers"]):
        with jax.named_scope(f"l{i}"):
            x = jax.nn.leaky_relu(layers.convolution(x, weight, stride=1 if i == 0 else 2), 0.2)
    return (jnp.mean(x, axis=(1, 2)) @ params["score"])[:, 0]


def _generator(config: Config, draws: init.Draws):
    widths = [4 * config.width, 2 * config.width, config.width, config.channels]
    first = (config.image // 4) ** 2 * widths[0]
    return {
        "first": draws.weight(config.noise, first),
        "layers": [
            layers.filters(draws, 3, 3, inputs, outputs)
            for inputs, outputs in zip(widths, widths[1:])
        ],
    }


def generate(config: Config, params, noise):
    """An image for each row of noise."""
    side = config.image // 4
    x = jax.nn.relu(noise @ params["first"]).reshape(config.batch, side, side, -1)
    for i, weight in enumerate(params["layers"]):
        with jax.named_scope(f"l{i}"):
            last = i + 1 == len(params["layers"])
            x = layers.convolution(x if last else _doubled(x), weight)
            x = jnp.tanh(x) if last else jax.nn.relu(x)
    return x


def _doubled(x):
    """Twice as high and wide: each place four times."""
    n, h, w, c = x.shape
    return jnp.broadcast_to(x[:, :, None, :, None], (n, h, 2, w, 2, c)).reshape(n, 2 * h, 2 * w, c)
