# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps take and give arrays of other libraries where they lie: those of PyTorch and JAX on the
host, and such as GPUs have, in the memory of the fake driver (unittests/Runtime/FakeCuda)."""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import native
from baechi.steps import dlpack
from baechi.steps.library import StepLibrary
from baechi.steps.library_file import StepError

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("BAECHI_TOOLS", ROOT / "build/release/bin"))
RUN = TOOLS / "baechi-run"
FAKE = TOOLS.parent / "lib" / "libBaechiFakeCuda.so"
pytestmark = pytest.mark.skipif(not RUN.exists(), reason=f"{RUN} is not built")

# A product, so that no GPU code is needed.
PRODUCT = """
func.func @step(%a: tensor<4x8x{type}>, %b: tensor<8x3x{type}>) -> tensor<4x3x{type}> {{
  %zero = arith.constant 0.0 : {type}
  %e = tensor.empty() : tensor<4x3x{type}>
  %f = linalg.fill ins(%zero : {type}) outs(%e : tensor<4x3x{type}>) -> tensor<4x3x{type}>
  %0 = linalg.matmul ins(%a, %b : tensor<4x8x{type}>, tensor<8x3x{type}>)
      outs(%f : tensor<4x3x{type}>) -> tensor<4x3x{type}>
  return %0 : tensor<4x3x{type}>
}}
"""


def emit(folder, machine, type="f32"):
    (folder / "step.mlir").write_text(PRODUCT.format(type=type))
    file = folder / f"step_{machine.split(':')[0]}_{type}.so"
    options = ("--costs=roofline", "--emit=so", f"--machine={machine}", f"--output={file}")
    native.run(RUN, folder / "step.mlir", *options)
    return file


def factors(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 8), (8, 3))]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    step = StepLibrary(emit(tmp_path_factory.mktemp("host"), "host:1@1MiB"))
    yield step
    step.close()


def test_arrays_of_torch_go_in_and_out(host):
    torch = pytest.importorskip("torch")
    a, b = map(torch.from_numpy, factors())
    out = torch.full((4, 3), -1.0)
    place = out.data_ptr()
    for i, value in enumerate((a, b)):
        host.set_argument(i, value)
    host.run()
    host.read_result(0, out)
    assert out.data_ptr() == place
    assert torch.equal(out, a @ b)


def test_arrays_of_jax_go_in(host):
    jnp = pytest.importorskip("jax.numpy")
    a, b = map(jnp.asarray, factors(1))
    for i, value in enumerate((a, b)):
        host.set_argument(i, value)
    host.run()
    np.testing.assert_array_equal(host.result(0), np.asarray(a @ b))
    with pytest.raises(BufferError, match="the array may not be written to: give another one"):
        host.read_result(0, jnp.zeros((4, 3)))


def test_short_floats(tmp_path):
    """NumPy's own reader of DLPack has no bfloat16."""
    torch = pytest.importorskip("torch")
    step = StepLibrary(emit(tmp_path, "host:1@1MiB", "bf16"))
    a, b = (torch.from_numpy(value).to(torch.bfloat16) for value in factors(2))
    out = torch.empty((4, 3), dtype=torch.bfloat16)
    step.set_argument(0, a)
    step.set_argument(1, b)
    step.run()
    step.read_result(0, out)
    assert torch.equal(out, a @ b)
    step.close()


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.zeros((4, 8), np.int32), TypeError, r"is f32 of shape \(4, 8\), the array is i32 of"),
        (np.zeros((4, 8), ">f4"), TypeError, "of a type that no step has"),
        (np.zeros((4, 4), np.complex64), TypeError, "of a type that no step has"),
        (np.zeros((8, 4), np.float32), TypeError, r"the array is f32 of shape \(8, 4\)"),
        (np.zeros(32, np.float32), TypeError, r"the array is f32 of shape \(32,\)"),
        (np.zeros((4, 8), np.float32, order="F"), BufferError, "is not in C's order"),
        (np.broadcast_to(np.float32(1), (4, 8)), BufferError, "is not in C's order"),
    ],
)
def test_arrays_of_numpy_that_do_not_fit_are_refused(host, value, error, words):
    """As many bytes are no sign that they mean the same."""
    with pytest.raises(error, match=words):
        host.set_argument(0, value)


def test_results_are_not_written_where_they_do_not_fit(host):
    for shape, type in (((4, 3), np.int32), ((3, 4), np.float32), ((3, 2), np.float64)):
        with pytest.raises(TypeError, match=r"is f32 of shape \(4, 3\), the array is"):
            host.read_result(0, np.zeros(shape, type))
    fixed = np.zeros((4, 3), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(BufferError, match="may not be written to"):
        host.read_result(0, fixed)
    assert not fixed.any()


def test_what_does_not_fit_is_refused(host):
    torch = pytest.importorskip("torch")
    for value, error, words in (
        (torch.zeros(4, 7), TypeError, r"is f32 of shape \(4, 8\), the array is f32 of shape"),
        (torch.zeros(4, 8).double(), TypeError, "the array is f64"),
        (torch.zeros(4, 8, dtype=torch.complex64), TypeError, "of a type that no step has"),
        (torch.zeros(8, 4).T, BufferError, "is not in C's order: give a copy that is"),
        ([1.0], TypeError, "list is no array: give one of NumPy, or one with __dlpack__"),
    ):
        with pytest.raises(error, match=words):
            host.set_argument(0, value)
    with pytest.raises(StepError, match="argument 9 does not exist"):
        host.set_argument(9, torch.zeros(1))
    with pytest.raises(StepError, match="result 9 does not exist"):
        host.read_result(9, torch.zeros(1))


def test_read_only_arrays_are_known():
    fixed = np.zeros(3, np.float32)
    fixed.flags.writeable = False
    assert not dlpack.borrow(fixed).writable
    assert dlpack.borrow(np.zeros(3, np.float32)).writable


class Tensor:
    """Memory of a device as DLPack tells it, of a shape and single precision."""

    def __init__(self, address, shape, device_type=2):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.device = (device_type, 0)
        self.managed = dlpack.Versioned(major=1, minor=0)
        self.managed.tensor = dlpack.Tensor(
            data=address,
            device_type=device_type,
            ndim=len(shape),
            code=2,
            bits=32,
            lanes=1,
            shape=self.shape,
        )

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream == 1, "what the GPU still does to the array has no order"
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


def test_arrays_on_a_gpu_need_a_gpu(host):
    with pytest.raises(BufferError, match="lies on host0 of kind 'host': give an array on the ho"):
        host.set_argument(0, Tensor(4096, (4, 8)))
    with pytest.raises(BufferError, match="DLPack's type 8: copy it to the host"):
        host.set_argument(0, Tensor(4096, (4, 8), device_type=8))


def run_on_the_fake(file):
    """In a process of its own. Copies of the host's memory fail, but for those that must not."""
    fake = ctypes.CDLL(str(FAKE))
    fake.fakeCudaMisuse.restype = ctypes.c_char_p
    step = StepLibrary(file)
    context = ctypes.c_void_p()
    assert fake.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert fake.cuCtxSetCurrent(context) == 0
    a, b = factors(3)
    tensors, places = [], []
    for shape in ((4, 8), (8, 3), (4, 3)):
        place = ctypes.c_ulonglong()
        assert fake.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4 * np.prod(shape))) == 0
        places.append(place)
        tensors.append(Tensor(place.value, shape))
    # Its memory is the host's.
    for place, value in zip(places, (a, b), strict=False):
        ctypes.memmove(place.value, value.ctypes.data, value.nbytes)
    fake.fakeCudaFail(b"cuMemcpyHtoDAsync")
    with pytest.raises(StepError, match="the device's memory cannot be written: CUDA_ERROR_UNK"):
        step.set_argument(0, a)
    for i in range(2):
        step.set_argument(i, tensors[i])
    step.run()
    fake.fakeCudaFail(b"cuMemcpyDtoHAsync")
    with pytest.raises(StepError, match="the device's memory cannot be read: CUDA_ERROR_UNKNOWN"):
        step.result(0)
    step.read_result(0, tensors[2])
    # The arguments, in place of what they were set by.
    for i in range(2):
        ctypes.memset(places[i].value, 0, (a, b)[i].nbytes)
        step.read_argument(i, tensors[i])
    fake.fakeCudaFail(None)
    for place, value in zip(places, (a, b), strict=False):
        assert ctypes.string_at(place.value, value.nbytes) == value.tobytes()
    out = np.empty((4, 3), np.float32)
    ctypes.memmove(out.ctypes.data, places[2].value, out.nbytes)
    np.testing.assert_array_equal(out, a @ b)
    # The same through the host.
    np.testing.assert_array_equal(step.result(0), a @ b)
    call_without_waiting(fake, step, places, tensors)
    step.close()
    for place in places:
        assert fake.cuMemFree_v2(place) == 0
    assert fake.cuDevicePrimaryCtxRelease_v2(0) == 0
    print("misuse:", fake.fakeCudaMisuse().decode() or "none")


# Calls that make the host wait for copies, or make them through it.
WAITS = (b"cuCtxSynchronize", b"cuStreamQuery", b"cuMemcpyHtoDAsync", b"cuMemcpyDtoHAsync")


def call_without_waiting(fake, step, places, tensors):
    """Calls whose arguments and results lie on the GPU wait for the step's end alone, and run after
    what was begun on the legacy stream."""
    out = np.empty((4, 3), np.float32)
    for seed, function in enumerate(WAITS):
        a, b = factors(5 + seed)
        for place, value in zip(places, (a, b), strict=False):
            # Returns before the copy has landed, as the driver's own does.
            source, size = value.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(value.nbytes)
            assert fake.cuMemcpyHtoD_v2(place, source, size) == 0
        fake.fakeCudaFail(function)
        step.call({0: tensors[0], 1: tensors[1]}, {0: tensors[2]})
        fake.fakeCudaFail(None)
        ctypes.memmove(out.ctypes.data, places[2].value, out.nbytes)
        np.testing.assert_array_equal(out, a @ b)
    # One of each side; nothing of the last call is copied again.
    ctypes.memset(places[2].value, 0, out.nbytes)
    step.call({0: factors(9)[0], 1: tensors[1]}, {0: out})
    np.testing.assert_array_equal(out, factors(9)[0] @ b)
    assert ctypes.string_at(places[2].value, out.nbytes) == bytes(out.nbytes)
    # A call that fails has let go of what it was lent, and the next one runs.
    for function in (b"cuStreamWaitEvent", b"cuMemcpyAsync"):
        fake.fakeCudaFail(function)
        with pytest.raises(StepError, match="the device's memory cannot be written: CUDA_ERROR_"):
            step.call({0: tensors[0]}, {})
        fake.fakeCudaFail(None)
        ctypes.memset(places[0].value, 0, a.nbytes)
        step.call({0: a, 1: b}, {0: out})
        np.testing.assert_array_equal(out, a @ b)
    with pytest.raises(TypeError, match=r"is f32 of shape \(4, 8\), the array is"):
        step.call({0: tensors[1]}, {})
    with pytest.raises(TypeError, match="list is no array: give one of NumPy"):
        step.call({0: [1.0]}, {})


def jit_on_the_fake():
    """In a process of its own: calls of a JAX step whose arguments lie on the GPU. Copies of the
    host's memory fail, and so do those to the host."""
    import baechi
    from baechi.steps import gpu_memory
    from baechi.steps.gpu_array import GpuArray

    fake = ctypes.CDLL(str(FAKE))
    fake.fakeCudaMisuse.restype = ctypes.c_char_p

    @baechi.jit(machine="cuda:1@1MiB", costs="roofline", donate_argnums=0)
    def step(p, x):
        q = p @ x
        return q, q @ x

    rng = np.random.default_rng(4)
    p, x = (np.eye(8, dtype=np.float32)[rng.permutation(8)] for _ in range(2))
    on_gpu = GpuArray((8, 8), np.dtype(np.float32), 0)
    ctypes.memmove(on_gpu._address.value, x.ctypes.data, x.nbytes)  # its memory is the host's
    # What the step was compiled for: its values are looked at once.
    q, y = step(p, on_gpu)
    assert isinstance(y, GpuArray), type(y)
    assert "gpu=0" in repr(y) and (y.shape, y.ndim, y.size) == ((8, 8), 2, 64)
    for function in WAITS:
        fake.fakeCudaFail(function)
        q, y = step(q, on_gpu)
        q, y = step(q, y)
    fake.fakeCudaFail(b"cuMemcpyDtoHAsync")
    with pytest.raises(StepError, match="cuMemcpyDtoHAsync_v2 of a result's memory on the GPU f"):
        np.asarray(y)
    q, z = step(q, y)
    fake.fakeCudaFail(None)
    want, factor = p, x
    # None: the call took what the one before had returned.
    for takes in (x, *(x, None) * len(WAITS), None):
        factor = factor if takes is None else takes
        want = want @ factor
        factor = want @ factor
    np.testing.assert_array_equal(np.asarray(q), want)
    np.testing.assert_array_equal(np.asarray(z), factor)
    # What takes a capsule of either form has the memory itself, as long as it holds it.
    for version in ((1, 0), None):
        taken = dlpack.borrow(z) if version else Old(z)
        assert taken.address == z._address.value
    # The host's arrays give the host's.
    q, y = step(np.asarray(q), x)
    assert not isinstance(y, GpuArray)
    # Memory of a call that fails may still be written: who has it next waits.
    gpu_memory.release()
    fake.fakeCudaFail(b"cuMemcpyAsync")
    with pytest.raises(StepError):
        step(p, on_gpu)
    fake.fakeCudaFail(None)
    gc.collect()
    assert [awaited for each in gpu_memory._kept._free.values() for _, awaited in each] == [True]
    del q, y, z, taken, on_gpu, step
    gc.collect()
    gpu_memory.release()
    print("misuse:", fake.fakeCudaMisuse().decode() or "none")


def memory_on_the_fake():
    """In a process of its own: results' memory is used again, awaited where others may read it."""
    from baechi.steps import gpu_memory
    from baechi.steps.gpu_array import GpuArray

    fake = ctypes.CDLL(str(FAKE))
    fake.fakeCudaMisuse.restype = ctypes.c_char_p

    def made():
        return GpuArray((8, 8), np.dtype(np.float32), 0)

    first, second = made(), made()
    places = {first._address.value, second._address.value}
    assert len(places) == 2
    del first, second
    for function in (b"cuMemAlloc", b"cuCtxSynchronize"):
        fake.fakeCudaFail(function)
        first, second = made(), made()
        assert {first._address.value, second._address.value} == places
        del first, second
    first, second = made(), made()
    # A step has ended what it does with an argument.
    kept = dlpack.borrow(first)
    del first, kept
    # What others had is awaited when there is enough of it, and then all of it.
    others = [made() for _ in range(gpu_memory._SPARE)]
    capsules = [each.__dlpack__() for each in others]
    del others, capsules
    with pytest.raises(StepError, match="cuCtxSynchronize of a result's memory"):
        made()
    fake.fakeCudaFail(None)
    others = [made()]
    fake.fakeCudaFail(b"cuCtxSynchronize")
    others += [made() for _ in range(gpu_memory._SPARE - 1)]
    fake.fakeCudaFail(None)
    del others
    # As much as there may be is kept, and given back where CUDA has no more.
    large = GpuArray((gpu_memory._MOST_KEPT,), np.dtype(np.int8), 0)
    address = large._address.value
    del large
    assert not gpu_memory._kept._free.get((0, gpu_memory._MOST_KEPT))
    del second
    gpu_memory.release()
    gc.collect()
    assert address and not gpu_memory._kept._free
    print("misuse:", fake.fakeCudaMisuse().decode() or "none")


class Old:
    """Takes an array as libraries do that know no versions of DLPack."""

    def __init__(self, value):
        self.capsule = value.__dlpack__()
        pointer = dlpack._pointer_of(self.capsule, b"dltensor")
        self.address = dlpack.Tensor.from_address(pointer).data


@pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built")
def test_arrays_on_a_gpu_do_not_go_through_the_host(tmp_path):
    file = emit(tmp_path, "cuda:1@1MiB")
    on_the_fake(f"run_on_the_fake({str(file)!r})")


@pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built")
def test_jit_takes_and_gives_arrays_on_a_gpu():
    pytest.importorskip("jax")
    on_the_fake("jit_on_the_fake()")


@pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built")
def test_memory_of_results_on_a_gpu_is_used_again():
    on_the_fake("memory_on_the_fake()")


def on_the_fake(call):
    fake = {"BAECHI_CUDA_LIBRARY": str(FAKE), "BAECHI_CUBLASLT_LIBRARY": str(FAKE)}
    said = subprocess.run(
        [sys.executable, "-c", f"import test_dlpack; test_dlpack.{call}"],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT / "python" / "tests",
        env=os.environ | fake,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout == "misuse: none\n"
