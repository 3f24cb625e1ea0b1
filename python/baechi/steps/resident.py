# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that stay on their devices between steps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from baechi.steps.host_calls import refuse_within_host_calls
from baechi.steps.library import StepLibrary

Kind = tuple[tuple[int, ...], np.dtype[Any], bool]
"""Shape, type, and whether it is weak."""


def _through_jax(name: str) -> Callable[..., Any]:
    """The method of a JAX array with the value that is copied out."""

    def method(self: Any, *args: Any) -> Any:
        return getattr(self.__jax_array__(), name)(*args)

    method.__name__ = name
    return method


_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul radd rsub rmul rtruediv rfloordiv rmod rpow "
    "rmatmul neg pos abs eq ne lt le gt ge and or xor invert bool format iter"
)

_DELETED = "this array was donated to a later step: use the one that the step returned"


class Flight(Protocol):
    """A call that may still run."""

    @property
    def has_failed(self) -> bool: ...

    def wait(self) -> None:
        """Raises StepError if it has failed."""


class ResidentArray:
    """The next value of a donated argument, in that argument's place.

    It is copied out only when somebody looks (`numpy.asarray`, `float`, functions
    of numpy and JAX, operators and methods of JAX's arrays) or when the place is
    about to be used otherwise. Given to the next step it is not moved at all; as a donated array it
    is gone then, like JAX's. Copies and pickles are arrays of numpy.
    """

    __hash__ = None  # type: ignore[assignment]  # as JAX's arrays

    def __init__(self, owner: Residents, index: int, kind: Kind):
        self._owner: Residents | None = owner
        self._index = index
        self._value: np.ndarray | None = None
        # The call that gives it, where that may still run (baechi/jax/dispatch.py).
        self._flight: Flight | None = None
        self.shape, self.dtype, self.weak_type = kind

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._fetch()
        wanted = value.dtype if dtype is None else np.dtype(dtype)
        return np.array(value, wanted) if copy or wanted != value.dtype else value

    def __jax_array__(self) -> Any:
        from baechi.steps import resident_jax

        return resident_jax.as_array(self._fetch(), self.weak_type)

    def __getattr__(self, name: str) -> Any:
        # What JAX's arrays have beside: `mean`, `T`, `astype`, `at`, ...
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.__jax_array__(), name)

    def __reduce__(self) -> Any:
        return np.array, (self._fetch(),)

    def __float__(self) -> float:
        return float(self._fetch())

    def __int__(self) -> int:
        return int(self._fetch())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __getitem__(self, at: Any) -> Any:
        return self._fetch()[at]

    def block_until_ready(self) -> ResidentArray:
        self.check()
        if self.is_deleted():
            raise RuntimeError(_DELETED)
        return self

    def check(self) -> None:
        """Raises the StepError of the call that was to give it, if that has failed."""
        if self._flight is not None:
            self._flight.wait()
            self._flight = None

    def is_deleted(self) -> bool:
        return self._owner is None and self._value is None

    def __repr__(self) -> str:
        where = "deleted" if self.is_deleted() else "resident" if self._value is None else "fetched"
        return f"ResidentArray(shape={self.shape}, dtype={self.dtype}, {where})"

    def _fetch(self) -> np.ndarray:
        if (value := self._copied_out()) is None:
            self.check()
            raise RuntimeError(_DELETED)
        return value

    def _copied_out(self) -> np.ndarray | None:
        """None: it is deleted, perhaps by the step of another thread."""
        if (value := self._value) is not None:
            return value  # without waiting for anybody
        if (owner := self._owner) is not None:
            refuse_within_host_calls("a resident array is read")
            self.check()
            with owner.turn:  # no step may run meanwhile
                if self._value is None and self._owner is not None:
                    # The compiler's integers have no sign.
                    value = owner.library.argument(self._index).view(self.dtype)
                    value.flags.writeable = False
                    self._value = value
        return self._value

    def leave(self, turn: threading.RLock) -> None:
        """Copies the value out if it lies with a step of another turn: who holds a
        turn waits for no other."""
        if (owner := self._owner) is not None and owner.turn is not turn:
            self._copied_out()


for _name in _OPERATORS.split():
    setattr(ResidentArray, f"__{_name}__", _through_jax(f"__{_name}__"))


class Residents:
    """Who holds what lies in the places of a library's updated arguments.

    turn: is held while the library is used.
    """

    def __init__(self, library: StepLibrary, turn: threading.RLock, kinds: dict[int, Kind]):
        """kinds: of the next values, by argument."""
        self.library, self.turn, self._kinds = library, turn, kinds
        # For each argument who holds what lies in its place, None if nobody does. A quick call
        # (baechi/jax/quick.py) does what before_step does, where each was given in its place.
        self.holders: list[weakref.ref[ResidentArray] | None]
        self.holders = [None] * len(library.program["arguments"])

    def holds(self, index: int, value: object) -> bool:
        """Whether an argument's place has this very value already."""
        holder = self.holders[index]
        return holder is not None and holder() is value

    def before_step(self, given: dict[int, object]) -> None:
        """Copies out what the step will overwrite but was not given to it; what
        was given is donated."""
        for holder in self.holders:
            array = None if holder is None else holder()
            if array is None:
                continue
            if any(value is array for value in given.values()):
                array._value = None
            elif array._flight is None or not array._flight.has_failed:
                array._copied_out()
            array._owner = None
        for index, value in given.items():
            # Its value was fetched earlier, or it belongs to another step.
            if isinstance(value, ResidentArray) and not self.holds(index, value):
                value._owner = value._value = None
        self.holders = [None] * len(self.holders)

    def after_step(self, index: int, flight: Flight | None = None) -> ResidentArray:
        """The next value of an updated argument, of a call that may still run."""
        array = ResidentArray(self, index, self._kinds[index])
        array._flight = flight
        self.holders[index] = weakref.ref(array)
        return array
