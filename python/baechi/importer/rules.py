# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering rules for JAX primitives whose StableHLO has no linalg form.

Each replacement is plain JAX. One that does not know the form at hand raises
UnknownForm: JAX's own rule is used then, and what that leaves is reported.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax
from jax._src import prng as random_internal  # where threefry's primitive is
from jax._src.interpreters import mlir as internal  # the table of JAX's own rules
from jax.interpreters import mlir

from baechi.importer import threefry
from baechi.importer.pooling import max_pool_gradient

# Gradients of look-ups in larger tables stay scatters, which become loops over the rows that are
# touched (scatter.py). Below, a product costs little, and consumers without loops can run it.
MOST_PRODUCT_ROWS = 1024


class UnknownForm(Exception):
    """A replacement does not know the form of the operation at hand."""


def _one_hot(indices, size: int, dtype):
    """[..., 1] indices to [..., size]; an index out of range gives zeros, as a
    scatter drops it."""
    return (indices == jnp.arange(size, dtype=indices.dtype)).astype(dtype)


def scatter_add(operand, indices, updates, *, dimension_numbers, **_):
    """The gradients of `table[indices]` and of `take_along_axis(x, indices, -1)`."""
    if not jnp.issubdtype(operand.dtype, jnp.floating):
        raise UnknownForm
    dims = dimension_numbers
    batch = indices.shape[:-1]
    rows = (
        indices.shape[-1] == 1
        and not dims.operand_batching_dims
        and tuple(dims.inserted_window_dims) == (0,)
        and tuple(dims.scatter_dims_to_operand_dims) == (0,)
        and tuple(dims.update_window_dims) == tuple(range(len(batch), updates.ndim))
        and updates.shape[len(batch) :] == operand.shape[1:]
    )
    if rows and operand.shape[0] > MOST_PRODUCT_ROWS:
        raise UnknownForm
    if rows:  # a matrix product: exact but for the order of the sums
        count = math.prod(batch)
        hot = _one_hot(indices.reshape(count, 1), operand.shape[0], operand.dtype)
        added = lax.dot_general(hot, updates.reshape(count, -1), (((0,), (0,)), ((), ())))
        return operand + added.reshape(operand.shape)

    last = operand.ndim - 1
    picked = (
        last >= 1
        and indices.shape[-1] == 1
        and tuple(dims.operand_batching_dims) == tuple(range(last))
        and tuple(dims.scatter_indices_batching_dims) == tuple(range(last))
        and tuple(dims.inserted_window_dims) == (last,)
        and tuple(dims.scatter_dims_to_operand_dims) == (last,)
        and not dims.update_window_dims
        and operand.shape[:last] == batch[:last]
    )
    if picked:
        hot = _one_hot(indices, operand.shape[last], operand.dtype)
        added = hot * updates[..., None]
        return operand + added.sum(axis=tuple(range(last, added.ndim - 1)))
    raise UnknownForm


def select_and_scatter_add(
    source, operand, *, select_prim, window_dimensions, window_strides, padding
):
    """The gradient of max pooling."""
    if select_prim is not lax.ge_p:
        raise UnknownForm
    return max_pool_gradient(source, operand, window_dimensions, window_strides, padding)


def top_k(operand, *, k, axis, **_):
    """Repeated maximum; the lowest index among equals, as in JAX."""
    if axis != operand.ndim - 1 or not jnp.issubdtype(operand.dtype, jnp.floating):
        raise UnknownForm
    size = operand.shape[axis]
    positions = jnp.arange(size, dtype=jnp.int32)
    free = jnp.ones(operand.shape, bool)
    values, indices = [], []
    for _ in range(k):
        value = jnp.max(jnp.where(free, operand, -jnp.inf), axis=-1)
        candidate = free & (operand == value[..., None])
        index = jnp.min(jnp.where(candidate, positions, size), axis=-1)
        free = free & (positions != index[..., None])
        values.append(value)
        indices.append(index)
    return jnp.stack(values, axis=-1), jnp.stack(indices, axis=-1)


_REPLACEMENTS = {
    lax.scatter_add_p: scatter_add,
    lax.select_and_scatter_add_p: select_and_scatter_add,
    lax.top_k_p: top_k,
}


def _rule(primitive, replacement):
    rules = internal._platform_specific_lowerings["cpu"], internal._lowerings
    known = next(table[primitive].rule for table in rules if primitive in table)
    lower = mlir.lower_fun(replacement, multiple_results=primitive.multiple_results)

    def rule(context, *operands, **params):
        try:
            return lower(context, *operands, **params)
        except UnknownForm:
            return known(context, *operands, **params)

    return rule


def lowering_parameters() -> mlir.LoweringParameters:
    """What makes JAX use the replacements when it lowers a step."""
    rules = [(primitive, _rule(primitive, f)) for primitive, f in _REPLACEMENTS.items()]
    rules.append((random_internal.threefry2x32_p, threefry.lowering))
    return mlir.LoweringParameters(override_lowering_rules=tuple(rules))
