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

from baechi.loops.entries import as_array
from baechi.loops.errors import LoopError, place

_MOST = 2**31 - 1


class ByValue:
    """What stands for a number or an array in a body: operators take its value."""

    __array_ufunc__ = None  # NumPy's numbers leave operators to it
    __hash__ = None  # type: ignore[assignment]

    def __jax_array__(self) -> jax.Array:
        raise NotImplementedError


def _by_value(name: str) -> Any:
    def method(self: ByValue, *others: Any) -> Any:
        return getattr(self.__jax_array__(), name)(*map(as_number, others))

    return method


_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
for _name in (
    *_OPERATORS,
    *(f"r{operator}" for operator in _OPERATORS),
    *("lt", "le", "gt", "ge", "eq", "ne", "abs", "neg", "pos", "invert", "round"),
    *("bool", "int", "float", "index"),
):
    setattr(ByValue, f"__{_name}__", _by_value(f"__{_name}__"))


class Key(ByValue):
    """A sum of the loop's keys with integer factors, or, where it is used as a number, its
    value. bounds: the keys', from the first to before the end."""

    def __init__(
        self,
        factors: tuple[int, ...],
        constant: int,
        keys: tuple[Any, ...],
        bounds: tuple[tuple[int, int], ...],
    ):
        self.factors, self.constant = factors, constant
        self._keys, self._bounds = keys, bounds

    def __jax_array__(self) -> jax.Array:
        _check_held("a sum of keys", self._ends())
        kind = _integer()
        value = jnp.asarray(self.constant, kind)
        for factor, key in zip(self.factors, self._keys, strict=True):
            if factor:
                key = key.astype(kind)
                value = value + key if factor == 1 else value + factor * key
        return value

    def _ends(self) -> tuple[int, int]:
        """The least and the greatest that it may be."""
        ends = [
            sorted((factor * first, factor * (end - 1)))
            for factor, (first, end) in zip(self.factors, self._bounds, strict=True)
        ]
        least, most = (sum(each) for each in zip(*ends, strict=True))
        return self.constant + least, self.constant + most

    def _with(self, factors: tuple[int, ...], constant: int) -> Key:
        return Key(factors, constant, self._keys, self._bounds)

    def __getitem__(self, index: Any) -> Any:
        raise LoopError(
            f"{place()}a key is a number and has no parts: of a loop with one key the body is "
            "given that itself, i, and of one with several a tuple, i, j = key"
        )

    def __repr__(self) -> str:
        """The body is traced once, for all that it may be."""
        least, most = self._ends()
        return f"<a key of {least} to {most}>"

    @property
    def value(self) -> jax.Array:
        """As an array without dimensions, for functions of JAX."""
        return self.__jax_array__()

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Key):
            sums = tuple(a + b for a, b in zip(self.factors, other.factors, strict=True))
            return self._with(sums, self.constant + other.constant)
        if is_int(other):
            return self._with(self.factors, self.constant + int(other))
        return self.__jax_array__() + as_number(other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if is_int(other):
            factors = tuple(factor * int(other) for factor in self.factors)
            return self._with(factors, self.constant * int(other))
        if isinstance(other, Key):
            products = [a * b for a in self._ends() for b in other._ends()]
            _check_held("a product of keys", (min(products), max(products)))
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


def _integer() -> Any:
    """What keys are as numbers: Python's are of any size."""
    return jax.dtypes.canonicalize_dtype(np.int64)


def _check_held(what: str, ends: tuple[int, int]) -> None:
    kind = np.iinfo(_integer())
    if ends[0] < kind.min or ends[1] > kind.max:
        mend = (
            "call jax.config.update('jax_enable_x64', True) before"
            if kind.bits == 32
            else "make it a floating-point number first, 1.0 * i"
        )
        raise LoopError(
            f"{place()}{what} is a number from {ends[0]} to {ends[1]}, which {kind.bits} bits do "
            f"not hold: {mend}"
        )


def is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_number(value: Any) -> Any:
    """A key or an array of the loop as its value; anything else as it is."""
    return value.__jax_array__() if isinstance(value, ByValue) else value


@dataclasses.dataclass(frozen=True)
class Position:
    """Where an access is in one dimension: [sum of factors times keys + constant, + size), or,
    with a number that only data tell, any place of this size; with a vector of numbers several
    such."""

    factors: tuple[int, ...] = ()
    constant: int = 0
    size: int = 1
    whole: bool = False
    number: Any = dataclasses.field(default=None, compare=False)
    dropped: bool = False  # the dimension is none of the result's

    @property
    def known(self) -> bool:
        return self.number is None

    @property
    def several(self) -> int:
        """How many, where it is a vector of numbers; else 0."""
        return self.number.shape[0] if self.number is not None and self.number.ndim else 0

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


def shape_of_region(positions: Sequence[Position]) -> tuple[int, ...]:
    """Of the one place that positions without vectors are."""
    return tuple(p.size for p in positions if not p.dropped)


def several_of(positions: Sequence[Position]) -> tuple[int, int]:
    """How many elements or slices vectors of numbers choose, 0 if there are none, and which
    dimension of the result counts them: as NumPy has it."""
    count = max((p.several for p in positions), default=0)
    first = next((d for d, p in enumerate(positions) if p.dropped), 0)
    return count, sum(not p.dropped for p in positions[:first])


def shape_at(positions: Sequence[Position]) -> tuple[int, ...]:
    """Of what is at positions."""
    shape = list(shape_of_region(positions))
    count, at = several_of(positions)
    if count:
        shape.insert(at, count)
    return tuple(shape)


def one_of(positions: Sequence[Position], number: int) -> tuple[Position, ...]:
    """One of several."""
    return tuple(
        dataclasses.replace(p, number=p.number[number]) if p.several else p for p in positions
    )


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
    positions = tuple(
        _position(part, extent, keys, f"dimension {d} of '{name}'")
        for d, (part, extent) in enumerate(zip(parts, shape, strict=True))
    )
    _check_several(positions, name)
    return positions


def _check_several(positions: Sequence[Position], name: str) -> None:
    counts = sorted({p.several for p in positions if p.several})
    if len(counts) > 1:
        raise IndexError(
            f"'{name}' is indexed with vectors of {counts[0]} and {counts[1]} integers: give as "
            "many for each dimension"
        )
    picked = [d for d, p in enumerate(positions) if p.dropped]
    if counts and picked[0] > 0 and picked[-1] - picked[0] + 1 > len(picked):
        raise IndexError(
            f"'{name}' is indexed with a vector and, beyond a slice, with another position: give "
            "one after the other"
        )


def _position(part: Any, extent: int, keys: int, where: str) -> Position:
    none = (0,) * keys
    if is_int(part):
        if not -extent <= part < extent:
            raise IndexError(
                f"{where} is indexed with {part}, and has {extent} elements, "
                f"{-extent} to {extent - 1}: correct the number, or make the array larger"
            )
        return Position(none, int(part) + extent * (part < 0), dropped=True)
    if isinstance(part, Key):
        return Position(part.factors, part.constant, dropped=True)
    if isinstance(part, slice):
        return _slice(part, extent, none, where)
    if part is None:
        raise IndexError(
            f"{where} is indexed with None: add dimensions to what is read, x[i][None]"
        )
    if isinstance(part, str | bytes | dict | set):
        raise TypeError(
            f"{where} is indexed with a {type(part).__name__}: give a key, a sum of keys, an "
            "integer, a vector of integers or a slice"
        )
    if isinstance(part, list):
        part = jnp.stack([jnp.asarray(as_number(each)) for each in part]) if part else []
    number = jnp.asarray(as_array(part, where) if isinstance(part, np.ndarray) else as_number(part))
    if number.ndim > 1 or number.size == 0 or not jnp.issubdtype(number.dtype, jnp.integer):
        raise TypeError(
            f"{where} is indexed with {number.dtype} of shape {number.shape}: give a key, a sum "
            "of keys, an integer, a vector of integers or a slice; by a mask choose values, "
            "x[...] = jnp.where(mask, value, x[...])"
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
    ends = part.start, part.stop
    if any(isinstance(as_number(each), jax.Array) and not isinstance(each, Key) for each in ends):
        raise IndexError(
            f"{where} is indexed with a slice that data tell: give its positions, "
            "x[p + jnp.arange(3)] for x[p : p + 3]"
        )
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
