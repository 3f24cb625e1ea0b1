# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library behind it, by C's interface (include/Baechi-c/Replicas.h)."""

from __future__ import annotations

import ctypes
import functools
import pathlib
from typing import Any

import numpy as np

import baechi
from baechi.replicas.arguments import StoreError

_NAME = "libBaechiReplicasC.so"


class StoreOptions(ctypes.Structure):
    _fields_ = [
        ("workers", ctypes.c_int32),
        ("processes", ctypes.c_int32),
        ("staleness", ctypes.c_int32),
        ("tolerance", ctypes.c_int32),
        ("budget", ctypes.c_double),
        ("patience", ctypes.c_double),
        ("order", ctypes.c_int32),
        ("wait_for_lost", ctypes.c_int32),
        ("checked", ctypes.c_int32),
        ("round_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("simulated_bytes_per_second", ctypes.c_double),
        ("simulated_latency_ns", ctypes.c_int64),
    ]


class ExchangeOptions(ctypes.Structure):
    _fields_ = [
        ("machines", ctypes.c_int32),
        ("policy", ctypes.c_int32),
        ("servers", ctypes.c_int32),
        ("stored", ctypes.c_int32),
        ("asked", ctypes.c_int32),
        ("bytes_per_second", ctypes.c_double),
        ("server_bytes_per_second", ctypes.c_double),
        ("latency_ns", ctypes.c_int64),
        ("message_ns", ctypes.c_int64),
        ("slice", ctypes.c_int64),
        ("steps", ctypes.c_int64),
    ]


class ExchangeResult(ctypes.Structure):
    _fields_ = [
        ("step_ns", ctypes.c_int64),
        ("compute_ns", ctypes.c_int64),
        ("exchange_ns", ctypes.c_int64),
        ("pieces", ctypes.c_int64),
    ]


@functools.cache
def library() -> Any:
    for folder in baechi.__path__:
        if (file := pathlib.Path(folder) / _NAME).exists():
            return _typed(ctypes.CDLL(str(file)))
    raise ImportError(
        f"the library {_NAME} is not in {', '.join(baechi.__path__)}: in a checkout, build it "
        "with scripts/build release BaechiReplicasC"
    )


def _typed(found: Any) -> Any:
    found.baechiReplicasError.restype = ctypes.c_char_p
    found.baechiStoreCreate.restype = ctypes.c_void_p
    found.baechiStoreRestore.restype = ctypes.c_void_p
    found.baechiStoreTables.restype = ctypes.c_size_t
    found.baechiStoreTable.restype = ctypes.c_char_p
    found.baechiStoreSeconds.restype = ctypes.c_double
    found.baechiStoreNumbers.restype = ctypes.c_size_t
    found.baechiStoreSend.restype = ctypes.c_void_p
    found.baechiMessageBytes.restype = ctypes.c_void_p
    found.baechiCacheCreate.restype = ctypes.c_void_p
    found.baechiCacheNumbers.restype = ctypes.c_size_t
    for name in ("Clock", "Fresh", "Sent", "Tick"):
        getattr(found, f"baechiCache{name}").restype = ctypes.c_int64
    found.baechiCacheTake.restype = ctypes.c_void_p
    found.baechiCacheRoom.restype = ctypes.c_uint64
    found.baechiCachePause.restype = ctypes.c_double
    return found


def error() -> str:
    """The last one of this thread. A damaged file that it quotes may have any bytes."""
    return str(library().baechiReplicasError().decode(errors="backslashreplace"))


def call(name: str, handle: int, *arguments: Any) -> None:
    """Raises StoreError with what the library says."""
    if getattr(library(), name)(ctypes.c_void_p(handle), *arguments):
        raise StoreError(error())


def message(name: str, handle: int, *arguments: Any) -> bytes:
    """What such a function makes, as bytes."""
    made = getattr(library(), name)(ctypes.c_void_p(handle), *arguments)
    if not made:
        raise StoreError(error())
    size = ctypes.c_size_t()
    place = library().baechiMessageBytes(ctypes.c_void_p(made), ctypes.byref(size))
    try:
        return ctypes.string_at(place, size.value)
    finally:
        library().baechiMessageDestroy(ctypes.c_void_p(made))


def pointer(values: np.ndarray) -> ctypes.c_void_p:
    return values.ctypes.data_as(ctypes.c_void_p)
