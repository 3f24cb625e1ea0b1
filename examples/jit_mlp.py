# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains an MLP on two host devices: .venv/bin/python examples/jit_mlp.py"""

import jax
import jax.numpy as jnp

import baechi


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] - y) ** 2).mean()


@baechi.jit(machine="host:2", donate_argnums=0)
def step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients), value


keys = jax.random.split(jax.random.key(0), 4)
x, y = jax.random.normal(keys[0], (256, 64)), jax.random.normal(keys[1], (256, 8))
params = {
    "w1": 0.1 * jax.random.normal(keys[2], (64, 512)),
    "b1": jnp.zeros(512),
    "w2": 0.1 * jax.random.normal(keys[3], (512, 8)),
}
for i in range(50):
    params, value = step(params, x, y)
    if i % 10 == 0:
        print(f"step {i:2}: loss {float(value):.4f}")
print(step.report())
