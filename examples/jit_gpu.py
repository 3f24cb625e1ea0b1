# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains an MLP on a GPU, where its batches and losses are: .venv/bin/python examples/jit_gpu.py"""

import jax
import jax.numpy as jnp
import numpy as np

import baechi


@baechi.jit(machine="cuda:1", donate_argnums=0)
def step(w, x, y):
    loss, g = jax.value_and_grad(lambda w: ((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2).mean())(w)
    return [p - 0.05 * q for p, q in zip(w, g, strict=True)], loss


try:
    gpu = jax.devices("cuda")[0]
except RuntimeError:
    raise SystemExit("JAX has no GPU here: install jax[cuda12] on a machine with one") from None
draw = np.random.default_rng(0).standard_normal
w = [0.1 * draw((64, 512)), 0.1 * draw((512, 8))]
x, y = jax.device_put((draw((256, 64)), draw((256, 8))), gpu)
for i in range(50):
    w, loss = step(w, x, y)
print(f"step {i}: loss {float(loss):.4f} on {loss.devices()}", step.report(), sep="\n")
