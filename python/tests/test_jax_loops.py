# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices in loops and branches, large enough to be packed."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from jax_support import jit  # noqa: E402

pytestmark = needs.tool("baechi-run")
jnp, lax = jax.numpy, jax.lax

BATCH, HIDDEN, LENGTH = 9, 21, 5


def values(*shape, seed=0):
    numbers = np.random.default_rng(seed + sum(shape)).standard_normal(shape)
    return jnp.asarray(numbers, jnp.float32) / np.sqrt(shape[-1])


WEIGHTS = {
    "in": values(HIDDEN, 4 * HIDDEN, seed=1),
    "own": values(HIDDEN, 4 * HIDDEN, seed=2),
    "square": values(HIDDEN, HIDDEN, seed=3),
    "bias": values(4 * HIDDEN, seed=4),
}
XS = values(LENGTH, BATCH, HIDDEN)
H = values(BATCH, HIDDEN, seed=5)


def lstm_cell(w, carry, x):
    h, c = carry
    i, f, g, o = jnp.split(x @ w["in"] + h @ w["own"] + w["bias"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def gru_cell(w, h, x):
    r, z = jnp.split(jax.nn.sigmoid((x @ w["in"] + h @ w["own"])[:, : 2 * HIDDEN]), 2, axis=-1)
    n = jnp.tanh(x @ w["square"] + (r * h) @ w["square"].T)
    h = (1 - z) * n + z * h
    return h, h


def rnn_cell(w, h, x):
    h = jnp.tanh(x @ w["square"] + h @ w["square"])
    return h, h.sum()


def lstm(w, h, xs):
    return lax.scan(lambda c, x: lstm_cell(w, c, x), (h, h), xs)


def lstm_gradient(w, h, xs):
    return jax.grad(lambda w, xs: (lstm(w, h, xs)[1] ** 2).mean(), argnums=(0, 1))(w, xs)


def gru_gradient(w, h, xs):
    def loss(w, h):
        return (lax.scan(lambda c, x: gru_cell(w, c, x), h, xs)[1] ** 2).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(w, h)


def rnn_gradient_in_reverse(w, h, xs):
    def loss(w):
        last, sums = lax.scan(lambda c, x: rnn_cell(w, c, x), h, xs, reverse=True)
        return (last * last).sum() + (sums * sums).mean()

    return jax.value_and_grad(loss)(w)


def rematerialized_gradient(w, h, xs):
    def loss(w):
        cell = jax.checkpoint(lambda c, x: lstm_cell(w, c, x))
        return (lax.scan(cell, (h, h), xs)[1] ** 2).mean()

    return jax.grad(loss)(w)


def as_many_trips_as_the_data_say(w, h, xs):
    def body(state):
        trips, h = state
        return trips + 1, 1.5 * h @ w["square"] + h

    return lax.while_loop(lambda s: jnp.abs(s[1]).max() < 30, body, (0, h))


def loops_in_loops(w, h, xs):
    def outer(h, x):
        def inner(h, scale):
            h = jnp.tanh(h @ w["square"] + scale * x)
            return h, h[0]

        return lax.scan(inner, h, jnp.arange(3.0))

    return lax.scan(outer, h, xs)


def branches(w, h, xs):
    def body(h, x):
        h = lax.cond(x.sum() > 0, lambda: x @ w["square"], lambda: h @ w["square"].T + x)
        return h, lax.switch(
            (h.sum() > 0).astype(int), [lambda: h, lambda: jnp.tanh(h @ w["square"])]
        )

    return lax.scan(body, h, xs)


def carried_factors(w, h, xs):
    def body(i, pair):
        a, b = pair
        return b, jnp.tanh(a @ b)

    return lax.fori_loop(0, 4, body, (w["square"], w["square"].T))


def squares(w, h, xs):
    return lax.fori_loop(0, 5, lambda i, a: jnp.tanh(a @ a), w["square"])


def sums_of_products(w, h, xs):
    def body(total, x):
        return total + x.T @ (x @ w["square"]), None

    return lax.scan(body, jnp.ones((HIDDEN, HIDDEN)), xs)[0]


def batches(w, h, xs):
    def body(state, scale):
        state = jnp.tanh(jnp.einsum("bij,bkj->bik", state, xs) * scale)
        return jnp.einsum("bij,bjk->bik", state, xs), state

    return lax.scan(body, xs, jnp.arange(1.0, 4.0))


def transpositions(w, h, xs):
    def body(m, x):
        m = jnp.tanh((x.T @ h).T @ m.T)
        return m, ((x @ m).T, m.T @ x.T)

    return lax.scan(body, w["square"], xs)


def vectors(w, h, xs):
    def body(v, x):
        v = jnp.tanh(v @ w["square"] + w["square"] @ v)
        return v, x @ v

    return lax.scan(body, h[0], xs)


def power_iteration(w, h, xs):
    def body(state):
        i, v, _ = state
        u = w["square"] @ v
        norm = jnp.linalg.norm(u)
        return i + 1, u / norm, norm

    return lax.while_loop(lambda s: s[0] < 6, body, (0, H[0], jnp.float32(0)))


def no_trips(w, h, xs):
    _, none = lax.scan(lambda c, x: rnn_cell(w, c, x), h, xs[:0])
    same = lax.while_loop(lambda h: h.sum() > 1e9, lambda h: h @ w["square"], h)
    return none, same, lax.fori_loop(3, 3, lambda i, h: h @ w["square"], h)


def rows_of_a_carried_table(w, h, xs):
    def body(i, table):
        return lax.dynamic_update_slice(table, (xs[i] @ w["square"])[None], (i, 0, 0))

    return lax.fori_loop(0, LENGTH - 1, body, jnp.ones_like(xs))


def rows_made_of_other_rows(w, h, xs):
    def body(i, table):
        row = lax.dynamic_index_in_dim(table, i, keepdims=False)
        return lax.dynamic_update_slice(table, (row @ w["square"])[None], (i + 1, 0, 0))

    return lax.fori_loop(0, LENGTH - 1, body, xs)


def rows_made_of_themselves(w, h, xs):
    def body(i, table):
        return table.at[i].set(table[i] @ w["square"] + table[LENGTH - 1 - i])

    return lax.fori_loop(0, LENGTH, body, xs)


def columns_of_a_carried_table(w, h, xs):
    def body(i, table):
        columns = lax.dynamic_slice(table, (0, i), (HIDDEN, 8))
        return lax.dynamic_update_slice(table, w["square"] @ columns, (0, i + 5))

    return lax.fori_loop(0, 6, body, w["square"])


def values_that_change_places(w, h, xs):
    def body(carry, x):
        a, b = lax.cond(x.sum() > 0, lambda: carry, lambda: carry[::-1])
        return (b, x @ w["square"] + a), (a, b @ w["square"])

    return lax.scan(body, (h, h + 1), xs)


def beside_integers_and_halves(w, h, xs):
    def body(carry, x):
        n, b = carry
        n = n @ jnp.full((6, 6), 3, jnp.int32) % 17
        b = jnp.tanh(b @ w["square"].astype(jnp.bfloat16))
        return (n, b), (x @ w["square"]).astype(jnp.bfloat16).astype(jnp.float32)

    start = (jnp.arange(36, dtype=jnp.int32).reshape(6, 6), h.astype(jnp.bfloat16))
    (n, _), ys = lax.scan(body, start, xs)
    return n, jnp.round(ys, 1)


PROGRAMS = (
    lstm,
    lstm_gradient,
    gru_gradient,
    rnn_gradient_in_reverse,
    rematerialized_gradient,
    as_many_trips_as_the_data_say,
    loops_in_loops,
    branches,
    carried_factors,
    squares,
    sums_of_products,
    batches,
    transpositions,
    vectors,
    power_iteration,
    no_trips,
    rows_of_a_carried_table,
    rows_made_of_other_rows,
    rows_made_of_themselves,
    columns_of_a_carried_table,
    values_that_change_places,
    beside_integers_and_halves,
)


def assert_close(actual, expected):
    """Sums of terms that cancel are as exact as their terms: what counts is the largest element."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        a, e = np.asarray(a), np.asarray(e)
        assert a.dtype == e.dtype and a.shape == e.shape
        largest = np.abs(e).max(initial=0)
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6 * max(1, largest))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_products_in_loops_equal_jaxs(program):
    expected = jax.jit(program)(WEIGHTS, H, XS)
    results = {}
    for machine in ("host:1", "host:2"):
        results[machine] = jit(program, machine=machine)(WEIGHTS, H, XS)
        assert_close(results[machine], expected)
    one, two = (jax.tree.leaves(result) for result in results.values())
    assert all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, two, strict=True)
    )


def test_gradients_of_rotating_carries():
    """Columns are written into zeros that lie outside the loop: each iteration its own."""
    n = 5
    rng = np.random.default_rng(80)
    a, d = ((rng.normal(size=(n, n)) / n**0.5).astype(np.float32) for _ in range(2))

    def step(carry, i):
        first, second, third = carry
        column = first @ third[:, (i + 1) % n]
        return (second, third, third.at[:, i % n].add(column)), None

    def loss(*carry):
        last, _ = jax.lax.scan(step, carry, jnp.arange(n))
        return sum((each**2).sum() for each in last)

    gradients = jax.grad(loss, (0, 1, 2))
    expected = jax.jit(gradients)(a, a[::-1], d)
    for machine in ("host:1", "host:2"):
        found = jit(gradients, machine=machine)(a, a[::-1].copy(), d)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
