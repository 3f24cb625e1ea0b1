# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step of a Transformer without biases and gains, whose kernels
docs/benchmarks-compiler.md counts."""

import jax
import jax.numpy as jnp

from baechi import init


def make(width=256, heads=4, layers=4, sequence=128, batch=8, vocabulary=1000, rate=0.1):
    draws = init.Draws()
    d = width
    params = {
        "embedding": draws.weight(vocabulary, d, fan_in=d),
        "blocks": [
            {
                "qkv": draws.weight(d, 3 * d),
                "out": draws.weight(d, d),
                "w1": draws.weight(d, 4 * d),
                "w2": draws.weight(4 * d, d),
            }
            for _ in range(layers)
        ],
        "head": draws.weight(d, vocabulary),
    }
    tokens = draws.integers(batch, sequence, high=vocabulary)
    targets = draws.integers(batch, sequence, high=vocabulary)

    def norm(x):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5)

    def split(x):
        return x.reshape(batch, sequence, heads, d // heads).transpose(0, 2, 1, 3)

    def loss(params, tokens, targets):
        x = params["embedding"][tokens]
        mask = jnp.tril(jnp.ones((sequence, sequence)))
        for block in params["blocks"]:
            q, k, v = jnp.split(norm(x) @ block["qkv"], 3, -1)
            scores = jnp.einsum("bhsd,bhtd->bhst", split(q), split(k)) / jnp.sqrt(d // heads)
            weights = jax.nn.softmax(jnp.where(mask > 0, scores, -1e9), -1)
            mixed = jnp.einsum("bhst,bhtd->bhsd", weights, split(v))
            x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, sequence, d) @ block["out"]
            x = x + jax.nn.gelu(norm(x) @ block["w1"]) @ block["w2"]
        logits = norm(x) @ params["head"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1))

    def step(params, tokens, targets):
        value, grads = jax.value_and_grad(loss)(params, tokens, targets)
        return {"loss": value, "params": jax.tree.map(lambda p, g: p - rate * g, params, grads)}

    return step, (params, tokens, targets), (0,)
