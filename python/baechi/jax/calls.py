# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call of a JAX step in words, for errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import numpy as np

from baechi.importer.jax.signature import is_weak
from baechi.jax.bound import Bound

# More leaves than this are a model's: the first tell what went where.
_MOST = 8


def describe(step: Callable[..., Any], bound: Bound) -> str:
    """`f(p['w']: float32[2,3], x: float32[4])`."""
    words = [
        f"{name}{jax.tree_util.keystr(path)}: {_kind(leaf)}"
        for name, value in zip(bound.names(step), bound.values, strict=True)
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]
    ]
    if len(words) > _MOST:
        words[_MOST:] = [f"and {len(words) - _MOST} more"]
    return f"{getattr(step, '__name__', 'step')}({', '.join(words)})"


def no_array(
    step: Callable[..., Any], bound: Bound, dynamic: Sequence[Any], static: Collection[int]
) -> TypeError:
    """The error for the first value that is no array. dynamic: the arguments that are not
    static, whose positions are given."""
    names = [name for i, name in enumerate(bound.names(step)) if i not in static]
    for name, value in zip(names, dynamic, strict=True):
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
            argument = f"{name}{jax.tree_util.keystr(path)}"
            if isinstance(leaf, np.ma.MaskedArray):
                return TypeError(
                    f"argument {argument} is a masked array: give {argument}.filled(number)"
                )
            try:
                type_of(leaf)
            except (TypeError, ValueError):
                mend = (
                    "or let the step have it from around it (`equinox.partition` takes such "
                    "leaves out of a model)"
                    if path
                    else "or name the argument in static_argnames"
                )
                return TypeError(
                    f"argument {argument} is no array but {leaf!r} of type "
                    f"'{type(leaf).__name__}': give an array or a number, {mend}"
                )
    return TypeError("an argument is no array")


def type_of(leaf: Any) -> tuple[tuple[int, ...], np.dtype, bool]:
    """Shape and type as JAX has them, and whether the type is weak: without its x64
    mode, 64 bits become 32. Raises TypeError or ValueError for what is no array of JAX."""
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError("a masked array")
    weak = is_weak(leaf)
    if not hasattr(leaf, "dtype"):
        leaf = jax.numpy.asarray(leaf)
    return tuple(leaf.shape), jax.dtypes.canonicalize_dtype(leaf.dtype), weak


def _kind(leaf: Any) -> str:
    if not hasattr(leaf, "dtype"):
        return type(leaf).__name__
    return f"{leaf.dtype}[{','.join(map(str, np.shape(leaf)))}]"
