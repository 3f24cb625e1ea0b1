# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Initial values that a module carries as attributes instead of as data.

Every argument of an imported `@step` says how its first value is made
(`baechi.init`), so a module runs without any data file. The generator is
counter based: element `i` depends on the seed and `i` alone, in row-major
order. docs/import.md states the same rules with test vectors; the runtime
implements them once more, bit for bit.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
_MASK64 = (1 << 64) - 1


def splitmix64(state: np.ndarray) -> np.ndarray:
    """One output of SplitMix64 for each state (uint64).

    Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
    OOPSLA 2014, with the constants of Stafford's variant 13.
    """
    z = state + np.uint64(GOLDEN_GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_bits(seed: int, count: int) -> np.ndarray:
    """The 64 random bits of elements 0 to count - 1."""
    first = np.uint64((seed * GOLDEN_GAMMA) & _MASK64)
    return splitmix64(np.arange(count, dtype=np.uint64) + first)


@dataclasses.dataclass(frozen=True)
class Init:
    """A tensor's shape and element type, and how its first value is made."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def value(self) -> np.ndarray:
        return self._elements().astype(self.dtype).reshape(self.shape)

    def _elements(self) -> np.ndarray:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Constant(Init):
    """The same number everywhere (integers up to 2^24 in magnitude exactly)."""

    constant: float

    def _elements(self) -> np.ndarray:
        return np.full(self.size, np.float32(self.constant))


@dataclasses.dataclass(frozen=True)
class Uniform(Init):
    """Uniform in [low, high], computed in float32, then converted to the type."""

    low: float
    high: float
    seed: int

    def _elements(self) -> np.ndarray:
        low, high = np.float32(self.low), np.float32(self.high)
        unit = (random_bits(self.seed, self.size) >> np.uint64(40)).astype(np.float32)
        unit *= np.float32(2.0**-24)
        return low + (high - low) * unit


@dataclasses.dataclass(frozen=True)
class RandInt(Init):
    """Integers in [low, high)."""

    low: int
    high: int
    seed: int

    def _elements(self) -> np.ndarray:
        span = np.uint64(self.high - self.low)
        return (random_bits(self.seed, self.size) % span).astype(np.int64) + self.low


class Draws:
    """Makes initial values, each random one with the next seed."""

    def __init__(self, seed: int = 1):
        self._next = seed

    def _seed(self) -> int:
        self._next += 1
        return self._next - 1

    def weight(self, *shape: int, fan_in: int | None = None) -> Uniform:
        """A float32 weight, uniform in ±1/sqrt(fan_in); rows by default."""
        bound = float(np.float32(1.0 / math.sqrt(fan_in or shape[0])))
        return self.uniform(*shape, low=-bound, high=bound)

    def uniform(self, *shape: int, low: float, high: float) -> Uniform:
        return Uniform(shape, "float32", low, high, self._seed())

    def integers(self, *shape: int, low: int = 0, high: int) -> RandInt:
        return RandInt(shape, "int32", low, high, self._seed())


def constant(*shape: int, value: float, dtype: str = "float32") -> Constant:
    return Constant(shape, dtype, value)


def zeros(*shape: int) -> Constant:
    return constant(*shape, value=0.0)


def ones(*shape: int) -> Constant:
    return constant(*shape, value=1.0)


def zeros_like(init: Init) -> Constant:
    return Constant(init.shape, init.dtype, 0.0)


def from_example(value, seed: int) -> Init:
    """Stands in for a value given as an array.

    A splat keeps its value. Anything else becomes random numbers of the same
    range, so that, for example, indices stay valid.
    """
    array = np.asarray(value)
    shape, dtype = array.shape, str(array.dtype)
    if array.size == 0:
        return Constant(shape, dtype, 0.0)
    low, high = array.min(), array.max()
    splat = float(np.float32(low))
    if low == high and splat == low:
        return Constant(shape, dtype, splat)
    if array.dtype == np.bool_ or np.issubdtype(array.dtype, np.integer):
        # Its bounds are written as 64 bits with a sign.
        most = 2**63 - 1
        return RandInt(shape, dtype, min(int(low), most - 1), min(int(high) + 1, most), seed)
    return Uniform(shape, dtype, float(np.float32(low)), float(np.float32(high)), seed)
