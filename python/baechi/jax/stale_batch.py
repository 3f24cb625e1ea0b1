# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each replica is given of a call's batch (docs/replicas.md): its part of what is cut, and
what all of them have, of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from baechi.jax import random_keys
from baechi.jax.bound import Bound, Chosen
from baechi.jax.in_axes import axes_of_arguments, axes_of_leaves


class Batches:
    """Cuts the arguments of a step's calls that follow its state."""

    def __init__(self, step: Callable[..., Any], static: Chosen, in_axes: Any, replicas: int):
        self._step, self._static, self._axes, self._count = step, static, in_axes, replicas

    def parts(self, batch: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The arguments of each replica."""
        static = self.static(batch)
        axes = axes_of_arguments(self._axes, len(batch), "beside its state")
        dynamic = tuple(value for i, value in enumerate(batch) if i not in static)
        mine = tuple(axis for i, axis in enumerate(axes) if i not in static)
        leaves, tree = jax.tree.flatten(dynamic)
        cut = [
            _parts_of(leaf, axis, self._count)
            for axis, leaf in zip(axes_of_leaves(mine, dynamic, self._count), leaves, strict=True)
        ]
        by_replica = list(zip(*cut, strict=True)) or [()] * self._count
        return [merged(static, jax.tree.unflatten(tree, each)) for each in by_replica]

    def static(self, batch: tuple[Any, ...]) -> dict[int, Any]:
        """Those that a program is for, by their place in the batch."""
        found = Bound((None, *batch)).hashable(self._step, self._static)
        if 0 in found:
            raise ValueError(
                "static_argnums has the step's argument 0, which is its state, and no value that a "
                "program is for: leave it out"
            )
        return {place - 1: value for place, value in found.items()}


def merged(static: dict[int, Any], dynamic: tuple[Any, ...]) -> tuple[Any, ...]:
    """A batch of its static values and the others in their order."""
    rest = iter(dynamic)
    count = len(static) + len(dynamic)
    return tuple(static[i] if i in static else next(rest) for i in range(count))


def _parts_of(leaf: Any, axis: int | None, count: int) -> list[Any]:
    """Of their own: the call returns before they are used, and what is no array of JAX's may be
    changed after it, by the caller or by a replica's step."""
    if axis is not None and random_keys.kind(leaf):
        return jax.numpy.split(leaf, count, axis)
    if axis is not None:
        return [part.copy() for part in np.split(np.asarray(leaf), count, axis)]
    if isinstance(leaf, jax.Array):
        return [leaf] * count
    return [copy.deepcopy(leaf) for _ in range(count)]
