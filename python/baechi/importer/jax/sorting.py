# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting and the largest elements as plain JAX, in XLA's order: NaNs are beyond
infinity, equal elements stay as they are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# More than so many largest elements are found by sorting.
_MOST_PASSES = 32


def top_k(operand, *, k, axis, is_stable=True):
    """Repeated maximum; the lowest index among equals. -0.0 is less than 0.0, and a
    NaN with a sign the least of all."""
    return _largest(operand, k, axis, downwards=True)


def approx_top_k(
    operand,
    *,
    k,
    reduction_dimension,
    is_max_k,
    recall_target,
    reduction_input_size_override,
    aggregate_to_topk,
):
    """What XLA finds on a CPU: all of them."""
    return _largest(operand, k, reduction_dimension, downwards=is_max_k)


def sort(*operands, dimension, num_keys, is_stable):
    """All operands in the order of the first `num_keys`."""
    operands = [jnp.moveaxis(x, dimension, -1) for x in operands]
    order = _sorted_places([_ordered(_canonical(x)) for x in operands[:num_keys]])
    return [jnp.moveaxis(_at(x, order), -1, dimension) for x in operands]


def _largest(operand, k, axis, downwards):
    operand = jnp.moveaxis(operand, axis, -1)
    size = operand.shape[-1]
    keys = _ordered(operand)
    keys = keys if downwards else ~keys
    if k > _MOST_PASSES:
        indices = _sorted_places([~keys])[..., :k]
    else:
        positions = jnp.arange(size, dtype=jnp.int32)
        free = jnp.ones(keys.shape, bool)
        least = jnp.asarray(jnp.iinfo(keys.dtype).min, keys.dtype)
        found = [jnp.zeros((*keys.shape[:-1], 0), jnp.int32)]
        for _ in range(k):
            largest = jnp.max(jnp.where(free, keys, least), axis=-1, keepdims=True)
            index = jnp.min(
                jnp.where(free & (keys == largest), positions, size), axis=-1, keepdims=True
            )
            free = free & (positions != index)
            found.append(index)
        indices = jnp.concatenate(found, axis=-1)
    values = _at(operand, indices)
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(indices, -1, axis)


def _canonical(x):
    """Zeros of either sign are equal in a sort, and NaNs are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    x = jnp.where(x == 0, jnp.zeros_like(x), x)
    return jnp.where(jnp.isnan(x), jnp.full_like(x, jnp.nan), x)


def _ordered(x):
    """Signed integers of the same order: of floats their bits, negative ones turned."""
    if x.dtype == bool:
        return x.astype(jnp.int32)
    signed = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    largest = jnp.asarray(jnp.iinfo(signed).max, signed)
    bits = lax.bitcast_convert_type(x, signed)
    if jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.where(bits < 0, bits ^ largest, bits)
    return bits ^ ~largest if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else bits


def _at(x, places):
    return jnp.take_along_axis(x, places, axis=-1, mode="promise_in_bounds")


def _sorted_places(keys):
    """Where the elements of the sorted lines are: a bitonic network (Batcher: Sorting
    networks and their applications, AFIPS 1968) over keys and places, which are all
    different, so that equal keys keep their order. A pass is elementwise work."""
    shape = keys[0].shape
    size = 1 << max(shape[-1] - 1, 0).bit_length()
    around = [(0, 0)] * (len(shape) - 1) + [(0, size - shape[-1])]
    # Beyond a line's end nothing is less: the largest key, at a later place.
    keys = [jnp.pad(key, around, constant_values=np.iinfo(np.dtype(key.dtype)).max) for key in keys]
    lanes = jnp.arange(size, dtype=jnp.int32)
    places = jnp.broadcast_to(lanes, keys[0].shape)
    runs, spans = [], []
    for run in (2 << i for i in range(size.bit_length() - 1)):
        for span in (run >> i for i in range(1, run.bit_length())):
            runs.append(run)
            spans.append(span)
    if not runs:
        return places[..., : shape[-1]]
    runs, spans = jnp.asarray(runs, jnp.int32), jnp.asarray(spans, jnp.int32)

    def one_pass(i, lines):
        partner = lanes ^ spans[i]
        others = [line.at[..., partner].get(mode="promise_in_bounds") for line in lines]
        less = jnp.zeros(lines[0].shape, bool)
        for mine, other in reversed(list(zip(lines, others, strict=True))):
            less = (other < mine) | ((other == mine) & less)
        wants_less = ((lanes & runs[i]) == 0) == (lanes < partner)
        swapped = less == wants_less
        return [jnp.where(swapped, other, mine) for mine, other in zip(lines, others, strict=True)]

    # Reports and refusals say what the loop is of.
    with jax.named_scope("sort"):
        found = lax.fori_loop(0, len(runs), one_pass, [*keys, places])
    return found[-1][..., : shape[-1]]
