# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What JAX's collectives compute of the values of all replicas, which are at hand.

Sums are of pairs of neighbours, then of pairs of these, in the replicas' order, as
`--baechi-replicate` adds gradients.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


class UnknownForm(Exception):
    """A collective of a form that is not known; the message says which."""


@dataclasses.dataclass(frozen=True, eq=False)
class Mesh:
    """The axes that replicas are numbered by, the last one fastest."""

    axes: Mapping[str, int]

    def __eq__(self, other: object) -> bool:
        """Mappings are equal in any order of their axes, which number replicas otherwise."""
        return isinstance(other, Mesh) and self._ordered() == other._ordered()

    def __hash__(self) -> int:
        return hash(self._ordered())

    def _ordered(self) -> tuple[tuple[str, int], ...]:
        return tuple(self.axes.items())

    @property
    def count(self) -> int:
        return math.prod(self.axes.values())

    def index(self, replica: int, names: Sequence[str]) -> int:
        """A replica's number along some axes, the last one fastest."""
        rest, along = replica, {}
        for name, size in reversed(self.axes.items()):
            rest, along[name] = divmod(rest, size)
        number = 0
        for name in names:
            number = number * self.axes[name] + along[name]
        return number

    def groups(self, names: Sequence[str], numbers: Any = None) -> list[list[int]]:
        """Replicas that differ in these axes alone, in their order along them; numbers:
        `axis_index_groups`."""
        others = [name for name in self.axes if name not in names]
        apart: dict[int, list[int]] = {}
        for replica in range(self.count):
            apart.setdefault(self.index(replica, others), []).append(replica)
        whole = [sorted(each, key=lambda r: self.index(r, names)) for each in apart.values()]
        if numbers is None:
            return whole
        return [[group[i] for i in some] for group in whole for some in numbers]


def names_of(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """The axes of a collective; those that are numbers are dimensions."""
    names = params.get("axes", params.get("axis_name", ()))
    return tuple(names) if isinstance(names, tuple | list) else (names,)


# A rule takes the values of a group's members and gives each its result.
Rule = Callable[..., Sequence[Any]]


def _joined(join: Callable[[Any, Any], Any]) -> Rule:
    def rule(values: Sequence[Any], **_: Any) -> Sequence[Any]:
        left = list(values)
        while len(left) > 1:
            pairs = [join(a, b) for a, b in zip(left[::2], left[1::2])]
            left = pairs + left[len(pairs) * 2 :]
        return left * len(values)

    return rule


_sum = _joined(lax.add)


def _all_gather(
    values: Sequence[Any], *, all_gather_dimension: int, tiled: bool, **_: Any
) -> Sequence[Any]:
    put = jnp.concatenate if tiled else jnp.stack
    return [put(list(values), axis=all_gather_dimension)] * len(values)


def _reduce_scatter(
    values: Sequence[Any], *, scatter_dimension: int, tiled: bool, **_: Any
) -> Sequence[Any]:
    # Parts before sums: each replica adds its own.
    parts = [_parts(value, scatter_dimension, len(values), tiled) for value in values]
    return [_sum(mine)[0] for mine in zip(*parts, strict=True)]


def _all_to_all(
    values: Sequence[Any], *, split_axis: int, concat_axis: int, **_: Any
) -> Sequence[Any]:
    # Of one that is not tiled JAX adds and takes off the dimension around it.
    parts = [_parts(value, split_axis, len(values), True) for value in values]
    return [jnp.concatenate(mine, axis=concat_axis) for mine in zip(*parts, strict=True)]


def _ppermute(values: Sequence[Any], *, perm: Any, **_: Any) -> Sequence[Any]:
    """What nobody sends to has zeros. As in JAX -1 is the last one."""
    count = len(values)
    for number in (each for pair in perm for each in pair):
        if not -count <= number < count:
            raise UnknownForm(f"its permutation names {number}, and {count} are along its axes")
    source = {target % count: origin % count for origin, target in perm}
    if not len(source) == len(set(source.values())) == len(perm):
        raise UnknownForm("its permutation has a source or a target twice")
    return [
        values[source[number]] if number in source else jnp.zeros_like(value)
        for number, value in enumerate(values)
    ]


def _parts(value: Any, axis: int, count: int, tiled: bool) -> list[Any]:
    size = value.shape[axis] // count
    parts = [lax.slice_in_dim(value, i * size, (i + 1) * size, axis=axis) for i in range(count)]
    return parts if tiled else [lax.squeeze(part, (axis,)) for part in parts]


RULES: dict[str, Rule] = {
    "psum": _sum,
    "psum_invariant": _sum,
    "pmax": _joined(lax.max),
    "pmin": _joined(lax.min),
    "all_gather": _all_gather,
    "all_gather_invariant": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
}

# Of those that may be along dimensions, too, which an inner `vmap` makes of its axis.
_ALONG_DIMENSIONS: dict[str, Callable[[Any, Sequence[int]], Any]] = {
    "psum": lax.reduce_sum,
    "pmax": lax.reduce_max,
    "pmin": lax.reduce_min,
}

# They change JAX's types of values, and no value.
TYPES_ALONE = {"pvary", "reshard", "sharding_constraint", "mesh_cast"}


def apply(mesh: Mesh, name: str, values: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """A collective's result for each replica. Raises UnknownForm."""
    rest = dict(params)
    groups = rest.pop("axis_index_groups", None)
    axes = names_of(rest)
    names = [axis for axis in axes if not isinstance(axis, int)]
    if dims := [axis for axis in axes if isinstance(axis, int)]:
        if name not in _ALONG_DIMENSIONS:
            raise UnknownForm("it is along a dimension, too: reduce that before")
        each = {id(value): value for value in values}
        reduced = {key: _ALONG_DIMENSIONS[name](value, dims) for key, value in each.items()}
        values = [reduced[id(value)] for value in values]
    results: list[Any] = [None] * mesh.count
    # Groups of the same values have the same results: what several axes make is one value.
    made: dict[tuple[int, ...], Sequence[Any]] = {}
    for members in mesh.groups(names, groups):
        if name == "ppermute" and sorted(members) != members:
            # Up to JAX 0.10 its numbers are by the mesh, however axes are named; 0.11 asks.
            if hasattr(jax.config, "jax_raise_on_ppermute_sort_diff"):
                raise UnknownForm("its axes are not in the mesh's order: name them in that")
            members = sorted(members)
        own = [values[member] for member in members]
        key = tuple(map(id, own))
        if key not in made:
            made[key] = RULES[name](own, **rest)
        for member, result in zip(members, made[key], strict=True):
            results[member] = result
    if any(result is None for result in results):
        raise UnknownForm("its axis_index_groups leave replicas out")
    return results
