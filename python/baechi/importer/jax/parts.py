# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that are cut in a part for each replica, by the specs of `jax.shard_map`."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from baechi.importer.jax.collectives import Mesh


@dataclasses.dataclass(frozen=True)
class Spec:
    """For each dimension the axes that it is cut along."""

    dims: tuple[tuple[str, ...], ...]

    def names(self) -> set[str]:
        return set(itertools.chain(*self.dims))

    def without_ones(self, mesh: Mesh) -> Spec:
        """The same without axes along which there is one part."""
        return Spec(tuple(tuple(n for n in names if mesh.axes[n] > 1) for names in self.dims))

    def of_items(self) -> Spec:
        """Of an array along whose first dimension lie what this is of."""
        return Spec(((), *self.dims))

    def is_of(self, mesh: Mesh) -> bool:
        """Whether it cuts something, along axes that a mesh has."""
        return bool(self.names()) and self.names() <= set(mesh.axes)

    def members(self, mesh: Mesh) -> list[list[int]]:
        """For each dimension the parts along it, each the replicas that have it, a bit for
        each; none where it is not cut."""
        made = []
        for names in self.dims:
            parts = [0] * math.prod(mesh.axes[name] for name in names)
            for replica in range(mesh.count):
                parts[mesh.index(replica, names)] |= 1 << replica
            made.append(parts if names else [])
        return made

    def at(self, replica: int, mesh: Mesh) -> tuple[int, ...]:
        """Where a replica's part is, along each dimension."""
        return tuple(mesh.index(replica, names) for names in self.dims)

    def sizes(self, mesh: Mesh) -> tuple[int, ...]:
        """In how many parts each dimension is."""
        return tuple(math.prod(mesh.axes[name] for name in names) for names in self.dims)


def spec_of(given: Any, rank: int) -> Spec:
    """Of a PartitionSpec, which may be shorter than the rank."""
    dims = [names if isinstance(names, tuple) else (names,) if names else () for names in given]
    return Spec((*dims, *((),) * (rank - len(dims))))


class Parts:
    """An array as replicas have it, put together where it is read as a whole."""

    def __init__(self, values: list[Any], spec: Spec, mesh: Mesh):
        self.values, self.spec, self.mesh = values, spec, mesh
        self.ndim = len(spec.dims)
        self._whole: Any = None

    def whole(self) -> Any:
        if self._whole is None:
            parts: dict[tuple[int, ...], Any] = {}
            for replica, value in enumerate(self.values):
                parts.setdefault(self.spec.at(replica, self.mesh), value)
            self._whole = _assembled(parts, (), self.spec.sizes(self.mesh))
        return self._whole


def _assembled(parts: dict[tuple[int, ...], Any], at: tuple[int, ...], sizes: Any) -> Any:
    """The parts of which the first dimensions' numbers are known, along the others."""
    dim = len(at)
    if dim == len(sizes):
        return parts[at]
    along = [_assembled(parts, (*at, number), sizes) for number in range(sizes[dim])]
    return jnp.concatenate(along, axis=dim) if len(along) > 1 else along[0]


class Elementwise:
    """What is computed for each element by itself: of a part where a part is read."""

    def __init__(self, compute: Callable[..., Any], operands: Sequence[Any]):
        self._compute, self.operands = compute, operands
        self._whole: Any = None
        self._parts: dict[tuple[Spec, Mesh], list[Any]] = {}

    def whole(self) -> Any:
        if self._whole is None:
            self._whole = self._compute(*map(whole, self.operands))
        return self._whole

    def split(self, spec: Spec, mesh: Mesh) -> list[Any]:
        if (spec, mesh) not in self._parts:
            parts = [
                split(value, spec, mesh) if np.ndim(value) else [value] * mesh.count
                for value in self.operands
            ]
            made: dict[tuple[int, ...], Any] = {}
            for replica, own in enumerate(zip(*parts, strict=True)):
                at = spec.at(replica, mesh)
                if at not in made:
                    made[at] = self._compute(*own)
            self._parts[spec, mesh] = [made[spec.at(r, mesh)] for r in range(mesh.count)]
        return self._parts[spec, mesh]

    @property
    def ndim(self) -> int:
        return max(np.ndim(value) for value in self.operands)


class Item:
    """One of an array's, along its first dimension: of a part where a part is read."""

    def __init__(self, number: int, array: Any):
        self._number, self.array = number, array
        self.ndim = np.ndim(array) - 1

    def whole(self) -> Any:
        return lax.index_in_dim(whole(self.array), self._number, keepdims=False)

    def split(self, spec: Spec, mesh: Mesh) -> list[Any]:
        made: dict[int, Any] = {}
        parts = split(self.array, spec.of_items(), mesh)
        for part in parts:
            if id(part) not in made:
                made[id(part)] = lax.index_in_dim(part, self._number, keepdims=False)
        return [made[id(part)] for part in parts]


def whole(value: Any) -> Any:
    return value.whole() if isinstance(value, Parts | Elementwise | Item) else value


def sources(value: Any, spec: Spec) -> list[tuple[Any, Spec]]:
    """The arrays that are cut where a value is by a spec, each with its own."""
    if isinstance(value, Elementwise):
        return [each for operand in value.operands for each in sources(operand, spec)]
    if isinstance(value, Item):
        return sources(value.array, spec.of_items())
    return [] if isinstance(value, Parts) else [(value, spec)]


def split(value: Any, spec: Spec, mesh: Mesh) -> list[Any]:
    """Each replica's part of an array; those that have the same part have the same object."""
    if isinstance(value, Parts) and (value.spec, value.mesh) == (spec, mesh):
        return value.values
    if isinstance(value, Elementwise | Item):
        return value.split(spec, mesh)
    value = whole(value)
    sizes = spec.sizes(mesh)
    made: dict[tuple[int, ...], Any] = {}
    parts = []
    for replica in range(mesh.count):
        at = spec.at(replica, mesh)
        if at not in made:
            made[at] = _part(value, at, sizes)
        parts.append(made[at])
    return parts


def _part(value: Any, at: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    sizes = [extent // count for extent, count in zip(value.shape, counts, strict=True)]
    starts = [number * size for number, size in zip(at, sizes, strict=True)]
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    return lax.slice(value, starts, ends) if math.prod(counts) > 1 else value
