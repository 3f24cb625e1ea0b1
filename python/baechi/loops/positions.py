# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys within a loop's body, and the positions that they make in arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_MOST = 2**31 - 1


class Key:
    """A sum of the loop's keys with integer factors, or, where it is used as a number, its
    value."""

    def __init__(self, factors: tuple[int, ...], constant: int, keys: tuple[Any, ...]):
        self.factors, self.constant, self._keys = factors, constant, keys

    def __jax_array__(self) -> jax.Array:
        value = jnp.int32(self.constant)
        for factor, key in zip(self.factors, self._keys, strict=True):
            if factor:
                value = value + key if factor == 1 else value + factor * key
        return value

    @property
    def value(self) -> jax.Array:
        """As an array without dimensions, for functions of JAX."""
        return self.__jax_array__()

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Key):
            sums = tuple(a + b for a, b in zip(self.factors, other.factors, strict=True))
            return Key(sums, self.constant + other.constant, self._keys)
        if is_int(other):
            return Key(self.factors, self.constant + int(other), self._keys)
        return self.__jax_array__() + other

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if is_int(other):
            factors = tuple(factor * int(other) for factor in self.factors)
            return Key(factors, self.constant * int(other), self._keys)
        return self.__jax_array__() * as_number(other)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__jax_array__(), name)

    __hash__ = None  # type: ignore[assignment]


def _by_value(name: str) -> Any:
    def method(self: Key, *others: Any) -> Any:
        return getattr(self.__jax_array__(), name)(*map(as_number, others))

    return method


for _name in (
    *("floordiv", "rfloordiv", "mod", "rmod", "truediv", "rtruediv", "pow", "rpow"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "lshift", "rshift", "abs"),
):
    setattr(Key, f"__{_name}__", _by_value(f"__{_name}__"))


def is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_number(value: Any) -> Any:
    """A key as its value; anything else as it is."""
    return value.__jax_array__() if isinstance(value, Key) else value


@dataclasses.dataclass(frozen=True)
class Position:
    """Where an access is in one dimension: [sum of factors times keys + constant, + size),
    or, with a number that only data tell, any place of this size."""

    factors: tuple[int, ...] = ()
    constant: int = 0
    size: int = 1
    whole: bool = False
    number: Any = dataclasses.field(default=None, compare=False)
    dropped: bool = False  # the dimension is none of the result's

    @property
    def known(self) -> bool:
        return self.number is None

    def begins(self, extent: int) -> jax.Array:
        """Where it begins within `extent` elements, negative numbers counted from the end, as
        NumPy has it."""
        if self.known:
            return jnp.int32(self.constant)
        return jnp.clip(self.number + extent * (self.number < 0), 0, extent - 1)

    def outside(self, extent: int) -> jax.Array:
        """Whether the array has no such element."""
        return (self.number < -extent) | (self.number >= extent)

    def at(self, keys: Sequence[Any], extent: int) -> jax.Array:
        """Where it begins, by the keys' values."""
        if not self.known:
            return self.begins(extent)
        pairs = zip(self.factors, keys, strict=True)
        return jnp.int32(self.constant) + sum(factor * key for factor, key in pairs if factor)


def meet(
    some: Sequence[Position], others: Sequence[Position], keys: Sequence[Any], shape: Sequence[int]
) -> bool | jax.Array | None:
    """Whether two accesses of one array are of the same place: always, never (no element is of
    both), as the keys' values tell, or, None, it may be a part of it."""
    same: bool | jax.Array = True
    for a, b, extent in zip(some, others, shape, strict=True):
        by_keys = a.known and b.known and a.factors == b.factors
        if by_keys and (a.constant, a.size) == (b.constant, b.size):
            continue
        if by_keys and (a.constant + a.size <= b.constant or b.constant + b.size <= a.constant):
            return False
        if a.size != 1 or b.size != 1:
            return None
        same = same & (a.at(keys, extent) == b.at(keys, extent))
    return same


def positions_of(index: Any, shape: tuple[int, ...], keys: int, name: str) -> tuple[Position, ...]:
    """The positions of `array[index]`. Raises TypeError and IndexError."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError(f"'{name}' is indexed with several ellipses")
    if Ellipsis not in [part for part in parts if part is Ellipsis]:
        parts.append(Ellipsis)
    at = next(k for k, part in enumerate(parts) if part is Ellipsis)
    missing = len(shape) - (len(parts) - 1)
    if missing < 0:
        raise IndexError(
            f"'{name}' has {len(shape)} dimensions and is indexed with {len(parts) - 1}"
        )
    parts[at : at + 1] = [slice(None)] * missing
    return tuple(
        _position(part, extent, keys, f"dimension {d} of '{name}'")
        for d, (part, extent) in enumerate(zip(parts, shape, strict=True))
    )


def _position(part: Any, extent: int, keys: int, where: str) -> Position:
    none = (0,) * keys
    if is_int(part):
        return Position(none, int(part) + extent * (part < 0), dropped=True)
    if isinstance(part, Key):
        return Position(part.factors, part.constant, dropped=True)
    if isinstance(part, slice):
        return _slice(part, extent, none, where)
    number = jnp.asarray(part)
    if number.ndim != 0 or not jnp.issubdtype(number.dtype, jnp.integer):
        raise TypeError(
            f"{where} is indexed with {number.dtype} of shape {number.shape}: give a key, a sum "
            "of keys, an integer or a slice; one access for each element"
        )
    return Position(none, number=_as_int32(number), dropped=True)


def _as_int32(number: jax.Array) -> jax.Array:
    """What 32 bits do not hold becomes the nearest that they do, which no array has."""
    if np.iinfo(number.dtype).max > _MOST:
        least = np.iinfo(number.dtype).min and -_MOST - 1
        number = jnp.clip(number, jnp.array(least, number.dtype), jnp.array(_MOST, number.dtype))
    return number.astype(jnp.int32)


def _slice(part: slice, extent: int, none: tuple[int, ...], where: str) -> Position:
    if part.step not in (None, 1):
        raise IndexError(f"{where} is indexed with a step of {part.step}: take all and pick")
    if part.start is None and part.stop is None:
        return Position(none, size=extent, whole=True)
    if isinstance(part.start, Key) and isinstance(part.stop, Key):
        if part.start.factors == part.stop.factors:
            size = part.stop.constant - part.start.constant
            if size > 0:
                return Position(part.start.factors, part.start.constant, size)
    elif not isinstance(part.start, Key) and not isinstance(part.stop, Key):
        first, end, _ = slice(part.start, part.stop).indices(extent)
        if end > first:
            return Position(none, first, end - first)
    raise IndexError(
        f"{where} is indexed with a slice of no fixed size: write i:i + 3, a key and the same "
        "key plus a number"
    )
