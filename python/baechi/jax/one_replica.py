# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one replica computes as the step of all: `axis_name` and `in_axes` of `baechi.jit`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from baechi.importer.common.errors import ImportFailure
from baechi.importer.jax import replicas
from baechi.jax.bound import Bound

_SPEC: Any = PartitionSpec  # which has no types

# An argument's, where it has none: as of jax.vmap, None is what all replicas have.
NOT_GIVEN = object()


@dataclasses.dataclass(frozen=True)
class OneReplica:
    """How a step that is written for one replica is that of `count`."""

    axis: str
    in_axes: Any  # of all arguments by position
    count: int

    def of_all(
        self, step: Callable[..., Any], bound: Bound, static: Collection[int]
    ) -> Callable[..., Any]:
        """The step of all replicas, of the arguments that are not static."""
        axes = self._axes(bound)
        given = tuple(axis for i, axis in enumerate(axes) if i not in static)

        @functools.wraps(step)
        def of_all(*args: Any) -> Any:
            return self._mapped(step, given, args)

        return of_all

    def _axes(self, bound: Bound) -> list[Any]:
        """Of each argument; those by name are cut along the first dimension, as jax.vmap's."""
        count = len(bound.values) - len(bound.keywords)
        axes = self.in_axes
        if not isinstance(axes, tuple | list):
            axes = [axes] * count
        if len(axes) != count:
            raise ValueError(
                f"in_axes has {len(axes)} entries, and the step is called with {count} arguments "
                "by position: give one for each"
            )
        return [*axes, *[0] * len(bound.keywords)]

    def _mapped(self, step: Callable[..., Any], axes: tuple[Any, ...], args: Any) -> Any:
        try:
            along = jax.tree.broadcast(axes, args, is_leaf=lambda axis: axis is None)
        except ValueError as error:
            raise ValueError(
                f"in_axes is {axes!r}, which has not the structure of the arguments: {error}"
            ) from error
        leaves, tree = jax.tree.flatten(args)
        specs = [
            self._spec(axis, leaf)
            for axis, leaf in zip(
                jax.tree.leaves(along, is_leaf=lambda axis: axis is None), leaves, strict=True
            )
        ]
        mesh = AbstractMesh((self.count,), (self.axis,), axis_types=(AxisType.Auto,))
        mapped = functools.partial(
            jax.shard_map,
            step,
            mesh=mesh,
            in_specs=jax.tree.unflatten(tree, specs),
            check_vma=False,  # what differs between replicas is looked for
        )
        same, result = replicas.agreements(mapped(out_specs=_SPEC()), args)
        paths, results = jax.tree.flatten_with_path(result)
        out = []
        for is_same, (path, leaf) in zip(same, paths, strict=True):
            if not is_same and leaf.ndim == 0:
                raise ImportFailure(
                    f"result{jax.tree_util.keystr(path)} differs between replicas and has no "
                    "dimension that their values could lie along: return "
                    f"lax.pmean(…, {self.axis!r}) or lax.psum of it (docs/replicas.md)"
                )
            out.append(_SPEC() if is_same else _SPEC(self.axis))
        return mapped(out_specs=jax.tree.unflatten(results, out))(*args)

    def _spec(self, axis: int | None, leaf: Any) -> PartitionSpec:
        if axis is None:
            return _SPEC()
        rank = jax.numpy.ndim(leaf)
        if not -rank <= axis < rank or leaf.shape[axis] % self.count:
            raise ValueError(
                f"in_axes cuts an argument of shape {jax.numpy.shape(leaf)} along dimension "
                f"{axis} in {self.count} parts of one size: give it a dimension of which "
                f"{self.count} is a divisor, or None where all replicas have all of it"
            )
        return _SPEC(*(None,) * (axis % rank), self.axis)


def one_replica(axis_name: Any, in_axes: Any, count: int) -> OneReplica | None:
    """Raises ValueError for what is not given together."""
    if axis_name is None and in_axes is NOT_GIVEN:
        return None
    if axis_name is None or in_axes is NOT_GIVEN or count < 2:
        raise ValueError(
            "axis_name, in_axes and replicas are given together, for a step that is what one "
            "replica computes: replicas=2, axis_name='batch', in_axes=(None, 0, 0), where None "
            "is for arguments that all replicas have and a number the dimension that others are "
            "cut along"
        )
    if not isinstance(axis_name, str):
        raise TypeError(f"axis_name is {axis_name!r}: give the name that lax.psum has, 'batch'")
    return OneReplica(axis_name, in_axes, count)
