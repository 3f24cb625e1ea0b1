# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of max pooling as plain JAX.

JAX's `select_and_scatter_add` has no linalg form. Padding each window position's
share to the image's size and adding these would hold a copy of the image for every
position; here what belongs to one remainder by the strides is added at the size of
the result, and only the remainders are interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax


def max_pool_gradient(
    source,
    operand,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
):
    """The element of `operand` that each window selects gets its element of `source`.

    XLA's SelectAndScatter goes through a window's elements in order and stays at one while that
    is greater or equal: at the first maximum, or behind a NaN, of which no comparison holds. As
    in JAX on CPUs and GPUs, padding takes part as elements of -inf.
    """
    low = jnp.asarray(-jnp.inf, operand.dtype)
    padded = lax.pad(operand, low, [(before, after, 0) for before, after in padding])
    chosen = _selected(padded, source.shape, window, strides)

    # Element i of a dimension of the padded operand is i = stride * j + remainder. The window
    # at w reaches it by its position k = remainder + stride * shift with w = j - shift.
    rows = [-(-size // stride) for size, stride in zip(padded.shape, strides)]
    most = [(size - 1) // stride for size, stride in zip(window, strides)]
    around = [(m, r - n, 0) for m, r, n in zip(most, rows, source.shape)]
    shares = lax.pad(source, jnp.zeros((), source.dtype), around)
    chosen = lax.pad(chosen, jnp.asarray(-1, chosen.dtype), around)

    def of_remainder(remainder):
        total = jnp.zeros(rows, source.dtype)
        for position in np.ndindex(*window):
            shift = [(k - p) // s for k, p, s in zip(position, remainder, strides)]
            if any((k - p) % s for k, p, s in zip(position, remainder, strides)):
                continue
            first = [m - s for m, s in zip(most, shift)]
            end = [f + r for f, r in zip(first, rows)]
            number = np.ravel_multi_index(position, window)
            hit = lax.slice(chosen, first, end) == jnp.asarray(number, chosen.dtype)
            total = total + jnp.where(hit, lax.slice(shares, first, end), 0)
        return total

    whole = _interleaved(of_remainder, strides)
    first = [before for before, _ in padding]
    return lax.slice(whole, first, [f + n for f, n in zip(first, operand.shape)])


def _selected(padded, shape: Sequence[int], window: Sequence[int], strides: Sequence[int]):
    """The number of each window's position whose element is selected."""
    reach = [(n - 1) * stride + 1 for n, stride in zip(shape, strides)]
    value, *others = [
        lax.slice(padded, position, [k + r for k, r in zip(position, reach)], strides)
        for position in np.ndindex(*window)
    ]
    number = jnp.int8 if len(others) < 127 else jnp.int32
    chosen = jnp.zeros(shape, number)
    for k, other in enumerate(others, start=1):
        stays = value >= other
        value = jnp.where(stays, value, other)
        chosen = jnp.where(stays, chosen, jnp.asarray(k, number))
    return chosen


def _interleaved(of_remainder, strides: Sequence[int]):
    """Puts the parts of all remainders together, the last dimension's first."""

    def along(dimension: int, remainder: tuple[int, ...]):
        if dimension == len(strides):
            return of_remainder(remainder)
        parts = [along(dimension + 1, (*remainder, p)) for p in range(strides[dimension])]
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[dimension] *= len(parts)
        return jnp.stack(parts, axis=dimension + 1).reshape(shape)

    return along(0, ())
