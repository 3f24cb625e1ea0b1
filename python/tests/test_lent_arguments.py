# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host devices read JAX's arrays where they are: what a call gives is what copies give."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from baechi import StepError  # noqa: E402
from baechi.steps.library import StepLibrary, own_memory  # noqa: E402
from jax_support import jit  # noqa: E402

jnp = jax.numpy
pytestmark = needs.tool("baechi-run")
pytest.importorskip("baechi._placement")

WAYS = {
    "one": {"machine": "host:1"},
    "waits": {"machine": "host:1", "async_dispatch": False},
    "two": {"machine": "host:2", "pin": {"first/*": "host0", "second/*": "host1"}},
    "copy": {
        "machine": "host:2",
        "pin": {"first/*": "host0", "second/*": "host1"},
        "transfers": "copy",
    },
    "overlap": {
        "machine": "host:2",
        "pin": {"first/*": "host0", "second/*": "host1"},
        "overlap_steps": True,
    },
}


def forward(weights, x):
    """Both devices read the first weight, and a part of another."""
    with jax.named_scope("first"):
        x = jnp.tanh(x @ weights[0] + weights[2][3:35])
    with jax.named_scope("second"):
        return jnp.tanh(x @ weights[1]) @ weights[0] + weights[2][64:96]


def slow_forward(weights, x):
    """Which looks at its arguments again when it has computed for a while."""
    with jax.named_scope("first"):
        h = jax.lax.fori_loop(0, 20, lambda i, h: jnp.tanh(h @ weights[0] + x), x)
    with jax.named_scope("second"):
        return jax.lax.fori_loop(0, 20, lambda i, h: jnp.tanh(h @ weights[1] + x), h)


def assert_close(actual, expected):
    """To what sums of some dozens of numbers are off by."""
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-5, atol=2e-5)


def values(seed):
    draw = np.random.default_rng(seed)
    shapes = (32, 32), (32, 32), (2048,)
    return [jnp.asarray(draw.normal(size=shape) / 6, jnp.float32) for shape in shapes]


def inputs(seed):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(64, 32)), jnp.float32)


def program_of(step):
    (program,) = step._programs.values()
    return program


def read_there(step):
    """Of each argument, whether the last call read it where it was."""
    found = []
    library = program_of(step).library
    for i in range(len(library.program["arguments"])):
        try:
            library.argument(i)
            found.append(False)
        except StepError as error:
            assert "has no value: a call read it where its caller had it" in str(error)
            found.append(True)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_results_are_jax_s_with_the_same_and_with_other_arrays(way):
    step = jit(forward, **WAYS[way])
    held, x = values(0), inputs(0)
    given, expected = [], []
    for i in range(12):
        weights = held if i % 3 else values(i)
        x = x if i % 2 else inputs(i)
        given.append(step(weights, x))
        expected.append(jax.jit(forward)(weights, x))
        del weights
        gc.collect(0)
    assert_close(given, expected)
    step(held, x).block_until_ready()
    assert read_there(step) == [True] * 4


@pytest.mark.parametrize("way", ["one", "waits", "overlap"])
def test_arrays_of_numpy_are_copied(way):
    """The caller may change them, from another thread while the step runs."""
    step = jit(forward, **WAYS[way])
    weights, x = [np.array(value) for value in values(0)], inputs(0)
    results, expected = [], []
    for _ in range(6):
        results.append(step(weights, x))
        expected.append(jax.jit(forward)([value.copy() for value in weights], x))
        for value in weights:
            value += 0.5
    assert_close(results, expected)
    assert read_there(step) == [False] * 3 + [True]


@pytest.mark.parametrize("way", ["one", "two", "overlap"])
def test_arrays_may_be_given_up_while_calls_read_them(way):
    """Deleted, donated to JAX, or dropped and their memory used again: calls that were given them
    before have ended later."""
    step = jit(slow_forward, **WAYS[way])
    reference, reused = jax.jit(slow_forward), jax.jit(lambda x: -x, donate_argnums=0)
    step(values(0), inputs(0))
    results, expected, others = [], [], []
    for i in range(16):
        weights, x = values(i), inputs(i)
        expected.append(np.asarray(reference(weights, x)))
        results.append(step(weights, x))
        if i % 4 == 0:
            x.delete()
        elif i % 4 == 1:
            others.append(reused(x))
        elif i % 4 == 2:
            weights[0].delete()
            others.append(reused(weights[1]))
        del weights, x
        gc.collect(0)
        others.append(jnp.full((64, 32), jnp.nan) + i)
    assert_close(results, expected)


def test_results_of_the_step_are_read_wherever_they_lie():
    """Small ones are aligned as it happens."""

    def double(x):
        return 2 * x

    for count in (1100, 5000):
        step = jit(double, machine="host:1")
        x = expected = jnp.arange(count, dtype=jnp.float32)
        for _ in range(8):
            x, expected = step(x), jax.jit(double)(expected)
        assert_close(x, expected)


def test_parts_that_are_not_aligned_are_copied():
    step = jit(forward, machine="host:1")
    weights, x = values(0), inputs(0)
    for _ in range(2):
        step(weights, x)
    room = own_memory((65 * 32,), np.dtype(np.float32))
    part = room[4 : 4 + 64 * 32].reshape(64, 32)
    part[...] = np.asarray(x)
    moved = jax.dlpack.from_dlpack(part)
    assert_close(step(weights, moved), jax.jit(forward)(weights, x))
    assert_close(step(weights, x), jax.jit(forward)(weights, x))


def test_what_is_donated_or_returned_has_its_place():
    def function(state, weights, kept, x):
        state = state + x @ weights
        return state, state.sum(), kept

    step = jit(function, machine="host:1", donate_argnums=0)
    weights, kept = inputs(1)[:32] + 0, inputs(2)
    state = inputs(3)
    expected = state + 0
    for i in range(6):
        x = inputs(i)
        state, total, same = step(state, weights, kept, x)
        expected, jax_total, _ = jax.jit(function)(expected, weights, kept, x)
        assert_close((total, same), (jax_total, kept))
        kept = kept + 1
    assert_close(state, expected)
    arguments = program_of(step).library.program["arguments"]
    lendable = [argument.get("lendable", False) for argument in arguments]
    assert lendable == [False, True, True, True]  # what is returned is copied


def test_one_array_may_be_several_arguments():
    step = jit(lambda a, b, c: a @ b + c, machine="host:1")
    x = inputs(0)[:32] + 0
    for _ in range(4):
        assert_close(step(x, x, x), x @ x + x)
    assert read_there(step) == [True] * 3


def test_the_longer_way_copies():
    step = jit(forward, machine="host:1")
    weights, x = values(0), inputs(0)
    for _ in range(3):
        assert_close(step(weights, x), jax.jit(forward)(weights, x))
    assert read_there(step) == [True] * 4
    turned = np.asfortranarray(np.asarray(x))
    assert_close(step(weights, turned), jax.jit(forward)(weights, x))
    assert read_there(step) == [False] * 4


@pytest.mark.parametrize("way", ["one", "waits", "overlap"])
def test_arrays_stay_where_a_device_was_left_behind(way, monkeypatch):
    """It may still read them."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    failing = kind(lambda *_: 1)
    overlap = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 3
    )
    overlap_failing = overlap(lambda *_: 1)
    unusable = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
    address = StepLibrary._address
    fakes = {"call_lending": failing, "overlap_lending": overlap_failing, "usable": unusable}
    for usable in (True, False):
        wanted = set(fakes) - {"usable"} if usable else set(fakes)

        def faked(self, name, wanted=wanted):
            if name in wanted:
                return ctypes.cast(fakes[name], ctypes.c_void_p).value
            return address(self, name)

        monkeypatch.setattr(StepLibrary, "_address", faked)
        step = jit(forward, **WAYS[way])
        weights, x = values(0), inputs(0)
        step(weights, x)
        noted = weakref.ref(x)
        results, errors = [], 0
        for _ in range(2):  # so that they may overlap
            try:
                results.append(step(weights, x))
            except StepError:
                errors += 1
        for result in results:
            with pytest.raises(StepError):
                result.block_until_ready()
        assert errors + len(results) == 2
        results = result = None
        del x, step
        gc.collect()
        assert (noted() is None) == usable


class Giver(ctypes.Structure):
    _fields_ = [
        ("user", ctypes.c_void_p),
        (
            "next",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 2),
        ),
    ]


def test_arrays_stay_of_all_calls_that_a_left_device_has_begun(monkeypatch):
    """Where calls overlap it may have begun the one after that which failed."""
    begun = []

    def fails(_, first, giver, lent, failed):
        places = ctypes.c_void_p(), ctypes.c_void_p()
        for number in (first, first + 1):
            answer = -1
            while answer < 0:  # not known yet
                answer = giver.contents.next(
                    giver.contents.user, number, *(ctypes.addressof(each) for each in places)
                )
            begun.append(answer)
        ctypes.c_int64.from_address(failed).value = first
        return 1

    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Giver), *[ctypes.c_void_p] * 2
    )
    fakes = {
        "overlap_lending": kind(fails),
        "usable": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0),
    }
    address = StepLibrary._address

    def faked(self, name):
        fake = fakes.get(name)
        return ctypes.cast(fake, ctypes.c_void_p).value if fake else address(self, name)

    def keeps(state, weights, x):
        with jax.named_scope("first"):
            state = state + jnp.tanh(x @ weights[0])
        with jax.named_scope("second"):
            return state, jnp.tanh(state @ weights[1])

    monkeypatch.setattr(StepLibrary, "_address", faked)
    step = jit(keeps, donate_argnums=0, **WAYS["overlap"])
    weights, x = values(0), inputs(0)
    state, _ = step(jnp.zeros_like(x), weights, x)
    given = [inputs(1), inputs(2)]
    noted = [weakref.ref(each) for each in given]
    results = []
    for each in given:
        state, result = step(state, weights, each)
        results.append(result)
    for result in results:
        with pytest.raises(StepError):
            result.block_until_ready()
    assert begun == [1, 1]
    state = result = each = None
    del given, results, step
    gc.collect()
    assert all(each() is not None for each in noted)


def test_a_step_library_lends_what_it_is_told(tmp_path):
    step = jit(forward, machine="host:1")
    weights, x = values(0), inputs(0)
    expected = step(weights, x)
    file = tmp_path / "step.so"
    # Its functions are called by the name that the file had.
    file.write_bytes(program_of(step).library.content())
    library = StepLibrary(file)
    infos = library.program["arguments"]
    given = [own_memory(info["shape"], np.dtype(np.float32)) for info in infos]
    for place, value in zip(given, [*weights, x], strict=True):
        place[...] = value
    result = np.empty(expected.shape, np.float32)
    places = (ctypes.c_void_p * 4)(*(value.ctypes.data for value in given))
    wanted = (ctypes.c_void_p * 1)(result.ctypes.data)
    call, usable = library._functions["call_lending"], library._functions["usable"]
    for lent in ([1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], None):
        flags = None if lent is None else (ctypes.c_ubyte * 4)(*lent)
        assert call(library._step, places, flags, wanted) == 0
        np.testing.assert_array_equal(result, expected)
        for i, flag in enumerate(lent or [0] * 4):
            if flag:
                with pytest.raises(StepError, match=f"argument {i} .* has no value"):
                    library.argument(i)
            else:
                np.testing.assert_array_equal(library.argument(i), given[i])
        given[0] *= 1  # the caller's again
    assert usable(library._step) == 1
    # Those who never lend need not know of it.
    library.run()
    np.testing.assert_array_equal(library.result(0), np.asarray(expected))
    library.close()
