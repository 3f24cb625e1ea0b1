# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Python computes while a step runs and waits for it (docs/host-calls.md)."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from baechi.common import users


class HostCall(Protocol):
    """A function that a program only declares: of arrays, to arrays of its results' types."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., Sequence[np.ndarray]]: ...
    @property
    def operands(self) -> Sequence[Any]: ...  # each has shape and dtype
    @property
    def results(self) -> Sequence[Any]: ...


# What a step calls on its devices' threads: with what was given to it, the function's name,
# the places of operands and results, and a place for an error's text.
_HOST_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_size_t,
)

# Set on threads that compute a host call: the step waits for them.
_within = threading.local()


def refuse_within_host_calls(what: str) -> None:
    """Raises RuntimeError on a thread that a step waits for: it would wait for the step."""
    if getattr(_within, "call", None) is not None:
        raise RuntimeError(
            f"{what} within '{_within.call}', which a step of baechi.jit waits for: give it what "
            "it needs as arguments, or do this after the step"
        )


def computing(calls: Sequence[HostCall], note: Callable[[BaseException], None]) -> Any:
    """The calls as a function of C's, which a step calls; note: is given what one raises, which
    ends the step."""
    by_name = {call.name: call for call in calls}

    def compute(_: Any, name: bytes, places: Any, error: int, size: int) -> int:
        try:
            call = by_name[name.decode()]
            _within.call = call.name
            _compute(call, places)
            return 0
        except BaseException as raised:  # nothing may be thrown into the step
            note(raised)
            text = users.told(raised).encode()[: size - 1] + b"\0"
            ctypes.memmove(error, text, len(text))
            return 1
        finally:
            _within.call = None

    return _HOST_FUNCTION(compute)


def _compute(call: HostCall, places: Any) -> None:
    def array(place: int, kind: Any) -> np.ndarray:
        dtype = np.dtype(kind.dtype)
        size = int(np.prod(kind.shape)) * dtype.itemsize
        if size == 0:
            return np.empty(kind.shape, dtype)
        memory = (ctypes.c_char * size).from_address(place)
        return np.frombuffer(memory, dtype).reshape(kind.shape)

    count = len(call.operands)
    # Copies: whoever keeps one must not see the arena's next tensor in its place.
    given = [array(places[i], kind).copy() for i, kind in enumerate(call.operands)]
    made = call.function(*given)
    for i, (kind, value) in enumerate(zip(call.results, made, strict=True)):
        if value.shape != tuple(kind.shape) or value.dtype != np.dtype(kind.dtype):
            raise TypeError(
                f"result {i} is {value.dtype} of shape {value.shape}, not "
                f"{np.dtype(kind.dtype)} of shape {tuple(kind.shape)}"
            )
        array(places[count + i], kind)[...] = value
