# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of `baechi.jit` that overlap: the bits, errors and order of calls that do not."""

from __future__ import annotations

import ctypes
import functools
import signal
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.jax.pending import PendingArray
from baechi.steps.library import StepLibrary
from baechi.steps.library_file import StepError
from jax_support import assert_close, jit
from test_dispatch import with_errors

pytest.importorskip("baechi._placement")


def overlapping(step, **options):
    return jit(step, **{"machine": "host:2", "overlap_steps": True, **options})


@pytest.fixture
def start():
    key = jax.random.key(3)
    sizes = {"a": (16, 64), "b": (64, 64), "c": (64, 1)}
    params = {
        name: jax.random.normal(jax.random.fold_in(key, i), shape) / 8
        for i, (name, shape) in enumerate(sizes.items())
    }
    x = jax.random.normal(jax.random.fold_in(key, 9), (32, 16))
    return params, x


def loss(params, x):
    with jax.named_scope("first"):
        h = jnp.tanh(x @ params["a"])
    with jax.named_scope("second"):
        h = jnp.tanh(h @ params["b"])
        return ((h @ params["c"]) ** 2).mean()


def train(params, x):
    value, gradients = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def forward(params, x):
    """Two stages, of which the first may be in the next call."""
    with jax.named_scope("first"):
        h = jnp.tanh(x @ params["a"])
    with jax.named_scope("second"):
        return jnp.tanh(h @ params["b"]) @ params["c"]


def batches(x, count=24):
    return [np.asarray(x) * np.float32(1 + i / 7) for i in range(count)]


@pytest.mark.parametrize("transfers", ["lend", "copy"])
@pytest.mark.parametrize("pin", [None, {"first/*": "host0", "second/*": "host1"}])
def test_training_has_the_bits_of_calls_one_by_one(transfers, pin, start):
    params, x = start
    options = {"donate_argnums": 0, "transfers": transfers, "pin": pin}
    step = overlapping(train, **options)
    alone = jit(train, machine="host:2", async_dispatch=False, **options)
    ours = theirs = reference = params
    values = []
    for i, batch in enumerate(batches(x)):
        ours, value = step(ours, batch)
        theirs, expected = alone(theirs, batch)
        reference, jax_value = jax.jit(train)(reference, batch)
        values.append((value, expected, jax_value))
        if i % 7 == 5:  # a look now and then
            assert float(value) == float(expected)
        if i % 11 == 8:
            assert (np.asarray(ours["b"]) == np.asarray(theirs["b"])).all()
    for value, expected, jax_value in values:
        assert np.asarray(value) == np.asarray(expected)
        np.testing.assert_allclose(value, jax_value, rtol=1e-4)
    for name in params:
        assert (np.asarray(ours[name]) == np.asarray(theirs[name])).all()
    assert_close(ours, reference)
    assert "overlap    a device begins its next call" in step.report()


def test_stages_overlap(start):
    params, x = start
    step = overlapping(forward, pin={"first/*": "host0", "second/*": "host1"}, transfers="copy")
    alone = jit(forward, machine="host:2", pin={"first/*": "host0", "second/*": "host1"})
    results = [step(params, batch) for batch in batches(x)]
    assert all(isinstance(result, PendingArray) for result in results[1:])
    for result, batch in zip(results, batches(x), strict=True):
        assert (np.asarray(result) == np.asarray(alone(params, batch))).all()
    assert len(step._latest._wall_ns) <= 24
    step.report()
    assert len(step._latest._wall_ns) == 24


def test_what_a_call_made_is_read_when_it_is_there(start):
    """Without donation the parameters go through the caller's memory."""
    params, x = start
    step = overlapping(train, pin={"first/*": "host0", "second/*": "host1"})
    ours = theirs = params
    for batch in batches(x):
        ours, value = step(ours, batch)
        theirs, expected = jax.jit(train)(theirs, batch)
    assert_close((ours, value), (theirs, expected))


def test_arguments_may_be_changed_after_the_call(start):
    params, x = start
    step = overlapping(forward, pin={"first/*": "host0", "second/*": "host1"})
    batch = np.array(x)
    step(params, batch)
    results, kept = [], []
    for i in range(12):
        batch[:] = np.asarray(x) * i
        kept.append(batch.copy())
        results.append(step(params, batch))
    batch[:] = -1
    for result, given in zip(results, kept, strict=True):
        np.testing.assert_allclose(result, forward(params, given), rtol=1e-4, atol=1e-5)


def test_threads_give_and_look(start):
    params, x = start
    step, alone = overlapping(train), jit(train, machine="host:2", async_dispatch=False)
    step(params, x)

    def losses(step, number):
        mine = jax.tree.map(lambda leaf: leaf * (1 + number / 8), params)
        values = []
        for _ in range(12):
            mine, value = step(mine, x)
            values.append(value)
        return [float(value) for value in values]

    expected = [losses(alone, number) for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(functools.partial(losses, step), range(4))) == expected


def test_ctrl_c_ends_the_wait_and_not_the_calls():
    def slow(x):
        with jax.named_scope("first"):
            h = jax.lax.fori_loop(0, 300_000, lambda i, v: v * 0.5 + 1, x)
        with jax.named_scope("second"):
            return jax.lax.fori_loop(0, 300_000, lambda i, v: v * 0.5 + 1, h)

    step = overlapping(slow, pin={"first*": "host0", "second*": "host1"})
    x = np.ones(8, np.float32)
    step(x)

    def interrupt(*_):
        raise KeyboardInterrupt

    values = [step(x) for _ in range(3)]
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
            values[-1].block_until_ready()
            while True:  # it had ended before
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for value in [*values, step(x)]:
        assert (np.asarray(value) == 2).all()


def test_why_calls_run_one_by_one(start):
    params, x = start
    single = overlapping(train, machine="host:1")
    single(params, x)
    assert "calls run one by one: one device has all of the step" in single.report()

    def split(key, x):
        return jax.random.split(key)[0], x + 1

    keys = overlapping(split, pin={"*": "host0"})
    keys(jax.random.key(1), x)
    assert "calls run one by one: " in keys.report()
    checked = overlapping(train, check="first")
    checked(params, x)
    assert "calls run one by one: calls that are checked are waited for" in checked.report()
    with pytest.warns(UserWarning, match="JAX computes"):
        called = overlapping(lambda x: (jax.debug.callback(lambda v: None, x), x + 1)[1])
        called(1)
    assert "calls run one by one: JAX computes a part of each" in called.report()
    plain = jit(train, machine="host:2")
    plain(params, x)
    assert "overlap" not in plain.report()
    with pytest.raises(ValueError, match="calls that are waited for cannot overlap"):
        jit(train, overlap_steps=True, async_dispatch=False)
    with pytest.raises(TypeError, match="overlap_steps is 'yes': give True or False"):
        jit(train, overlap_steps="yes")


def test_a_pool_s_calls_run_one_by_one(start):
    params, x = start
    step = overlapping(train, machine="host:2+pool:1GiB")
    ours, value = step(params, x)
    theirs, expected = jax.jit(train)(params, x)
    assert_close((ours, value), (theirs, expected))
    assert "with a device of kind 'pool'" in step.report()


def test_ahead_of_its_calls(start, tmp_path):
    params, x = start
    compiled = overlapping(train, donate_argnums=0).lower(params, x).compile()
    file = compiled.save(tmp_path / "train.baechi")
    loaded = baechi.load_step(file, overlap_steps=True)
    with pytest.raises(ValueError, match="calls that are waited for cannot overlap"):
        baechi.load_step(file, async_dispatch=False, overlap_steps=True)
    for step in (compiled, loaded):
        ours = theirs = params
        for batch in batches(x, 8):
            ours, value = step(ours, batch)
            theirs, expected = jax.jit(train)(theirs, batch)
        assert_close((ours, value), (theirs, expected))
        assert "overlap    a device begins its next call" in step.report()


_NEXT = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)
_ENDED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)
_OVERLAP = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)


class _Giver(ctypes.Structure):
    _fields_ = [("user", ctypes.c_void_p), ("next", _NEXT), ("ended", _ENDED)]


class _Ahead:
    """`overlap` of a library whose one device begins a call before it ends the one before, and
    fails where the last argument, an integer, is zero: no step of JAX's fails by itself."""

    def __init__(self, library, call):
        self.run = _CALL(call)
        self.last = len(library.program["arguments"]) - 1
        self.runs = []

    def __call__(self, step, first, giver, failed):
        given = ctypes.cast(giver, ctypes.POINTER(_Giver))[0]
        number, begun = first, []
        self.runs.append(first)
        while True:
            arguments, results = ctypes.c_void_p(), ctypes.c_void_p()
            answer = given.next(
                given.user, number, ctypes.addressof(arguments), ctypes.addressof(results)
            )
            if answer > 0:
                place = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))[self.last]
                if ctypes.cast(place, ctypes.POINTER(ctypes.c_int32))[0] == 0:
                    ctypes.cast(failed, ctypes.POINTER(ctypes.c_int64))[0] = number
                    return 1
                begun.append((number, arguments, results))
                number += 1
            if begun and (answer <= 0 or len(begun) > 1):
                ended, arguments, results = begun.pop(0)
                assert self.run(step, arguments, results) == 0
                given.ended(given.user, ended)
            elif answer == 0:
                return 0


@pytest.fixture
def divider(monkeypatch):
    """A step whose calls overlap and fail where they divide by zero."""
    kept, addresses = [], StepLibrary.addresses

    def overlap_calls(self):
        ahead = _Ahead(self, addresses(self)[0])
        kept.append(ahead)
        self._functions["overlap"] = _OVERLAP(ahead)
        self._overlaps = True
        return ""

    monkeypatch.setattr(StepLibrary, "overlap_calls", overlap_calls)
    monkeypatch.setattr(StepLibrary, "addresses", with_errors(addresses))
    return overlapping(lambda x, n: jax.lax.div(x, n), machine="host:1")


def test_an_error_names_its_call(divider):
    x = np.arange(4, dtype=np.int32)
    divider(x, 1)
    fails = 0
    for _ in range(20):
        given = [(n, divider(x, n)) for n in (1, 2, 0)]
        number = divider._latest._dispatcher._given
        for n, value in given:
            try:
                assert (np.asarray(value) == x // n).all()
            except StepError as error:
                fails += 1
                own, other = f"call {number - 2 + [1, 2, 0].index(n)} of ", f"call {number}"
                assert own in str(error) and "division by zero" in str(error)
                # One that had begun when a later one failed says which.
                assert n == 0 or f"it overlapped {other}, which failed" in str(error)
        # What does not take its values goes on.
        assert (np.asarray(divider(x, 3)) == x // 3).all()
    assert fails >= 20


def test_an_error_of_calls_that_nobody_looks_at(divider):
    x = np.arange(4, dtype=np.int32)
    divider(x, 1)
    divider(x, 0)
    divider._settle()
    with pytest.raises(StepError, match="call 1 of .*, whose results nobody has looked at, failed"):
        divider(x, 1)
    assert (np.asarray(divider(x, 2)) == x // 2).all()
