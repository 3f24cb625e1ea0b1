# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, products and extremes, without a window over all that came before.

JAX lowers them to such windows, whose work grows with the square of the length, and leaves it to
XLA to find another way. Here they are combined in steps of 1, 2, 4, ... (Hillis and Steele, "Data
parallel algorithms", 1986), as those of PyTorch and ONNX are.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

# Windows of so much are one kernel, and quick.
_WINDOW = 128


def is_long(x: jax.Array, axis: int) -> bool:
    return x.shape[axis] > _WINDOW and not jnp.issubdtype(x.dtype, jnp.complexfloating)


def running(
    combine: Callable[[jax.Array, jax.Array], jax.Array],
    neutral: float,
    x: jax.Array,
    *,
    axis: int,
    reverse: bool,
) -> jax.Array:
    """The combination of all elements along `axis` up to each one, with `reverse` from each one
    on.

    neutral: what combines to the other; infinite: the type's extreme. Numbers of 16 bits are
    combined in 32, and rounded once.
    """
    size, dtype = x.shape[axis], x.dtype
    if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4:
        x = x.astype(jnp.float32)
    if jnp.issubdtype(x.dtype, jnp.integer) and neutral in (float("inf"), float("-inf")):
        limits = jnp.iinfo(x.dtype)
        neutral = limits.max if neutral > 0 else limits.min
    shift = 1
    while shift < size:
        first = shift if reverse else 0
        kept = lax.slice_in_dim(x, first, first + size - shift, axis=axis)
        around = [(0, 0, 0)] * x.ndim
        around[axis] = (0, shift, 0) if reverse else (shift, 0, 0)
        x = combine(x, lax.pad(kept, jnp.asarray(neutral, x.dtype), around))
        shift *= 2
    return x.astype(dtype)
