# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a step that may still run: arrays of JAX that wait when they are looked at.

JAX has no public way to make an array of its own of a value that comes later, so these are a class
beside its own, as its tracers are: `isinstance(x, jax.Array)` holds, and all that JAX's arrays have
is asked of the one that comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from baechi.graphs.native import _placement
from baechi.jax.dispatch import Flight
from baechi.steps import resident_jax
from baechi.steps.resident_jax import Putter


class PendingArray(jax.Array, _placement.AwaitedBuffer):
    """A result that a step will have written when `flight` has ended.

    Shape, type and place are known at once; everything else waits, and raises the StepError of a
    step that has failed.
    """

    __hash__ = None  # type: ignore[assignment]  # as JAX's arrays

    def __init__(self, put: Putter, buffer: np.ndarray, flight: Flight):
        """put: makes the array of JAX; buffer: the memory that the step writes."""
        self._put = put
        self._array: jax.Array | None = None
        # The extension takes these for a next call of the same program (StepCall.cpp).
        self._buffer: np.ndarray | None = buffer
        self._pending: Any = flight.pending
        self._flight: Flight | None = flight

    def __jax_array__(self) -> jax.Array:
        """The array of JAX, when it is there."""
        array = self._array
        if array is None:
            flight, buffer = self._flight, self._buffer
            if flight is not None and buffer is not None:
                flight.wait()
                self._array = self._put.directly(buffer)
                self._flight = self._buffer = self._pending = None
            array = self._array
            assert array is not None
        return array

    def block_until_ready(self) -> PendingArray:
        self.__jax_array__().block_until_ready()
        return self

    def is_ready(self) -> bool:
        pending = self._pending
        return pending is None or pending.has_ended

    def is_deleted(self) -> bool:
        return self._array is not None and self._array.is_deleted()

    def copy_to_host_async(self) -> None:
        """It comes to the host by itself."""

    @property
    def aval(self) -> Any:
        return self._put.aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self._put.aval.shape

    @property
    def dtype(self) -> Any:
        return self._put.aval.dtype

    @property
    def weak_type(self) -> bool:
        return self._put.aval.weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        # Not of one that has failed: a debugger shows it, too.
        if self._array is None:
            return f"PendingArray(shape={self.shape}, dtype={self.dtype}, not looked at)"
        return repr(self._array)

    def __str__(self) -> str:
        return str(self.__jax_array__())

    def __reduce__(self) -> Any:
        return self.__jax_array__().__reduce__()  # pickles and copies are JAX's arrays

    def __copy__(self) -> Any:
        return self.__jax_array__().__copy__()  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__jax_array__().__deepcopy__(memo)  # type: ignore[attr-defined]


def _method(name: str) -> Callable[..., Any]:
    def method(self: PendingArray, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.__jax_array__(), name)(*args, **kwargs)

    method.__name__ = name
    return method


def _reader(name: str, of: Callable[[PendingArray], Any]) -> Callable[[PendingArray], Any]:
    return lambda self: getattr(of(self), name)


def _delegate() -> None:
    """Has every attribute of JAX's arrays that is not defined above asked of the array."""
    example = jax.numpy.zeros(())
    # Of any array that a step returns, without waiting.
    places = ("sharding", "committed", "_committed", "devices", "device", "platform")
    whole = ("is_fully_addressable", "is_fully_replicated")
    own = set(vars(PendingArray)) | {"__dict__", "__weakref__", "__module__", "__annotations__"}
    kept = {name for name in dir(object) if name not in ("__eq__", "__ne__", "__lt__", "__le__")}
    kept -= {"__gt__", "__ge__", "__format__"}
    # Who drops an array does not look at it. Buffers' release belongs to what gave them.
    kept |= {"__del__", "__buffer__", "__release_buffer__"}
    for name in dir(type(example)):
        if name in own or name in kept or name == "__slots__":
            continue
        value: Any
        if name in places + whole:
            value = property(_reader(name, lambda _: example))
        elif name.startswith("__") and callable(getattr(type(example), name)):
            value = _method(name)
        else:
            value = property(_reader(name, PendingArray.__jax_array__))
        setattr(PendingArray, name, value)


_delegate()
resident_jax.register(PendingArray)
