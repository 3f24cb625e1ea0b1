# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a step like earlier ones go one call into C, and say and give what `jax.jit` does."""

import collections
import dataclasses
import functools
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from baechi.jax import jitted  # noqa: E402
from baechi.jax.pending import PendingArray  # noqa: E402
from baechi.steps.resident import ResidentArray  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

jnp = jax.numpy
pytestmark = needs.tool("baechi-run")
pytest.importorskip("baechi._placement")


def quick(step, *args, **kwargs):
    """The result of a call, which must be quick."""
    result = step._call_quickly(args, kwargs)
    assert result is not jitted.MISSED
    return result


def is_quick(step, *args, **kwargs):
    return step._call_quickly(args, kwargs) is not jitted.MISSED


def same(ours, theirs):
    """Values, types, weak types, places and classes."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert isinstance(one, jax.Array)
        one = one.__jax_array__() if isinstance(one, PendingArray) else one
        assert type(one) is type(other)
        assert (one.dtype, one.shape, one.weak_type) == (other.dtype, other.shape, other.weak_type)
        assert one.committed == other.committed and one.devices() == other.devices()
        np.testing.assert_allclose(
            np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=1e-5, atol=1e-6
        )


ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.arange(6, dtype=np.float16).reshape(2, 3),
    np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16),
    np.array([[True, False]]),
    np.zeros((0, 3), np.float32),
    np.array(7, np.float32),
]


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: f"{value.dtype}{value.shape}")
@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_arrays_of_all_types(value, kind):
    def function(x):
        return x, jnp.where(x > 1, x, x * x), x.astype(jnp.float32).sum()

    step = jit(function)
    given = jnp.asarray(value) if kind == "jax" else value
    step(given)
    same(quick(step, given), jax.jit(function)(given))


@pytest.mark.parametrize("value", [2.5, 3, True, -(2**31), 1e300, float("nan"), -0.0])
def test_numbers_of_python(value):
    def function(x, n):
        return x * n, n, x.astype(jnp.float16) * n

    x = np.arange(4, dtype=np.float32)
    step = jit(function)
    step(x, type(value)(1))
    same(quick(step, x, value), jax.jit(function)(x, value))


def test_numbers_that_do_not_fit_are_refused_as_by_jax():
    step = jit(lambda x, n: x + n)
    x = np.arange(4)
    step(x, 1)
    for call in (step, jax.jit(lambda x, n: x + n)):
        with pytest.raises(OverflowError):
            call(x, 2**40)


def test_weak_types_are_other_programs_and_stay_weak():
    def function(x, scale):
        return x * scale, scale * 2

    step = jit(function)
    x = np.arange(4, dtype=np.float16)
    for scale in (2.0, jnp.float32(2), jnp.asarray(2.0), np.float32(2), 2):
        step(x, scale)
    for scale in (2.0, jnp.float32(2), jnp.asarray(2.0), 2):
        same(quick(step, x, scale), jax.jit(function)(x, scale))
    same(step(x, np.float32(2)), jax.jit(function)(x, np.float32(2)))


def test_results_are_new_arrays_that_steps_do_not_change():
    step = jit(lambda x: (x, x * 2), machine="host:2")
    for shape in ((3,), (256, 256)):
        ones = np.ones(shape, np.float32)
        x = ones.copy()
        step(x)
        first = quick(step, x)
        x += 1
        second = quick(step, x)
        assert_close(first, (ones, 2 * ones))
        assert_close(second, (2 * ones, 4 * ones))


def test_results_outlive_arguments_and_steps():
    step = jit(lambda x: (x, x[1:]))
    kept = []
    for i in range(50):
        kept.append((quick if i else lambda f, x: f(x))(step, jnp.full(1000, i, jnp.float32)))
        gc.collect(0)
    del step
    gc.collect()
    full = functools.partial(np.full, dtype=np.float32)
    assert_close(kept, [(full(1000, i), full(999, i)) for i in range(50)])


def test_what_is_not_in_order_goes_the_longer_way():
    function = jnp.cumsum
    step = jit(lambda x: jnp.cumsum(x, axis=0))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    step(x)
    for other in (
        np.asfortranarray(x),
        np.repeat(x, 2, axis=1)[:, ::2],
        x[::1, ::-1],
        x.T.copy().T,
    ):
        assert_close(step(other), function(other, axis=0))
    from jax.experimental.layout import Format, Layout

    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    turned = jax.device_put(x, Format(Layout((1, 0)), place))
    assert_close(step(turned), function(x, axis=0))
    assert not is_quick(step, np.asfortranarray(x))


def test_other_shapes_and_types_are_never_taken_for_known_ones():
    step = jit(lambda x: x + 1)
    step(np.zeros((2, 3), np.float32))
    others = [
        np.zeros((3, 2), np.float32),
        np.zeros(6, np.float32),
        np.zeros((2, 3), np.int32),
        np.zeros((2, 3), np.uint32),
        np.zeros((2, 3), np.float64),
        jnp.zeros((2, 3), jnp.int32),
        [[0.0] * 3] * 2,
        1.0,
        None,
    ]
    for other in others:
        assert not is_quick(step, other)
    same(step(np.ones((2, 3))), jax.jit(lambda x: x + 1)(np.ones((2, 3))))
    for wrong in ("text", object()):
        with pytest.raises(TypeError, match="is no array but"):
            step(wrong)


def test_arrays_of_a_gpu_go_the_longer_way(monkeypatch):
    """They have no buffers, as those of bfloat16, and are not copied to the host for a look."""
    x = jnp.ones(8, jnp.bfloat16)
    step = jit(lambda x: x * 2)
    step(x)
    assert is_quick(step, x)
    copied = []
    monkeypatch.setattr(type(x), "__array__", lambda *_: copied.append(True))
    monkeypatch.setattr(type(x), "__dlpack_device__", lambda _: (2, 0))
    assert not is_quick(step, jnp.ones(8, jnp.bfloat16)) and not copied


def test_a_deleted_array_is_an_error():
    step = jit(lambda x: x + 1)
    x = jnp.ones(3)
    step(x)
    x.delete()
    for call in (step, jax.jit(lambda x: x + 1)):
        with pytest.raises(RuntimeError, match="deleted"):
            call(x)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    weight: Any
    count: Any


Pair = collections.namedtuple("Pair", ["left", "right"])


def test_nested_structures_by_position_and_name():
    def function(state, pair, *rest, scale=1.0, names=("a",)):
        made = {name: (state.weight * scale, [state.count + 1]) for name in names}
        return State(made, None), Pair(pair.right, pair.left), rest

    state = State(jnp.ones((2, 2)), 3)
    pair = Pair({"x": np.ones(2, np.float32)}, (jnp.zeros(1), None))
    step = jit(function, static_argnames="names")
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((state, pair), {}),
        ((state, pair), {"scale": 2.0}),
        ((state, pair, 1.0, 2.0), {"scale": 2.0, "names": ("b", "a")}),
        ((state, pair), {"names": ("b",), "scale": 3.0}),
        ((state,), {"pair": pair, "names": ("b",)}),
        ((), {"pair": pair, "state": state}),
    ]
    reference = jax.jit(function, static_argnames="names")
    for _ in range(2):
        for args, kwargs in calls:
            same(step(*args, **kwargs), reference(*args, **kwargs))
    for args, kwargs in calls:
        same(quick(step, *args, **kwargs), reference(*args, **kwargs))
    with pytest.raises(ValueError, match="which has no hash"):
        step(state, pair, names=["a"])


def test_static_values_are_told_apart_by_type():
    step = jit(lambda x, n: x * n, static_argnums=1)
    x = np.ones(3, np.float16)
    for n in (1, 1.0, True, 0.0, -0.0):
        step(x, n)
    assert len(step._programs) == 5
    assert np.signbit(quick(step, x, -0.0)).all() and not np.signbit(quick(step, x, 0.0)).any()


def train(params, x, rate):
    value, gradients = jax.value_and_grad(lambda p: ((x @ p["w"] + p["b"]) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value


@pytest.fixture
def start():
    return {"w": jnp.linspace(-1, 1, 12).reshape(4, 3), "b": jnp.ones(3)}, jnp.ones((5, 4))


@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_training_is_quick_and_right(machine, start):
    params, x = start
    step, reference = jit(train, machine=machine, donate_argnums=0), jax.jit(train)
    ours, theirs = step(params, x, 0.1), reference(params, x, 0.1)
    for i in range(20):
        rate = 0.1 / (i + 1)
        ours, theirs = quick(step, ours[0], x, rate), reference(theirs[0], x, rate)
        same(ours[1], theirs[1])
    assert_close(ours[0], theirs[0])
    assert all(isinstance(leaf, ResidentArray) for leaf in jax.tree.leaves(ours[0]))


def test_donated_values_are_gone_and_others_are_kept(start):
    params, x = start
    step, reference = jit(train, donate_argnums=0), jax.jit(train)
    first, _ = step(params, x, 0.1)
    second, _ = quick(step, first, x, 0.1)
    assert first["w"].is_deleted()
    with pytest.raises(RuntimeError, match="was donated"):
        np.asarray(first["w"])
    for again in (first, {"w": second["w"], "b": first["b"]}):
        with pytest.raises(RuntimeError, match="was donated"):
            step(again, x, 0.1)
    # Somebody has what lies in the places: it is copied out first.
    assert not is_quick(step, params, x, 0.1)
    assert_close(step(params, x, 0.1)[0], reference(params, x, 0.1)[0])
    expected = reference(reference(params, x, 0.1)[0], x, 0.1)[0]
    assert_close(second, expected)

    # Changed places.
    def swap(a, b):
        return a + 1, b * 2

    step = jit(swap, donate_argnums=(0, 1))
    a, b = step(np.zeros(3, np.float32), np.ones(3, np.float32))
    assert_close(step(b, a), (np.full(3, 3, np.float32), np.full(3, 2, np.float32)))
    a, b = step(np.zeros(3, np.float32), np.ones(3, np.float32))
    assert not is_quick(step, a, a)


def test_a_looked_at_value_is_donated_too(start):
    params, x = start
    step = jit(train, donate_argnums=0)
    first, _ = step(params, x, 0.1)
    float(first["b"][0])
    quick(step, first, x, 0.1)
    assert first["b"].is_deleted()


def test_threads_take_turns():
    def function(x, n):
        return (x * n).sum(), x + n

    step, x = jit(function, machine="host:2"), np.arange(1000, dtype=np.float32)
    step(x, 1.0)

    def use(number):
        for i in range(50):
            n = float(number * 100 + i)
            total, moved = step(x, n)
            np.testing.assert_allclose(np.asarray(moved), x + n)
            np.testing.assert_allclose(float(total), float((x * n).sum()), rtol=1e-5)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(4)))


def test_steps_of_several_turns_exchange_residents(start):
    params, x = start
    one, other = jit(train, donate_argnums=0), jit(train, donate_argnums=0)
    reference = jax.jit(train)
    ours = theirs = params
    for i in range(6):
        ours, _ = (one, other)[i % 2](ours, x, 0.1)
        theirs, _ = reference(theirs, x, 0.1)
    assert_close(ours, theirs)


def test_an_error_in_a_step_is_that_of_the_longer_way():
    step = jit(lambda x: jax.pure_callback(refuse, jax.ShapeDtypeStruct((3,), np.float32), x))
    failing = threading.Event()

    def refuse(x):
        if failing.is_set():
            raise ValueError("refused")
        return np.asarray(x) + 1

    x = np.ones(3, np.float32)
    with pytest.warns(UserWarning, match="JAX computes"):
        step(x)
    assert_close(quick(step, x), x + 1)
    failing.set()
    with pytest.raises(Exception, match="refused"):
        step(x)
    failing.clear()
    assert_close(step(x), x + 1)


def test_the_x64_mode_is_asked_for_every_call():
    def function(x):
        return x * 2

    step, x = jit(function), np.ones(3)
    same(step(x), jax.jit(function)(x))
    with jax.enable_x64(True):
        assert not is_quick(step, x)
        same(step(x), jax.jit(function)(x))
        same(quick(step, x), jax.jit(function)(x))
    same(step(x), jax.jit(function)(x))


def test_another_default_device_is_asked_for():
    step, x = jit(lambda x: x + 1), np.ones(3, np.float32)
    step(x)
    with jax.default_device(jax.devices("cpu")[0]):
        same(quick(step, x), jax.jit(lambda x: x + 1)(x))


def test_within_jax_it_is_refused():
    step = jit(lambda x: x + 1)
    step(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="not within jax.jit"):
        jax.jit(step)(np.ones(3, np.float32))


def test_a_forked_process_is_told():
    step, x = jit(lambda x: x + 1), np.ones(3, np.float32)
    step(x)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            step(x)
            text = "no error"
        except BaseException as error:
            text = str(error)
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        assert "was forked after the session was created" in said.read()
    assert_close(step(x), x + 1)


def test_compiled_ahead_is_quick_too(start, tmp_path):
    from baechi import load_step

    params, x = start
    step = jit(train, donate_argnums=0).lower(params, x, 0.1).compile()
    reference = jax.jit(train)
    for each in (step, load_step(step.save(tmp_path / "step"))):
        ours, theirs = params, params
        for rate in (0.1, 0.2, jnp.float32(0.3)):
            args = (ours, x, rate)
            result = each._call_quickly(args)
            assert result is not jitted.MISSED
            ours, value = result
            theirs, expected = reference(theirs, x, rate)
            same(value, expected)
        assert_close(ours, theirs)
        with pytest.raises(TypeError, match=r"argument 'x' of 'train' was compiled for"):
            each(params, jnp.ones((4, 4)), 0.1)
