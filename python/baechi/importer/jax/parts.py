# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that are cut in a part for each replica, by the specs of `jax.shard_map`."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
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


# What is read of a value: each replica's part by a spec; None: the whole.
_Way = tuple[Spec, Mesh] | None


class Lazy:
    """What is computed where it is read, once for each way: of parts where parts are."""

    ndim: int

    def __init__(self) -> None:
        self.made: dict[_Way, Any] = {}

    def reads(self, way: _Way) -> list[tuple[Any, _Way]]:
        """What it is computed of."""
        raise NotImplementedError

    def compute(self, way: _Way, given: list[Any]) -> Any:
        """given: what `reads` names."""
        raise NotImplementedError


class Elementwise(Lazy):
    """What is computed for each element by itself."""

    def __init__(self, compute: Callable[..., Any], operands: Sequence[Any]):
        super().__init__()
        self._compute, self._operands = compute, operands
        self._ranks = [np.ndim(value) for value in operands]
        self.ndim = max(self._ranks)

    def reads(self, way: _Way) -> list[tuple[Any, _Way]]:
        pairs = zip(self._operands, self._ranks, strict=True)
        return [(value, way if rank else None) for value, rank in pairs]

    def compute(self, way: _Way, given: list[Any]) -> Any:
        if way is None:
            return self._compute(*given)
        spec, mesh = way
        made: dict[tuple[int, ...], Any] = {}
        parts = []
        for replica in range(mesh.count):
            at = spec.at(replica, mesh)
            if at not in made:
                pairs = zip(given, self._ranks, strict=True)
                made[at] = self._compute(*(v[replica] if rank else v for v, rank in pairs))
            parts.append(made[at])
        return parts


class Item(Lazy):
    """One of an array's, along its first dimension."""

    def __init__(self, number: int, array: Any):
        super().__init__()
        self._number, self._array = number, array
        self.ndim = np.ndim(array) - 1

    def reads(self, way: _Way) -> list[tuple[Any, _Way]]:
        return [(self._array, way and (way[0].of_items(), way[1]))]

    def compute(self, way: _Way, given: list[Any]) -> Any:
        [array] = given
        if way is None:
            return self._of(array)
        made = {id(part): part for part in array}
        items = {key: self._of(part) for key, part in made.items()}
        return [items[id(part)] for part in array]

    def _of(self, array: Any) -> Any:
        return lax.index_in_dim(array, self._number, keepdims=False)


def whole(value: Any) -> Any:
    return _read(value, None)


def split(value: Any, spec: Spec, mesh: Mesh) -> list[Any]:
    """Each replica's part of an array; those that have the same part have the same object."""
    parts: list[Any] = _read(value, (spec, mesh))
    return parts


def _read(value: Any, way: _Way) -> Any:
    """Without recursion: what turns of a loop compute of each other is as deep as they are many."""
    waiting = [(value, way)]
    while waiting:
        each, of_it = waiting[-1]
        if isinstance(each, Lazy) and of_it not in each.made:
            reads = each.reads(of_it)
            before = (r for r in reads if isinstance(r[0], Lazy) and r[1] not in r[0].made)
            if (first := next(before, None)) is not None:
                waiting.append(first)
                continue
            each.made[of_it] = each.compute(of_it, [_known(*read) for read in reads])
        waiting.pop()
    return _known(value, way)


def _known(value: Any, way: _Way) -> Any:
    if isinstance(value, Lazy):
        return value.made[way]
    if isinstance(value, Parts):
        if way == (value.spec, value.mesh):
            return value.values
        value = value.whole()
    return value if way is None else _cut(value, *way)


class Sources:
    """The arrays that are cut where values are. What led to them already needs no second look."""

    def __init__(self) -> None:
        self._seen: set[tuple[Lazy, _Way]] = set()

    def of(self, value: Any, spec: Spec, mesh: Mesh) -> Iterator[tuple[Any, Spec]]:
        """Each with its own spec, of a value that is cut by one."""
        waiting: list[tuple[Any, _Way]] = [(value, (spec, mesh))]
        while waiting:
            each, way = waiting.pop()
            if isinstance(each, Lazy):
                if (each, way) not in self._seen:
                    self._seen.add((each, way))
                    waiting += reversed(each.reads(way))
            elif way is not None and not isinstance(each, Parts):
                yield each, way[0]


def _cut(value: Any, spec: Spec, mesh: Mesh) -> list[Any]:
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
