# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's typed random keys at the border of a compiled step: plain arrays inside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np


def kind(leaf: Any) -> str | None:
    """The generator of a typed key ("fry"), None for anything else."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not _is_of_keys(dtype):
        return None
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return str(jax.random.key_impl(leaf))
    found: list[str] = []
    jax.eval_shape(lambda key: found.append(str(jax.random.key_impl(key))), leaf)
    return found[0]


def _is_of_keys(dtype: Any) -> bool:
    try:
        return bool(jax.numpy.issubdtype(dtype, jax.dtypes.prng_key))
    except TypeError:
        return False  # another library's


def data_of(leaf: Any) -> Any:
    if kind(leaf) is None:
        return leaf
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, leaf)
    return jax.random.key_data(leaf)


class PlainStep:
    """A step whose keys are arrays: `given` has the generator of each flat
    argument. Once traced, `returned` has that of each flat result."""

    def __init__(self, step: Callable[..., Any], given: Sequence[str | None]):
        functools.update_wrapper(self, step)  # its signature is followed
        self._step, self._given = step, given
        self.returned: list[str | None] = []

    def __call__(self, *args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        typed = map(wrap, leaves, self._given)
        result = self._step(*jax.tree.unflatten(tree, typed))
        _check_results(result)
        leaves, results = jax.tree.flatten(result)
        self.returned = [kind(leaf) for leaf in leaves]
        return jax.tree.unflatten(results, map(data_of, leaves))


def wrap(data: Any, generator: str | None) -> Any:
    """A typed key of a generator from its data; with None the data itself."""
    return data if generator is None else jax.random.wrap_key_data(data, impl=generator)


def _check_results(result: Any) -> None:
    """Raises TypeError for what is no array, by its place in the result."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(result)[0]:
        if not hasattr(leaf, "dtype") and not isinstance(leaf, bool | int | float | complex):
            place = f"result{jax.tree_util.keystr(path)}"
            raise TypeError(
                f"{place} is no array but {leaf!r} of type '{type(leaf).__name__}': a step returns "
                "arrays and numbers, in any pytree"
            )
