# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is donated to a step of `baechi.jit` stays on its devices, and is an array all the same."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
import needs  # noqa: E402
from baechi.steps.resident import ResidentArray  # noqa: E402
from jax_support import assert_close, jit, starting_values, train  # noqa: E402

jnp = jax.numpy
pytestmark = needs.tool("baechi-run")


@pytest.fixture
def start():
    return starting_values()


def test_donated_values_stay_on_their_devices(start):
    params, batch = start
    step = jit(train, donate_argnums=0)
    first, _ = step(params, batch)
    moved = []
    program = step._called()
    set_argument = program.library.set_argument
    program.library.set_argument = lambda i, value: (moved.append(i), set_argument(i, value))
    step._quick.clear()  # else one call into C moves the batch (test_quick_calls.py)
    second, _ = step(first, batch)
    names = [a.name for a in program.signature.arguments]
    assert {names[i] for i in moved} == {"batch/0", "batch/1"}
    assert "resident" in repr(second["in"]) and not second["in"].is_deleted()
    assert first["in"].is_deleted()
    with pytest.raises(RuntimeError, match="was donated to a later step"):
        np.asarray(first["in"])
    assert np.asarray(second["in"]).shape == (16, 32)
    assert "fetched" in repr(second["in"])


def test_values_that_are_not_given_back_are_kept(start):
    params, batch = start
    step, reference = jit(train, donate_argnums=0), jax.jit(train)
    kept, _ = step(params, batch)
    step(jax.tree.map(lambda p: p * 2, params), batch)  # overwrites the places
    assert_close(kept, reference(params, batch)[0])
    # And they can be used again, as they are not in their places any more.
    assert_close(step(kept, batch), reference(reference(params, batch)[0], batch))


def test_resident_arrays_are_arrays(start):
    params, batch = start
    step = jit(train, donate_argnums=0)
    params, _ = step(params, batch)
    value = params["in"]
    assert isinstance(value, ResidentArray)
    assert value.shape == (16, 32) and value.ndim == 2 and value.size == 512 and len(value) == 16
    np.testing.assert_allclose(jnp.asarray(value).sum(), np.asarray(value).sum(), rtol=1e-5)
    np.testing.assert_allclose(np.tanh(value), np.tanh(np.asarray(value)))
    assert value[0, 0] == np.asarray(value)[0, 0]
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(value)[0, 0] = 1


def test_only_residents_are_deleted_by_donating_them(start):
    params, batch = start
    step = jit(train, donate_argnums=0)
    given = jax.tree.map(jnp.asarray, params)
    first, _ = step(given, batch)
    assert not any(x.is_deleted() for x in jax.tree.leaves(given))
    second, _ = step(first, batch)
    assert first["in"].is_deleted() and not second["in"].is_deleted()
    second["in"].block_until_ready()
    with pytest.raises(RuntimeError, match="donated to a later step"):
        first["in"].block_until_ready()


def both(a, b):
    return a + 1, b * 2


@pytest.mark.parametrize("donated", [(0, 1), (0,), (1,)])
def test_an_array_that_is_donated_is_no_other_argument(donated):
    """As in JAX, at any call; what is not JAX's may be given twice."""
    name = "'b'" if donated == (1,) else "'a'"
    words = f"the arguments 'a' and 'b' are the same array, and {name} is donated: give one of"

    def refused(step, a, b):
        with pytest.raises(ValueError, match=words):
            step(a, b)

    array, numbers = jnp.ones(3), np.ones(3, np.float32)
    with pytest.raises(RuntimeError, match="donate"):
        jax.jit(both, donate_argnums=donated)(array, array)
    array = jnp.ones(3)
    step = jit(both, donate_argnums=donated)
    refused(step, array, array)
    for _ in range(2):  # the second is a quick one
        assert_close(step(numbers, numbers), (numbers + 1, numbers * 2))
        refused(step, array, array)
        results = step(array, jnp.ones(3))
        refused(step, results[donated[0]], results[donated[0]])
    kept = jit(lambda a, b: (a.sum(), b.mean()), donate_argnums=donated)
    np.testing.assert_allclose(kept(array, array), (3.0, 1.0))  # no result takes a place


def test_resident_arrays_go_into_functions_of_jax(start):
    params, batch = start
    step = jit(train, donate_argnums=0)
    params, _ = step(params, batch)

    def norm(p):
        return sum(jnp.vdot(x, x) for x in jax.tree.leaves(p))

    copied = jax.tree.map(np.asarray, params)
    for function in (norm, jax.jit(norm), jax.grad(norm), lambda p: jax.nn.relu(p["in"])):
        for got, expected in zip(
            jax.tree.leaves(function(params)), jax.tree.leaves(function(copied)), strict=True
        ):
            np.testing.assert_array_equal(got, expected)
    assert isinstance(jax.device_put(params["in"]), jax.Array)
    # As arguments of JAX's they are looked at, not donated.
    params, _ = step(params, batch)
    assert not params["in"].is_deleted()


def test_threads_that_exchange_donated_values():
    first = jit(lambda x: x + 1, donate_argnums=0)
    second = jit(lambda x: x + 2, donate_argnums=0)

    def train(start):
        value = np.full((16,), start, np.float32)
        for _ in range(20):
            value = second(first(value))
        return np.asarray(value)

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(train, range(4)))
    np.testing.assert_array_equal(results, [[start + 60] * 16 for start in range(4)])


def test_a_value_that_was_given_to_another_step_is_not_looked_for():
    first = jit(lambda x: x + 1, donate_argnums=0)
    second = jit(lambda x: x + 2, donate_argnums=0)
    given = first(np.zeros(4, np.float32))
    taken = second(given)
    np.testing.assert_array_equal(first(np.ones(4, np.float32)), [2] * 4)
    np.testing.assert_array_equal(taken, [3] * 4)
    assert given.is_deleted()


def test_donated_results_have_the_operators_and_methods_of_arrays():
    step = baechi.jit(lambda p: p + 1, donate_argnums=0, costs="roofline", budget="0")
    p = step(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(p, ResidentArray)
    assert (p == 2).tolist() == [[True, False], [False, False]]
    assert (2 * p - p / 2 + -p).tolist() == [[1.0, 1.5], [2.0, 2.5]]
    assert (p @ p).shape == (2, 2) and p.T.tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert float(p.mean()) == 3.5 and p.astype("int32").dtype == jnp.int32
    assert f"{p[0, 0]:.1f}" == "2.0" and [row.sum() for row in p] == [5.0, 9.0]
    assert p.at[0, 0].set(9.0)[0, 0] == 9
    for copied in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        np.testing.assert_array_equal(copied, [[2, 3], [4, 5]])
    assert not hasattr(p, "no_such_thing")
    again = step(p)
    assert again.tolist() == [[3.0, 4.0], [5.0, 6.0]]


def test_a_donated_value_of_weak_type_keeps_it():
    traces = []
    step = jit(lambda rate: (traces.append(1), rate * 0.5)[1], donate_argnums=0)
    weights = jnp.ones(2, jnp.bfloat16)
    rate = step(1.0)
    assert (weights * rate).dtype == jnp.bfloat16 == jax.jit(jnp.multiply)(weights, rate).dtype
    assert step(rate).weak_type and len(traces) == 1
