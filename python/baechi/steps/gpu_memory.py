# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of GPUs for what steps return, which is used again: to give it back to CUDA waits for the
GPU, each time, and to get some takes as long as a small step."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from baechi.steps.library_file import StepError

_MOST_KEPT = 128 << 20  # bytes, of all GPUs together
# Pieces of a size that others had before one is awaited, and all with it: a call that returns
# before the GPU has ended it would wait for the one before.
_SPARE = 8
_ROUNDED = 512  # bytes: as finely as CUDA gives it


@functools.cache
def _driver() -> ctypes.CDLL:
    """CUDA's, which a step on a GPU has loaded already."""
    return ctypes.CDLL(os.environ.get("BAECHI_CUDA_LIBRARY") or "libcuda.so.1")


def try_call(function: str, *arguments: Any) -> int:
    """CUDA's number for what came of it."""
    return int(getattr(_driver(), function)(*arguments))


def call(function: str, *arguments: Any) -> None:
    """Raises StepError."""
    if code := try_call(function, *arguments):
        raise StepError(f"{function} of a result's memory on the GPU failed: CUDA's error {code}")


def name_of(code: int) -> str:
    """CUDA's own, of an error."""
    name = ctypes.c_char_p()
    try_call("cuGetErrorName", ctypes.c_int(code), ctypes.byref(name))
    return name.value.decode(errors="replace") if name.value else f"CUDA's error {code}"


@functools.cache
def _context(gpu: int) -> ctypes.c_void_p:
    """The GPU's primary context, which the process keeps, as steps do."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(gpu))
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


@contextlib.contextmanager
def selected(gpu: int) -> Iterator[None]:
    """Within: the GPU's context is the thread's."""
    before = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(before))
    call("cuCtxSetCurrent", _context(gpu))
    try:
        yield
    finally:
        call("cuCtxSetCurrent", before)


class _Kept:
    """What was given back and may be had again, by GPU and bytes."""

    def __init__(self) -> None:
        # An array that goes while the lock is held, in the same thread, gives back, too.
        self._lock = threading.RLock()
        self._free: dict[tuple[int, int], list[tuple[int, bool]]] = {}
        self._bytes = 0

    def take(self, gpu: int, size: int) -> tuple[int, bool] | None:
        """What nobody has to be awaited for; of what others had, as soon as there is more."""
        with self._lock:
            found = self._free.get((gpu, size), [])
            best = next((i for i, (_, awaited) in enumerate(found) if not awaited), None)
            if best is None and len(found) < _SPARE:
                return None
            self._bytes -= size
            return found.pop(best or 0)

    def await_all(self, gpu: int, wait: Callable[[], None]) -> None:
        """Nobody has to be awaited any more for what was there before `wait`."""
        with self._lock:
            before = {at for (of, _), each in self._free.items() if of == gpu for at, _ in each}
        wait()
        with self._lock:
            for (of, _), each in self._free.items():
                if of == gpu:
                    each[:] = [(at, awaited and at not in before) for at, awaited in each]

    def give(self, gpu: int, size: int, address: int, awaited: bool) -> bool:
        """False: there is enough already."""
        with self._lock:
            if self._bytes + size > _MOST_KEPT:
                return False
            self._bytes += size
            self._free.setdefault((gpu, size), []).append((address, awaited))
            return True

    def clear(self) -> list[tuple[int, int]]:
        """All of it: GPUs and addresses."""
        with self._lock:
            found = [(gpu, at) for (gpu, _), each in self._free.items() for at, _ in each]
            self._free.clear()
            self._bytes = 0
            return found


_kept = _Kept()


def _rounded(size: int) -> int:
    return max(1, -(-size // _ROUNDED)) * _ROUNDED


def allocate(gpu: int, size: int) -> int:
    """The address of so many bytes. Raises StepError."""
    with selected(gpu):
        if found := _kept.take(gpu, _rounded(size)):
            address, awaited = found
            if awaited:  # whoever had it may have begun to use it, on a stream of their own
                try:
                    _kept.await_all(gpu, lambda: call("cuCtxSynchronize"))
                except StepError:
                    _kept.give(gpu, _rounded(size), address, awaited)
                    raise
            return address
        place = ctypes.c_uint64()
        bytes_ = ctypes.c_size_t(_rounded(size))
        try:
            call("cuMemAlloc_v2", ctypes.byref(place), bytes_)
        except StepError:
            release()
            call("cuMemAlloc_v2", ctypes.byref(place), bytes_)
        return place.value


def give_back(gpu: int, size: int, address: int, awaited: bool) -> None:
    """awaited: others had it by DLPack, or a step that failed. Calls of steps that still use it
    come before those that have it next."""
    if not _kept.give(gpu, _rounded(size), address, awaited):
        _free(gpu, address)


def release() -> None:
    """What is kept is CUDA's again."""
    for gpu, address in _kept.clear():
        _free(gpu, address)


def _free(gpu: int, address: int) -> None:
    with selected(gpu):
        call("cuCtxSynchronize")  # a call of a step that has returned may use it still
        call("cuMemFree_v2", ctypes.c_uint64(address))
