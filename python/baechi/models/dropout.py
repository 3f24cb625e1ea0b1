# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout (Srivastava et al., 2014) with the random keys of JAX.

A model with a rate has one more argument, `key`: every step splits it, draws
its masks from one half and returns the other as its next value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from baechi import init

KEY_SEED = 2020
KEYS = 64  # derived at a time


@dataclasses.dataclass
class Dropout:
    """Zeroes elements with probability `rate` and scales the others, so that
    the expectation stays. Each draw is from a key of its own, split off `key`
    (threefry, uint32[2]). Without a rate nothing is drawn."""

    rate: float = 0.0
    key: jax.Array | None = None
    keys: list[jax.Array] = dataclasses.field(default_factory=list)

    def __call__(self, x):
        if self.rate == 0:
            return x
        with jax.named_scope("dropout"):
            return self._apply(self._draw(x.shape), x)

    def steps(self, count: int, shape: tuple[int, ...]) -> list[Callable]:
        """A dropout for each of `count` time steps of a layer whose input has
        this shape: one draw for all, so that the program stays small."""
        if self.rate == 0:
            return [lambda x: x] * count
        with jax.named_scope("dropout"):
            masks = lax.split(self._draw((count, *shape)), [1] * count, axis=0)
            masks = [lax.squeeze(mask, [0]) for mask in masks]

        def of_step(mask):
            def drop(x):
                with jax.named_scope("dropout"):
                    return self._apply(mask, x)

            return drop

        return [of_step(mask) for mask in masks]

    def _draw(self, shape: tuple[int, ...]):
        if not self.keys:
            with jax.named_scope("keys"):
                split = jax.random.split(self.key, KEYS)
                self.key, *self.keys = (split[i] for i in range(KEYS))
        return jax.random.bernoulli(self.keys.pop(0), 1 - self.rate, shape)

    def _apply(self, kept, x):
        return jnp.where(kept, x * (1 / (1 - self.rate)), 0.0)


def initial_key() -> init.Init:
    """The first step's key; any bits are one."""
    return init.RandInt((2,), "uint32", 0, 1 << 31, KEY_SEED)


def check(rate: float) -> None:
    """Raises ValueError unless `rate` is a share that leaves something."""
    if not 0 <= rate < 1:
        raise ValueError(f"dropout={rate}: expected 0 or more and less than 1")
