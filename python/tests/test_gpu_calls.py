# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of `baechi.jit` that return before a GPU has ended them, on the fake driver, whose streams
fall behind and stop when asked to. Each test runs in a process of its own."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from test_dlpack import FAKE, ROOT, RUN

pytest.importorskip("jax")
pytestmark = [
    pytest.mark.skipif(not RUN.exists(), reason=f"{RUN} is not built"),
    pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built"),
]


class Options(ctypes.Structure):
    """FakeOptions (unittests/Runtime/FakeCuda/FakeCuda.h)."""

    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("devices", ctypes.c_int),
        ("memory_bytes", ctypes.c_size_t),
        ("code_bytes", ctypes.c_size_t),
        ("node_bytes", ctypes.c_size_t),
        ("fail_call", ctypes.c_int),
        ("fail_with", ctypes.c_int),
        ("break_launch", ctypes.c_int),
        ("peer_access", ctypes.c_bool),
        ("peer_error", ctypes.c_int),
        ("fail_function", ctypes.c_char_p),
        ("fast_algorithm", ctypes.c_int),
        ("refused_compute", ctypes.c_int),
        ("refuses_convolutions", ctypes.c_bool),
        ("hang_launch", ctypes.c_int),
        ("longest_delay", ctypes.c_int),
        ("slow_function", ctypes.c_char_p),
        ("slow_microseconds", ctypes.c_int),
        ("nccl_fail_with", ctypes.c_int),
        ("nccl_break_group", ctypes.c_int),
    ]


def the_fake(seed=1):
    fake = ctypes.CDLL(str(FAKE))
    fake.fakeCudaMisuse.restype = ctypes.c_char_p
    options = Options(seed=seed, devices=1, memory_bytes=512 << 20, fail_with=999)
    options.fast_algorithm = options.refused_compute = -1
    options.longest_delay, options.nccl_fail_with = 3000, 2
    fake.fakeCudaReset(ctypes.byref(options))
    return fake


def product(p, x):
    return p @ x


def trained(p, x):
    q = p @ x
    return q, q @ x


def compiled(step, **options):
    import baechi

    return baechi.jit(step, machine="cuda:1@1MiB", costs="roofline", **options)


def permutation(seed):
    return np.eye(8, dtype=np.float32)[np.random.default_rng(seed).permutation(8)] * 1.0


def there(value):
    from baechi.steps.gpu_array import GpuArray

    made = GpuArray(value.shape, value.dtype, 0)
    ctypes.memmove(made._address.value, value.ctypes.data, value.nbytes)  # its memory is the host's
    return made


def stream_of(fake):
    """Another library's."""
    made, context = ctypes.c_void_p(), ctypes.c_void_p()
    assert fake.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert fake.cuCtxSetCurrent(context) == 0
    assert fake.cuStreamCreate(ctypes.byref(made), 1) == 0
    return made


def ended(fake):
    """Nothing of a test is left, and nothing was out of order."""
    from baechi.steps import gpu_memory

    gc.collect()
    gpu_memory.release()
    said = fake.fakeCudaMisuse().decode()
    assert not said, said


def returns_early():
    fake = the_fake()
    step = compiled(product)
    p, x = there(permutation(1)), there(permutation(2))
    step(p, x)
    fake.fakeCudaHold()
    y = step(p, x)
    z = step(y, x)  # takes what is not there
    assert not y.is_ready() and not z.is_ready()
    fake.fakeCudaRelease()
    wanted = permutation(1) @ permutation(2)
    np.testing.assert_array_equal(np.asarray(z), wanted @ permutation(2))
    np.testing.assert_array_equal(np.asarray(y), wanted)
    assert y.is_ready() and y.block_until_ready() is y
    del p, x, y, z, step
    ended(fake)


def keeps_the_order():
    """Launched, captured and replayed, while streams fall behind and memory is used again."""
    for seed in range(3):
        fake = the_fake(seed)
        step = compiled(trained, donate_argnums=0)
        q, x = permutation(1), permutation(2)
        wanted_q, wanted_x = q, x
        x = there(x)
        kept = []
        for i in range(30):
            q, x = step(q, x)
            wanted_q = wanted_q @ wanted_x
            wanted_x = wanted_q @ wanted_x
            if i % 7 == 0:
                kept.append((x, wanted_x))
            if i % 11 == 5:
                np.testing.assert_array_equal(np.asarray(q), wanted_q)
        for value, wanted in kept:
            np.testing.assert_array_equal(np.asarray(value), wanted)
        np.testing.assert_array_equal(np.asarray(q), wanted_q)
        old, (q, x) = q, step(q, x)
        with pytest.raises(RuntimeError, match="was donated to a later step"):
            np.asarray(old)
        del kept, value, q, x, old, step
        ended(fake)


def tells_errors_at_the_result():
    from baechi.steps.library_file import StepError

    fake = the_fake()
    step = compiled(product)
    p, x = there(permutation(1)), there(permutation(2))
    before = step(p, x).block_until_ready()
    fake.fakeCudaHold()
    y = step(p, x)
    fake.fakeCudaBreak()
    fake.fakeCudaRelease()
    for look in (np.asarray, lambda y: y.block_until_ready(), lambda y: y.__dlpack__(stream=1)):
        with pytest.raises(StepError, match="had returned failed on GPU 0: CUDA_ERROR_"):
            look(y)
    assert before.is_ready()
    with pytest.raises(StepError, match="ILLEGAL_ADDRESS"):
        step(p, x)


def takes_arguments_that_may_change():
    """What others have is read when the call returns, and the rest before they get it."""
    fake = the_fake()
    step = compiled(product)
    p, x = there(permutation(1)), there(permutation(2))
    step(p, x)
    shared = there(permutation(3))
    capsule = shared.__dlpack__()
    fake.fakeCudaHold()
    threading.Timer(0.2, fake.fakeCudaRelease).start()
    begun = time.monotonic()
    y = step(p, shared)
    assert time.monotonic() - begun > 0.15 and y.is_ready()
    ctypes.memset(shared._address.value, 0, shared.nbytes)
    np.testing.assert_array_equal(np.asarray(y), permutation(1) @ permutation(3))
    # Given away while a call is about to read it: the other stream comes after.
    stream = stream_of(fake)
    fake.fakeCudaHold()
    y = step(p, x)
    assert not y.is_ready()
    taken = x.__dlpack__(stream=stream.value)
    place, size = ctypes.c_uint64(x._address.value), ctypes.c_size_t(x.nbytes)
    assert fake.cuMemsetD8Async(place, ctypes.c_ubyte(0), size, stream) == 0
    assert not y.is_ready()
    fake.fakeCudaRelease()
    np.testing.assert_array_equal(np.asarray(y), permutation(1) @ permutation(2))
    assert fake.cuCtxSynchronize() == 0 and fake.cuStreamDestroy_v2(stream) == 0
    assert ctypes.string_at(x._address.value, x.nbytes) == bytes(x.nbytes)
    # What others have is not taken to be what it was.
    np.testing.assert_array_equal(np.asarray(step(p, x)), np.zeros((8, 8)))
    del p, x, y, shared, capsule, taken, step
    ended(fake)


def gives_results_to_streams():
    fake = the_fake()
    step = compiled(product)
    p, x, copy = there(permutation(1)), there(permutation(2)), there(np.zeros((8, 8), np.float32))
    step(p, x)
    stream = stream_of(fake)
    fake.fakeCudaHold()
    y = step(p, x)
    taken = y.__dlpack__(stream=stream.value)  # does not wait
    size = ctypes.c_size_t(y.nbytes)
    to, source = (ctypes.c_uint64(each._address.value) for each in (copy, y))
    assert fake.cuMemcpyAsync(to, source, size, stream) == 0
    assert not y.is_ready()
    fake.fakeCudaRelease()
    assert fake.cuCtxSynchronize() == 0
    np.testing.assert_array_equal(np.asarray(copy), permutation(1) @ permutation(2))
    # Who orders nothing gets it when it is there.
    fake.fakeCudaHold()
    y = step(p, x)
    threading.Timer(0.2, fake.fakeCudaRelease).start()
    taken = y.__dlpack__(stream=-1)
    assert y.is_ready()
    assert fake.cuStreamDestroy_v2(stream) == 0
    del p, x, y, copy, taken, step
    ended(fake)


def leaves_arguments_that_stay():
    from baechi.steps.library import StepLibrary

    fake = the_fake()
    given = []
    places = StepLibrary._places

    def noted(library, arguments, results):
        given.append(sorted(arguments))
        return places(library, arguments, results)

    StepLibrary._places = noted
    step = compiled(product)
    p, x, other = (there(permutation(seed)) for seed in (1, 2, 3))
    for pair in ((p, x), (p, x), (p, other), (p, x), (x, x), (x, x), (p, other)):
        wanted = np.asarray(pair[0]) @ np.asarray(pair[1])
        np.testing.assert_array_equal(np.asarray(step(*pair)), wanted)
    assert given == [[0, 1], [], [1], [1], [0], [], [0, 1]], given
    # The host's arrays may change.
    host = permutation(4)
    step(p, host)
    host[:] = permutation(5)
    np.testing.assert_array_equal(np.asarray(step(p, host)), permutation(1) @ permutation(5))
    np.testing.assert_array_equal(np.asarray(step(p, x)), permutation(1) @ permutation(2))
    del p, x, other, pair, step
    ended(fake)


def waits_where_it_is_asked_to():
    fake = the_fake()
    step = compiled(product, async_dispatch=False)
    p, x = there(permutation(1)), there(permutation(2))
    step(p, x)
    fake.fakeCudaHold()
    threading.Timer(0.2, fake.fakeCudaRelease).start()
    assert step(p, x).is_ready()
    del p, x, step
    ended(fake)


@pytest.mark.parametrize(
    "test",
    [
        returns_early,
        keeps_the_order,
        tells_errors_at_the_result,
        takes_arguments_that_may_change,
        gives_results_to_streams,
        leaves_arguments_that_stay,
        waits_where_it_is_asked_to,
    ],
    ids=lambda test: test.__name__,
)
def test_calls_on_a_gpu(test):
    fake = {"BAECHI_CUDA_LIBRARY": str(FAKE), "BAECHI_CUBLASLT_LIBRARY": str(FAKE)}
    said = subprocess.run(
        [sys.executable, "-c", f"import test_gpu_calls; test_gpu_calls.{test.__name__}()"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT / "python" / "tests",
        env=os.environ | fake,
    )
    assert said.returncode == 0, said.stderr
