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
from baechi.jax.in_axes import axes_of_arguments, axes_of_leaves

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
        axes = axes_of_arguments(self.in_axes, count, "by position")
        return [*axes, *[0] * len(bound.keywords)]

    def _mapped(self, step: Callable[..., Any], axes: tuple[Any, ...], args: Any) -> Any:
        specs = [
            _SPEC() if axis is None else _SPEC(*(None,) * axis, self.axis)
            for axis in axes_of_leaves(axes, args, self.count)
        ]
        mesh = AbstractMesh((self.count,), (self.axis,), axis_types=(AxisType.Auto,))
        mapped = functools.partial(
            jax.shard_map,
            step,
            mesh=mesh,
            in_specs=jax.tree.unflatten(jax.tree.structure(args), specs),
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
