# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where arrays of other libraries lie, as DLPack tells it
(https://dmlc.github.io/dlpack/latest/): on the host or on a GPU, of any type that a step has.
NumPy's own reader knows neither GPUs nor bfloat16."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Any

import numpy as np

# Of DLDeviceType.
_CPU, CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_HOST = {_CPU, _CUDA_HOST, _CUDA_MANAGED}
# Of DLDataTypeCode, and the bits that a step's types of it have.
_TYPES = {(2, bits): f"f{bits}" for bits in (16, 32, 64)} | {(4, 16): "bf16", (6, 8): "i1"}
_TYPES |= {(code, bits): f"i{bits}" for code in (0, 1) for bits in (8, 16, 32, 64)}
_READ_ONLY = 1  # a flag of a managed tensor that has a version
# The legacy default stream: what made the tensor comes before what is done there.
_LEGACY_STREAM = 1
# Names of capsules that nobody has taken yet.
VERSIONED, PLAIN = b"dltensor_versioned", b"dltensor"


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Managed(ctypes.Structure):
    """Of DLPack before it had versions."""

    _fields_ = [
        ("tensor", Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_named = ctypes.pythonapi.PyCapsule_IsValid
_is_named.restype = ctypes.c_int
_is_named.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclasses.dataclass(frozen=True)
class Borrowed:
    """An array of someone else, which stays as long as this does."""

    address: int
    type: str  # a step's; "" where it has none
    shape: tuple[int, ...]
    contiguous: bool  # in C's order, without gaps
    on_gpu: bool
    writable: bool
    bytes: int
    owner: Any


def is_array(value: Any) -> bool:
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def borrow(value: Any) -> Borrowed:
    """Raises what `value` raises where it cannot be given, and BufferError where it lies on
    a device that is neither the host nor a CUDA GPU."""
    kind, _ = value.__dlpack_device__()
    if int(kind) not in _HOST | {CUDA}:
        raise BufferError(f"an array on a device of DLPack's type {int(kind)}: copy it to the host")
    options: dict[str, Any] = {} if int(kind) == _CPU else {"stream": _LEGACY_STREAM}
    give = getattr(value, "capsule_for_steps", value.__dlpack__)  # a GpuArray's
    try:
        capsule = give(**options, max_version=(1, 0))
    except TypeError:  # older than versions
        capsule = give(**options)
    # Whoever made the capsule lets the array go with it, as its name stays as it is.
    if _is_named(capsule, VERSIONED):
        versioned = Versioned.from_address(_pointer_of(capsule, VERSIONED))
        tensor, writable = versioned.tensor, not versioned.flags & _READ_ONLY
    else:
        tensor, writable = Tensor.from_address(_pointer_of(capsule, PLAIN)), True
    # JAX's arrays do not change, and DLPack without versions has no word for that.
    writable = writable and not hasattr(value, "at")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return Borrowed(
        address=(tensor.data or 0) + tensor.byte_offset,
        type=_TYPES.get((tensor.code, tensor.bits), "") if tensor.lanes == 1 else "",
        shape=shape,
        contiguous=_is_contiguous(tensor, shape),
        on_gpu=tensor.device_type == CUDA,
        writable=writable,
        bytes=math.prod(shape) * tensor.bits * tensor.lanes // 8,
        owner=capsule,
    )


def code_of(dtype: np.dtype[Any]) -> int:
    """Of DLDataTypeCode, for a type that a step has."""
    return {"b": 6, "u": 1, "i": 0, "f": 2}.get(dtype.kind, 4)  # numpy does not know bfloat16


def _is_contiguous(tensor: Tensor, shape: tuple[int, ...]) -> bool:
    if not tensor.strides or 0 in shape:
        return True
    expected = 1
    for i in reversed(range(len(shape))):
        if shape[i] != 1 and tensor.strides[i] != expected:
            return False
        expected *= shape[i]
    return True
