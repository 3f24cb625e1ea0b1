# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`in_axes`, which are as of `jax.vmap`: along which dimension replicas have their parts of each
argument, and None where all of them have all of it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def axes_of_arguments(in_axes: Any, count: int, which: str) -> tuple[Any, ...]:
    """For each of the arguments; which: they are, in words."""
    axes = in_axes if isinstance(in_axes, tuple | list) else [in_axes] * count
    if len(axes) != count:
        raise ValueError(
            f"in_axes has {len(axes)} entries, and the step is called with {count} arguments "
            f"{which}: give one for each"
        )
    return tuple(axes)


def axes_of_leaves(axes: tuple[Any, ...], args: tuple[Any, ...], replicas: int) -> list[int | None]:
    """For each array in the arguments, a dimension from 0 that can be cut. What is None among
    the arguments is no array, whatever its axis is."""
    found, flat = jax.tree.flatten(axes, is_leaf=lambda axis: axis is None)
    tree: Any = flat
    try:
        parts = tree.flatten_up_to(args)
    except ValueError as error:
        raise ValueError(
            f"in_axes is {axes!r}, which has not the structure of the arguments: {error}"
        ) from error
    return [
        None if axis is None else _dimension(axis, np.shape(leaf), replicas)
        for axis, part in zip(found, parts, strict=True)
        for leaf in jax.tree.leaves(part)
    ]


def _dimension(axis: Any, shape: tuple[int, ...], replicas: int) -> int:
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise TypeError(
            f"in_axes has {axis!r}: give the number of the dimension that an argument is cut "
            "along, or None where all replicas have all of it"
        )
    if not -len(shape) <= axis < len(shape) or shape[axis] % replicas:
        raise ValueError(
            f"in_axes cuts an argument of shape {shape} along dimension {axis} in {replicas} "
            f"parts of one size: give it a dimension of which {replicas} is a divisor, or None "
            "where all replicas have all of it"
        )
    return int(axis) % len(shape)
