# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in a GPU's memory, which other libraries take by DLPack without a copy."""

from __future__ import annotations

import contextlib
import ctypes
import math
from typing import Any

import numpy as np

from baechi.steps import dlpack, gpu_memory
from baechi.steps.gpu_ending import Ending
from baechi.steps.library import StepLibrary

_NON_BLOCKING = 1  # a flag of streams
_NOT_ORDERED = -1  # of DLPack: the consumer orders nothing by streams
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR]
# Of a capsule that is about to go, which may not be counted any more.
_is_unused = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of_unused = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def gpu_of(program: dict[str, Any], device: int) -> int:
    """The GPU, of those that the process sees, that a device of kind 'cuda' lies on: each its
    own where there are enough, else neighbours share one (drivers/cuda/CudaRoutes.h)."""
    gpus = ctypes.c_int()
    gpu_memory.call("cuDeviceGetCount", ctypes.byref(gpus))
    cudas = [i for i, info in enumerate(program["devices"]) if info["kind"] == "cuda"]
    ordinal = cudas.index(device)
    return ordinal if len(cudas) <= gpus.value else ordinal * gpus.value // len(cudas)


def is_on_gpu(value: Any) -> bool:
    if isinstance(value, np.ndarray) or not dlpack.is_array(value):
        return False
    try:
        return int(value.__dlpack_device__()[0]) == dlpack.CUDA
    except (BufferError, TypeError):  # JAX's of several devices; deleted ones: who reads says so
        return False


def is_fixed(value: Any) -> bool:
    """Whether nobody changes an array of a GPU after the call that it was given to."""
    if isinstance(value, GpuArray):
        return value.is_fixed
    return hasattr(value, "at") and hasattr(value, "is_deleted") and not value.is_deleted()  # JAX's


class GpuArray:
    """An array that a step has returned, in the memory of the GPU where the step made it.
    `torch.from_dlpack` and `jax.dlpack.from_dlpack` share it; `numpy.asarray` copies it to the
    host; given to a step on that GPU, it is copied within the GPU. The step may still be about to
    write it: streams that are told of it by DLPack come after that, and who looks on the host
    waits."""

    __hash__ = None  # type: ignore[assignment]  # as JAX's arrays
    weak_type = False

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], gpu: int):
        self.shape, self.dtype, self.gpu = tuple(shape), np.dtype(dtype), gpu
        self._is_awaited = False  # by who has its memory next
        self._ending: Ending | None = None  # of the call that writes it
        self._last_use: Ending | None = None  # of the last call that writes or reads it
        self._address = ctypes.c_uint64(gpu_memory.allocate(gpu, self.nbytes))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __del__(self) -> None:
        if address := getattr(self, "_address", None):
            with contextlib.suppress(Exception):
                gpu_memory.give_back(self.gpu, self.nbytes, address.value, self._is_awaited)

    def comes_with(self, ending: Ending) -> None:
        self._ending = self._last_use = ending

    def is_read_until(self, ending: Ending) -> None:
        self._last_use = ending

    def block_until_ready(self) -> GpuArray:
        """Raises the StepError of the call that was to write it, if that has failed."""
        if self._ending is not None:
            self._ending.wait()
        return self

    def is_ready(self) -> bool:
        return self._ending is None or self._ending.has_ended()

    @property
    def is_fixed(self) -> bool:
        """Whether nobody else can have changed it."""
        return not self._is_awaited

    def await_before_reuse(self) -> None:
        """Others may read or write it on the GPU when it goes."""
        self._is_awaited = True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self.block_until_ready()
        value = np.empty(self.shape, self.dtype)
        with gpu_memory.selected(self.gpu):
            place, size = value.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(value.nbytes)
            stream = ctypes.c_void_p()
            gpu_memory.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(_NON_BLOCKING))
            try:
                gpu_memory.call("cuMemcpyDtoHAsync_v2", place, self._address, size, stream)
                gpu_memory.call("cuCtxSynchronize")
            finally:
                gpu_memory.call("cuStreamDestroy_v2", stream)
        return value if dtype is None else value.astype(dtype, copy=False)

    def __jax_array__(self) -> Any:
        from baechi.steps import resident_jax

        return resident_jax.as_array(np.asarray(self))

    def __repr__(self) -> str:
        return f"GpuArray(shape={self.shape}, dtype={self.dtype}, gpu={self.gpu})"

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.gpu

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """`stream` comes after the calls that use the memory."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the array is given where it lies, without a copy")
        if self._last_use is not None and stream == _NOT_ORDERED:
            self._last_use.wait()
        elif self._last_use is not None:
            self._last_use.order(stream)
        self.await_before_reuse()
        return self.capsule_for_steps(max_version=max_version)

    def capsule_for_steps(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None
    ) -> Any:
        """The same for one who has ended what it does with it when the array goes."""
        return _capsule(self, versioned=max_version is not None and max_version >= (1, 0))


# What capsules lend, by the address of their tensors, until they are deleted.
_lent: dict[int, tuple[Any, ...]] = {}


def _capsule(array: GpuArray, versioned: bool) -> Any:
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    managed: Any = dlpack.Versioned(major=1) if versioned else dlpack.Managed()
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    managed.tensor = dlpack.Tensor(
        data=array._address.value,
        device_type=dlpack.CUDA,
        device_id=array.gpu,
        ndim=array.ndim,
        code=dlpack.code_of(array.dtype),
        bits=8 * array.dtype.itemsize,
        lanes=1,
        shape=shape,
    )
    address = ctypes.addressof(managed)
    _lent[address] = (array, managed, shape)
    return _new_capsule(address, dlpack.VERSIONED if versioned else dlpack.PLAIN, _drop)


def _let_go(address: int, lent: dict[int, tuple[Any, ...]] = _lent) -> None:
    # At the process's end the module's names are gone before the last capsules.
    lent.pop(address, None)


def _let_go_unused(capsule: int) -> None:
    """Who took a capsule's tensor has given it another name."""
    for name in (dlpack.VERSIONED, dlpack.PLAIN):
        if _is_unused(capsule, name):
            _lent.pop(_pointer_of_unused(capsule, name), None)


_delete, _drop = _DELETER(_let_go), _DESTRUCTOR(_let_go_unused)


def device_of(library: StepLibrary, border: str, index: int) -> int | None:
    """The CUDA device that has an argument (or result) whole, with no copies elsewhere than on
    such devices; None: there is none."""
    info = library.program[border][index]
    if info.get("pieces"):
        return None
    places = [info["device"], *(place["device"] for place in info.get("copies", []))]
    kinds = {library.program["devices"][place]["kind"] for place in places}
    return info["device"] if kinds == {"cuda"} else None
