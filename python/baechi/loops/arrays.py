# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays within a loop's body: what is read and written of them is recorded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax

from baechi.loops.errors import LoopError, place
from baechi.loops.positions import ByValue, Position, positions_of

if TYPE_CHECKING:
    from baechi.loops.tracing import Trace

# What an array has of its whole value, as NumPy's do.
_OF_VALUE = frozenset(
    "all any argmax argmin argsort astype clip copy cumprod cumsum dot flatten max mean min prod "
    "ravel repeat reshape round sort squeeze std sum swapaxes take trace transpose var T".split()
)


class Array(ByValue):
    """An array of a loop. Operators and methods take all of it."""

    def __init__(self, trace: Trace, number: int, name: str, like: jax.ShapeDtypeStruct):
        self._trace, self._number, self._name = trace, number, name
        self.shape, self.dtype, self.ndim = like.shape, like.dtype, len(like.shape)
        self.size = math.prod(like.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"'{self._name}' has no dimensions, and so no length")
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> jax.Array:
        return self._trace.read(self._number, self._positions(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._trace.write(self._number, self._positions(index), value)

    def __delitem__(self, index: Any) -> None:
        raise LoopError(
            f"{place()}'{self._name}' has elements that stay: write another value, "
            f"{self._name}[i] = 0, or give the loop fewer entries"
        )

    def __jax_array__(self) -> jax.Array:
        return self[...]

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if name in _OF_VALUE:
            return getattr(self[...], name)
        raise AttributeError(f"'{self._name}' has no '{name}': take it of {self._name}[...]")

    @property
    def at(self) -> Any:
        raise LoopError(
            f"{place()}'{self._name}' is changed with .at, which makes another array: write "
            f"{self._name}[i] = value or {self._name}[i] += value"
        )

    def _positions(self, index: Any) -> tuple[Position, ...]:
        try:
            return positions_of(index, self.shape, self._trace.keys, self._name)
        except (IndexError, TypeError) as error:
            raise LoopError(f"{place()}{error}") from None


def _in_place(operator: str) -> Any:
    def method(self: Array, other: Any) -> Array:
        self[...] = getattr(self, f"__{operator}__")(other)
        return self

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    setattr(Array, f"__i{_name}__", _in_place(_name))
