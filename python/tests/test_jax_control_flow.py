# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches in loops, whose results are tensors that go on living beside them."""

import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

pytestmark = needs.tool("baechi-run")
jnp, lax = jax.numpy, jax.lax

W = jnp.array([[0.5, 0.2], [-0.3, 0.7]])
H = jnp.array([[1.0, -2.0], [0.5, 0.3]])
XS = jnp.arange(16.0).reshape(4, 2, 2) * jnp.array([0.1, -0.1, 0.2, -0.3])[:, None, None]


def branch_yields_an_operand(w, h, xs):
    def body(x):
        kept = lax.cond(x.sum() > 0, lambda: x, lambda: jnp.zeros((2, 2)))
        return kept + x @ w

    return lax.map(body, xs)


def branch_yields_what_is_read_later(w, h, xs):
    def body(x):
        kept = lax.cond(x.sum() > 0, lambda: x, lambda: h)
        return kept + x @ w + 2 * x - h

    return lax.map(body, xs)


def one_of_many(w, h, xs):
    def body(h, numbered):
        i, x = numbered
        kept = lax.switch(i % 4, [lambda: x, lambda: h, lambda: w, lambda: x @ h])
        return kept + h @ w, (kept, h)

    return lax.scan(body, h, (jnp.arange(4), xs))


def branches_in_branches(w, h, xs):
    def body(h, x):
        inner = lambda: lax.cond(x[0, 1] < h[0, 1], lambda: h, lambda: x)  # noqa: E731
        kept = lax.cond(x[0, 0] > -1, inner, lambda: w)
        return kept @ w + kept, h + kept

    return lax.scan(body, h, xs, reverse=True)


def two_results_of_one_branch(w, h, xs):
    def body(carry, x):
        a, b = lax.cond(x.sum() > 0, lambda: (x, x), lambda: (carry[1], carry[0]))
        return (b + a @ w, a), (a, b)

    return lax.scan(body, (h, w), xs)


def branch_in_a_while(w, h, xs):
    def body(state):
        i, h = state
        kept = lax.cond(i % 2 == 0, lambda: h, lambda: jnp.ones((2, 2)))
        return i + 1, kept + 0.1 * h @ w

    return lax.while_loop(lambda s: (s[0] < 5) & (s[1].sum() < 100), body, (0, h))


def values_that_change_places(w, h, xs):
    def body(carry, x):
        a, b = lax.cond(x.sum() > 0, lambda: carry, lambda: carry[::-1])
        return (b, a + x @ b), (a, b)

    return lax.scan(body, (h, w), xs, reverse=True)


def rows_of_a_table(w, h, xs):
    def body(table, numbered):
        i, x = numbered
        new = lax.cond(x.sum() > 0, lambda: table.at[i].set(x @ w), lambda: table)
        return new, new[0] @ w + table[i]

    return lax.scan(body, xs, (jnp.arange(4), xs))


def while_in_a_branch(w, h, xs):
    def grown(x):
        return lax.while_loop(lambda v: jnp.abs(v).sum() < 4, lambda v: v * 1.5 + 0.1, x)

    return lax.map(lambda x: lax.cond(x.sum() > 0, grown, lambda x: x, x) + x @ w, xs)


def gradient_of_rematerialized_cells(w, h, xs):
    def loss(w, h):
        def cell(h, t):
            return lax.cond(t % 2 == 0, lambda v: v @ w, lambda v: v, h @ w), None

        return lax.scan(jax.checkpoint(cell), h, jnp.arange(4))[0].sum()

    return jax.grad(loss, argnums=(0, 1))(w, h)


PROGRAMS = (
    branch_yields_an_operand,
    branch_yields_what_is_read_later,
    one_of_many,
    branches_in_branches,
    two_results_of_one_branch,
    branch_in_a_while,
    values_that_change_places,
    rows_of_a_table,
    while_in_a_branch,
    gradient_of_rematerialized_cells,
)


@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_results_of_branches_are_not_written_over(machine):
    def all_of_them(w, h, xs):
        return [program(w, h, xs) for program in PROGRAMS]

    step = jit(all_of_them, machine=machine)
    assert_close(step(W, H, XS), jax.jit(all_of_them)(W, H, XS))
