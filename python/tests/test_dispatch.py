# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls return while their steps run: results wait when they are looked at, as `jax.jit`'s do."""

import copy
import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from baechi import StepError  # noqa: E402
from baechi.jax.pending import PendingArray  # noqa: E402
from baechi.steps.library import StepLibrary  # noqa: E402
from baechi.steps.resident import ResidentArray  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

jnp = jax.numpy
pytestmark = needs.tool("baechi-run")
pytest.importorskip("baechi._placement")


def train(params, x, rate):
    value, gradients = jax.value_and_grad(lambda p: ((x @ p["w"] + p["b"]) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value


def divide(state, x, n):
    return state + 1, jax.lax.div(x, n)


_CALL = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_TEXT = ctypes.create_string_buffer(b"device host0: division by zero")


@_ERROR
def broken_error(_):
    return ctypes.addressof(_TEXT)


def with_errors(addresses):
    """`StepLibrary.addresses` of libraries whose steps fail where the last argument, an
    integer, is zero: no step of JAX's arithmetic fails by itself."""

    def broken(self):
        call, wall_ns, _, step = addresses(self)
        run, last = _CALL(call), len(self.program["arguments"]) - 1

        @_CALL
        def fail_at_zero(step, arguments, results):
            place = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))[last]
            zero = place and ctypes.cast(place, ctypes.POINTER(ctypes.c_int32))[0] == 0
            return 1 if zero else run(step, arguments, results)

        kept.append(fail_at_zero)
        pointers = [
            ctypes.cast(each, ctypes.c_void_p).value for each in (fail_at_zero, broken_error)
        ]
        return pointers[0], wall_ns, pointers[1], step

    kept = []
    return broken


def is_looked_at(array):
    return array._array is not None


@pytest.fixture
def start():
    return {"w": jnp.linspace(-1, 1, 12).reshape(4, 3), "b": jnp.ones(3)}, jnp.ones((5, 4))


@pytest.fixture
def divider(monkeypatch):
    monkeypatch.setattr(StepLibrary, "addresses", with_errors(StepLibrary.addresses))
    step = jit(divide, donate_argnums=0)
    x = np.arange(4, dtype=np.int32)
    state, _ = step(np.zeros(2, np.float32), x, 1)
    return step, state, x


@pytest.mark.parametrize("donated", [(), 0])
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_steps_run_in_order_without_a_look(machine, donated, start):
    params, x = start
    step, reference = jit(train, machine=machine, donate_argnums=donated), jax.jit(train)
    ours = theirs = params
    values, expected = [], []
    for i in range(40):
        ours, value = step(ours, x, 0.1 / (i + 1))
        theirs, theirs_value = reference(theirs, x, 0.1 / (i + 1))
        values.append(value)
        expected.append(theirs_value)
        # One runs and one waits; those that have ended are noted by the next call.
        assert i == 0 or len(step._latest._dispatcher._flights) <= 3
    assert all(isinstance(value, PendingArray) for value in values[1:])
    assert not any(map(is_looked_at, values[1:]))
    np.testing.assert_allclose(np.stack(values), np.stack(expected), rtol=1e-5, atol=1e-7)
    assert_close(ours, theirs)
    assert len(step._latest._wall_ns) <= 40
    step.report()
    assert len(step._latest._wall_ns) == 40


def test_results_are_arrays_of_jax(start):
    params, x = start
    step, (_, expected) = jit(train), jax.jit(train)(params, x, 0.1)
    step(params, x, 0.1)

    def value():
        pending = step(params, x, 0.1)[1]
        assert isinstance(pending, PendingArray) and isinstance(pending, jax.Array)
        return pending

    assert value().shape == () and value().dtype == np.float32 and not value().weak_type
    assert value().devices() == expected.devices() and value().committed is False
    assert value().sharding == expected.sharding and value().aval == expected.aval
    assert not is_looked_at(value())
    for look in (
        float,
        np.asarray,
        np.from_dlpack,
        memoryview,
        lambda v: np.frombuffer(v, np.float32)[0],
        jnp.sin,
        jax.jit(lambda v: v * 2),
        jax.device_get,
        jax.device_put,
        jax.block_until_ready,
        lambda v: v.block_until_ready(),
        lambda v: v + 1,
        lambda v: 1 - v,
        lambda v: np.ones(2) * v,
        lambda v: jnp.ones(2) @ jnp.stack([v, v]),
        lambda v: v.item(),
        lambda v: v > 0,
        lambda v: v.at[...].set(3),
        lambda v: v.astype(jnp.float16),
        lambda v: pickle.loads(pickle.dumps(v)),
        copy.deepcopy,
        lambda v: jax.grad(lambda a: a * v)(2.0),
        lambda v: jax.jit(lambda a: a + v)(2.0),
        lambda v: jax.lax.add(v, v),
        lambda v: jnp.array([v, v]),
    ):
        found, wanted = look(value()), look(expected)
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)
        assert isinstance(found, jax.Array) == isinstance(wanted, jax.Array)
    assert f"{value():.3f}" == f"{expected:.3f}"
    looked = value()
    float(looked)
    assert repr(looked) == repr(looked + 0) and str(looked) == str(looked + 0)
    assert looked.is_ready() and not looked.is_deleted()
    with pytest.raises(TypeError, match="unhashable"):
        hash(value())
    looked.delete()
    assert looked.is_deleted()


def test_what_is_passed_on_needs_no_look(start):
    params, x = start
    step, reference = jit(train), jax.jit(train)
    ours, _ = step(params, x, 0.1)
    theirs, _ = reference(params, x, 0.1)
    chain = []
    for _ in range(10):
        ours, _ = step(ours, x, 0.1)
        theirs, _ = reference(theirs, x, 0.1)
        chain.append(ours)
    assert not any(map(is_looked_at, jax.tree.leaves(chain)))
    assert_close(ours, theirs)
    # Nor does what another step or another program of the same is given, but it is awaited.
    other = jit(lambda p: jax.tree.map(lambda leaf: leaf.sum(), p))
    for _ in range(3):
        ours, _ = step(ours, x, 0.1)
        theirs, _ = reference(theirs, x, 0.1)
        assert_close(other(ours), jax.tree.map(lambda leaf: leaf.sum(), theirs))
    narrow = jnp.ones((2, 4))
    for batch in (narrow, x, narrow, x):
        ours, value = step(ours, batch, 0.1)
        theirs, expected = reference(theirs, batch, 0.1)
    assert_close((ours, value), (theirs, expected))


def test_arguments_may_be_changed_after_the_call():
    step = jit(lambda x: (x * 2, x.sum()))
    x = np.zeros(100_000, np.float32)
    step(x)
    results = []
    for i in range(6):
        x[:] = i
        results.append(step(x))
    x[:] = -1
    for i, (doubled, total) in enumerate(results):
        assert (np.asarray(doubled) == 2 * i).all() and float(total) == i * 100_000


def test_an_error_is_raised_at_the_look(divider):
    step, state, x = divider
    state, good = step(state, x, 2)
    state, bad = step(state, x, 0)
    for look in (np.asarray, lambda a: a.block_until_ready(), np.from_dlpack, jnp.sin, int):
        with pytest.raises(StepError, match=r"call 2 of 'divide' failed: .*division by zero"):
            look(bad)
    assert "not looked at" in repr(bad)
    assert (np.asarray(good) == x // 2).all()
    # What it was to give for what was donated is none either, whoever looks and however often.
    assert isinstance(state, ResidentArray)
    for _ in range(2):
        with pytest.raises(StepError, match="call 2 of 'divide' failed"):
            np.asarray(state)
        with pytest.raises(StepError, match="call 2 of 'divide' failed"):
            step(state, x, 1)
    # It was told, so other values may be tried.
    fresh, value = step(np.zeros(2, np.float32), x, 1)
    assert (np.asarray(value) == x).all() and (np.asarray(fresh) == 1).all()


def test_an_error_that_nobody_looks_at_is_raised_by_the_next_call(divider):
    step, state, x = divider
    step(state, x, 0)
    step._settle()
    with pytest.raises(StepError, match="call 1 of 'divide', whose results nobody has looked at"):
        step(np.zeros(2, np.float32), x, 1)
    fresh, value = step(np.zeros(2, np.float32), x, 1)
    assert (np.asarray(value) == x).all() and (np.asarray(fresh) == 1).all()


def test_what_takes_a_failed_call_s_values_is_not_run(divider):
    step, state, x = divider
    with pytest.raises(StepError, match="division by zero"):
        for _ in range(5):  # as many as are given before the first has ended
            state, value = step(state, x, 0)
        np.asarray(value)
    with pytest.raises(StepError, match="was not run, because|failed"):
        np.asarray(state)
    fresh, value = step(np.zeros(2, np.float32), x, 3)
    assert (np.asarray(value) == x // 3).all() and (np.asarray(fresh) == 1).all()


def test_a_step_that_is_dropped_tells_its_error(divider, monkeypatch):
    _, _, x = divider
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: told.append(str(raised.exc_value)))
    step = jit(divide)
    for n in (1, 0):
        step(np.zeros(2, np.float32), x, n)
    del step
    gc.collect()
    assert len(told) == 1 and "nobody has looked at, failed: device host0: division" in told[0]


def test_without_dispatch_every_call_is_waited_for(start, divider):
    params, x = start
    step = jit(train, async_dispatch=False)
    step(params, x, 0.1)
    assert type(step(params, x, 0.1)[1]) is type(x)
    _, _, numbers = divider
    step = jit(divide, async_dispatch=False, donate_argnums=0)
    step(np.zeros(2, np.float32), numbers, 1)
    with pytest.raises(StepError):
        step(np.zeros(2, np.float32), numbers, 0)
    step(np.zeros(2, np.float32), numbers, 1)


def test_steps_with_host_calls_are_waited_for():
    seen = []
    step = jit(lambda x: (jax.debug.callback(lambda v: seen.append(int(v)), x), x + 1)[1])
    with pytest.warns(UserWarning, match="JAX computes"):
        step(0)
    for i in range(1, 4):
        assert type(step(i)) is not PendingArray
    assert seen == [0, 1, 2, 3]


def test_threads_give_and_look(start):
    params, x = start
    step, reference = jit(train), jax.jit(train)
    step(params, x, 0.1)

    def use(number):
        mine = jax.tree.map(lambda leaf: leaf + number, params)
        theirs = mine
        values = []
        for _ in range(20):
            mine, value = step(mine, x, 0.01)
            theirs, expected = reference(theirs, x, 0.01)
            values.append((value, expected))
        for value, expected in values:
            np.testing.assert_allclose(float(value), float(expected), rtol=1e-4)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(4)))


def test_one_array_is_looked_at_by_many():
    step = jit(lambda x: x.cumsum())
    x = np.arange(50_000, dtype=np.float32)
    step(x)
    for _ in range(5):
        pending = step(x)
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _, p=pending: float(p[10]), range(8)))
        assert found == [55.0] * 8


def long_step():
    def step(x):
        return jax.lax.fori_loop(0, 3_000_000, lambda i, v: v * 0.5 + 1, x)

    return jit(step, machine="host:1")


def test_a_signal_ends_the_wait_and_not_the_step():
    step, x = long_step(), np.ones(8, np.float32)
    step(x)
    value = step(x)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
            value.block_until_ready()
            while True:  # it had ended before
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (np.asarray(value) == 2).all()
    assert (np.asarray(step(x)) == 2).all()


def test_a_fork_waits_for_the_step():
    step, x = long_step(), np.ones(8, np.float32)
    step(x)
    value = step(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if value.is_ready() and (np.asarray(value) == 2).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (np.asarray(step(x)) == 2).all()


def test_the_process_ends_after_its_steps():
    program = """
import sys
import numpy as np, jax
from jax_support import jit
import test_dispatch
from baechi.steps.library import StepLibrary
StepLibrary.addresses = test_dispatch.with_errors(StepLibrary.addresses)
step = jit(test_dispatch.divide)
x = np.arange(4, dtype=np.int32)
given = [np.zeros(2, np.float32), x]
step(*given, 1)
for n in eval(sys.argv[1]):
    kept = step(*given, n)
print("end")
"""
    for divisors, told in (("[1, 2, 3]", ""), ("[1, 0]", "nobody has looked at, failed")):
        ran = subprocess.run(
            [sys.executable, "-c", program, divisors],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=300,
        )
        assert ran.returncode == 0 and ran.stdout == "end\n"
        assert (told in ran.stderr) and (bool(told) or "call" not in ran.stderr)
