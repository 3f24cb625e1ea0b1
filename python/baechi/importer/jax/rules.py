# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering rules for JAX primitives whose StableHLO has no linalg form.

Each replacement is plain JAX. One that does not know the form at hand raises
UnknownForm, and none is asked that does not name all parameters (a later JAX has more):
JAX's own rule is used then, and what that leaves is reported.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax._src.interpreters import mlir as internal  # the table of JAX's own rules
from jax._src.lax.ann import approx_top_k_p
from jax._src.pjit import sharding_constraint_p
from jax.interpreters import mlir

try:
    from jax._src.random.threefry2x32 import threefry2x32_p  # no export has it
except ImportError:  # before JAX 0.10
    from jax._src.prng import threefry2x32_p

from baechi.importer.jax import cumulative, factorisations, sorting, threefry
from baechi.importer.jax.pooling import max_pool_gradient

# Of so many elements that are picked from a line the gradient compares each with all of the
# line; of more it is a scatter (scatter.py).
_MOST_PICKED = 8


class UnknownForm(Exception):
    """A replacement does not know the form of the operation at hand."""


def scatter_add(
    operand,
    indices,
    updates,
    *,
    dimension_numbers,
    mode,
    indices_are_sorted,
    unique_indices,
    update_jaxpr,
    update_consts,
):
    """The gradient of `take_along_axis(x, indices, -1)` (a loss's look-up of its targets)
    as elementwise work, which is fused with what is around it."""
    if not _is_picked(operand, indices, dimension_numbers):
        raise UnknownForm
    last = operand.ndim - 1
    size, count = operand.shape[last], math.prod(indices.shape[last:-1])
    if count > _MOST_PICKED:
        raise UnknownForm
    if mode == lax.GatherScatterMode.CLIP:
        indices = jnp.clip(indices, 0, size - 1)
    lines = operand.shape[:last]
    indices, updates = indices.reshape(*lines, count), updates.reshape(*lines, count)
    positions = jnp.arange(size, dtype=indices.dtype)
    for k in range(count):  # an index out of range is nowhere, as a scatter drops it
        hit = indices[..., k : k + 1] == positions
        operand = operand + jnp.where(hit, updates[..., k : k + 1], jnp.zeros((), updates.dtype))
    return operand


def _is_picked(operand, indices, dims) -> bool:
    last = operand.ndim - 1
    batch = indices.shape[:-1]
    return (
        last >= 1
        and indices.shape[-1] == 1
        and tuple(dims.operand_batching_dims) == tuple(range(last))
        and tuple(dims.scatter_indices_batching_dims) == tuple(range(last))
        and tuple(dims.inserted_window_dims) == (last,)
        and tuple(dims.scatter_dims_to_operand_dims) == (last,)
        and not dims.update_window_dims
        and operand.shape[:last] == batch[:last]
    )


def rows_as_product(
    operand,
    indices,
    updates,
    *,
    dimension_numbers,
    mode,
    indices_are_sorted,
    unique_indices,
    update_jaxpr,
    update_consts,
):
    """The gradient of `table[rows]` as a product with a one-hot matrix, for compilers
    without loops. An infinite update reaches other rows as NaN."""
    dims = dimension_numbers
    batch = indices.shape[:-1]
    rows = (
        jnp.issubdtype(operand.dtype, jnp.floating)
        and indices.shape[-1] == 1
        and not dims.operand_batching_dims
        and tuple(dims.inserted_window_dims) == (0,)
        and tuple(dims.scatter_dims_to_operand_dims) == (0,)
        and tuple(dims.update_window_dims) == tuple(range(len(batch), updates.ndim))
        and updates.shape[len(batch) :] == operand.shape[1:]
    )
    if not rows:
        return scatter_add(
            operand,
            indices,
            updates,
            dimension_numbers=dims,
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            update_jaxpr=update_jaxpr,
            update_consts=update_consts,
        )
    if mode == lax.GatherScatterMode.CLIP:
        indices = jnp.clip(indices, 0, operand.shape[0] - 1)
    count = math.prod(batch)
    positions = jnp.arange(operand.shape[0], dtype=indices.dtype)
    hot = (indices.reshape(count, 1) == positions).astype(operand.dtype)
    added = lax.dot_general(hot, updates.reshape(count, -1), (((0,), (0,)), ((), ())))
    return operand + added.reshape(operand.shape)


def dynamic_slice(operand, *starts, slice_sizes):
    return lax.dynamic_slice_p.bind(operand, *_signed(starts), slice_sizes=slice_sizes)


def dynamic_update_slice(operand, update, *starts):
    return lax.dynamic_update_slice_p.bind(operand, update, *_signed(starts))


def _signed(starts):
    """Of 64 bits: what has the highest one is beyond the end, and no negative number."""
    if not starts or starts[0].dtype != jnp.uint64:
        raise UnknownForm
    most = jnp.uint64(jnp.iinfo(jnp.int64).max)
    return [lax.min(start, most).astype(jnp.int64) for start in starts]


def select_and_scatter_add(
    source, operand, *, select_prim, window_dimensions, window_strides, padding
):
    """The gradient of max pooling, and of the pooling of least elements."""
    if select_prim not in (lax.ge_p, lax.le_p):
        raise UnknownForm
    operand = operand if select_prim is lax.ge_p else -operand
    return max_pool_gradient(source, operand, window_dimensions, window_strides, padding)


def sharding_constraint(operand, *, sharding, layout, context_mesh, unconstrained_dims):
    """Of one device, as library code has it: the array as it is."""
    if layout is not None or len(sharding.device_set) != 1:
        raise UnknownForm
    return operand


def _native(name, replacement):
    """A factorisation of small matrices; of others it is JAX's own."""

    @functools.wraps(replacement)  # with its parameters
    def rule(matrix, *others, **params):
        if not factorisations.is_native(name, matrix.shape, matrix.dtype, params):
            raise UnknownForm
        return replacement(matrix, *others, **params)

    return rule


def _running(combine, neutral):
    """Along many elements; along few JAX's own windows are one kernel."""

    def rule(x, *, axis, reverse):
        if not cumulative.is_long(x, axis):
            raise UnknownForm
        return cumulative.running(combine, neutral, x, axis=axis, reverse=reverse)

    return rule


_REPLACEMENTS = {
    lax.cumlogsumexp_p: _running(jnp.logaddexp, -math.inf),
    lax.cummax_p: _running(lax.max, -math.inf),
    lax.cummin_p: _running(lax.min, math.inf),
    lax.cumprod_p: _running(lax.mul, 1),
    lax.cumsum_p: _running(lax.add, 0),
    lax.dynamic_slice_p: dynamic_slice,
    lax.dynamic_update_slice_p: dynamic_update_slice,
    lax.linalg.cholesky_p: _native("cholesky", factorisations.cholesky),
    lax.linalg.lu_p: _native("lu", factorisations.lu),
    lax.linalg.qr_p: _native("qr", factorisations.qr),
    lax.linalg.triangular_solve_p: _native("triangular_solve", factorisations.triangular_solve),
    lax.scatter_add_p: scatter_add,
    lax.select_and_scatter_add_p: select_and_scatter_add,
    lax.sort_p: sorting.sort,
    lax.top_k_p: sorting.top_k,
    sharding_constraint_p: sharding_constraint,
    approx_top_k_p: sorting.approx_top_k,
}


def _rule(primitive, replacement):
    rules = internal._platform_specific_lowerings["cpu"], internal._lowerings
    known = next(table[primitive].rule for table in rules if primitive in table)
    lower = mlir.lower_fun(replacement, multiple_results=primitive.multiple_results)

    def rule(context, *operands, **params):
        if not _names_all(replacement, params):
            return known(context, *operands, **params)
        try:
            return lower(context, *operands, **params)
        except UnknownForm:
            return known(context, *operands, **params)

    return rule


def _names_all(replacement: Callable[..., Any], params: Collection[str]) -> bool:
    named = inspect.signature(replacement).parameters
    return all(name in named for name in params)


def lowering_parameters(loops: bool = True) -> mlir.LoweringParameters:
    """What makes JAX use the replacements when it lowers a step; without `loops`, products
    in place of the loops of look-ups' gradients."""
    replacements = dict(_REPLACEMENTS)
    if not loops:
        replacements[lax.scatter_add_p] = rows_as_product
    rules = [(primitive, _rule(primitive, f)) for primitive, f in replacements.items()]
    rules.append((threefry2x32_p, threefry.lowering))
    return mlir.LoweringParameters(override_lowering_rules=tuple(rules))
