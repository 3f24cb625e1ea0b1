# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorisations of small matrices in plain JAX, with the conventions of LAPACK.

Algorithms: Golub and Van Loan, Matrix Computations, 4th ed.: 4.2.5 (Cholesky), 3.1
(substitution), 3.4.1 (LU with partial pivoting), 5.2.1 (Householder QR).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

# Columns are eliminated one after the other; beyond so many JAX's own are faster.
LARGEST = 64


def is_native(primitive: str, shape: tuple[int, ...], dtype: Any, params: dict[str, Any]) -> bool:
    """Whether a factorisation of such a matrix has code of its own."""
    small = len(shape) >= 2 and 0 < max(shape[-2:]) <= LARGEST and 0 not in shape
    if not small or dtype not in (jnp.float32, jnp.float64):
        return False
    if primitive == "qr":
        return not params.get("pivoting")
    return primitive in ("cholesky", "lu", "triangular_solve")


def cholesky(a):
    """The lower factor; all NaN where a pivot is not positive."""
    n = a.shape[-1]
    rows = jnp.arange(n)

    def column(j, state):
        factor, good = state
        row = lax.dynamic_index_in_dim(factor, j, -2, keepdims=False)
        rest = lax.dynamic_index_in_dim(a, j, -1, keepdims=False)
        rest = rest - (factor * row[..., None, :]).sum(-1)
        pivot = lax.dynamic_index_in_dim(rest, j, -1, keepdims=True)
        made = jnp.where(rows >= j, rest / jnp.sqrt(pivot), 0)
        factor = lax.dynamic_update_slice_in_dim(factor, made[..., None], j, -1)
        return factor, good & (pivot[..., 0] > 0)

    start = jnp.zeros_like(a), jnp.ones(a.shape[:-2], bool)
    factor, good = lax.fori_loop(0, n, column, start)
    return jnp.where(good[..., None, None], factor, jnp.nan)


def triangular_solve(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """x of op(a) x = b, or of x op(a) = b."""
    del conjugate_a  # real
    if not left_side:  # x op(a) = b is op(a)^T x^T = b^T
        transposed = triangular_solve(
            a,
            b.mT,
            left_side=True,
            lower=lower,
            transpose_a=not transpose_a,
            conjugate_a=False,
            unit_diagonal=unit_diagonal,
        )
        return transposed.mT
    n = a.shape[-1]
    if transpose_a:
        a, lower = a.mT, not lower

    def substitute(step, x):
        i = step if lower else n - 1 - step
        row = lax.dynamic_index_in_dim(a, i, -2, keepdims=False)
        known = jnp.arange(n) < i if lower else jnp.arange(n) > i
        right = lax.dynamic_index_in_dim(b, i, -2, keepdims=False)
        value = right - (jnp.where(known, row, 0)[..., None] * x).sum(-2)
        if not unit_diagonal:
            value = value / lax.dynamic_index_in_dim(row, i, -1, keepdims=True)
        return lax.dynamic_update_slice_in_dim(x, value[..., None, :], i, -2)

    return lax.fori_loop(0, n, substitute, jnp.zeros_like(b))


def lu(a):
    """L and U in one matrix, which rows were exchanged, and the order that this makes."""
    m, n = a.shape[-2:]
    rows, columns = jnp.arange(m, dtype=jnp.int32), jnp.arange(n)

    def at(values, mask):
        """Of rows the one that a mask has."""
        return jnp.where(mask, values, 0).sum(-1, dtype=values.dtype)

    def exchanged(values, here, there):
        one, other = at(values, here)[..., None], at(values, there)[..., None]
        return jnp.where(here, other, jnp.where(there, one, values))

    def eliminate(k, state):
        a, pivots, order = state
        column = lax.dynamic_index_in_dim(a, k, -1, keepdims=False)
        pivot = jnp.argmax(jnp.where(rows >= k, jnp.abs(column), -1), -1, keepdims=True)
        pivot = pivot.astype(jnp.int32)
        pivots = lax.dynamic_update_slice_in_dim(pivots, pivot, k, -1)
        here, there = rows == k, rows == pivot
        order = exchanged(order, here, there)
        a = exchanged(a.mT, here, there[..., None, :]).mT
        column = lax.dynamic_index_in_dim(a, k, -1, keepdims=False)
        row = lax.dynamic_index_in_dim(a, k, -2, keepdims=False)
        value = at(column, here)[..., None]
        factors = jnp.where(rows > k, column / jnp.where(value == 0, 1, value), 0)
        a = a - factors[..., None] * jnp.where(columns > k, row, 0)[..., None, :]
        below = (rows > k)[:, None] & (columns == k)
        return jnp.where(below, factors[..., None], a), pivots, order

    batch, steps = a.shape[:-2], min(m, n)
    pivots = jnp.zeros((*batch, steps), jnp.int32)
    order = jnp.broadcast_to(rows, (*batch, m))
    return lax.fori_loop(0, steps, eliminate, (a, pivots, order))


def qr(a, *, full_matrices, pivoting=False, use_magma=None):
    """Q and R by Householder's reflections; R's diagonal has LAPACK's signs."""
    m, n = a.shape[-2:]
    steps, width = min(m, n), m if full_matrices else min(m, n)
    rows = jnp.arange(m)

    def reflection(k, r):
        """v and tau of I - tau v v^T, which makes column k zero below the diagonal."""
        x = lax.dynamic_index_in_dim(r, k, -1, keepdims=False)
        alpha = lax.dynamic_index_in_dim(x, k, -1, keepdims=True)
        tail = jnp.where(rows > k, x, 0)
        squares = (tail * tail).sum(-1, keepdims=True)
        beta = -jnp.where(alpha < 0, -1, 1) * jnp.sqrt(alpha * alpha + squares)
        done = squares == 0
        tau = jnp.where(done, 0, (beta - alpha) / jnp.where(done, 1, beta))
        v = tail / jnp.where(done, 1, alpha - beta) + (rows == k)
        return v.astype(a.dtype), tau.astype(a.dtype)

    def apply(v, tau, to):
        return to - (tau * v)[..., None] * (v[..., None] * to).sum(-2, keepdims=True)

    def eliminate(k, state):
        r, vs, taus = state
        v, tau = reflection(k, r)
        vs = lax.dynamic_update_slice_in_dim(vs, v[..., None], k, -1)
        return apply(v, tau, r), vs, lax.dynamic_update_slice_in_dim(taus, tau, k, -1)

    batch = a.shape[:-2]
    start = a, jnp.zeros((*batch, m, steps), a.dtype), jnp.zeros((*batch, steps), a.dtype)
    r, vs, taus = lax.fori_loop(0, steps, eliminate, start)

    def multiply(step, q):
        k = steps - 1 - step
        v = lax.dynamic_index_in_dim(vs, k, -1, keepdims=False)
        return apply(v, lax.dynamic_index_in_dim(taus, k, -1, keepdims=True), q)

    q = jnp.broadcast_to(jnp.eye(m, width, dtype=a.dtype), (*batch, m, width))
    q = lax.fori_loop(0, steps, multiply, q)
    return q, jnp.triu(r)[..., :width, :]
