# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Donated results as arguments of JAX's own functions.

`jax.numpy` takes whatever has `__jax_array__`; `jax.jit`, `jax.grad`, `jax.lax` and
`jax.device_put` take the types that JAX knows. It has no public way to add one, so this
uses the tables in which it keeps its own; where a version of JAX has others, its functions
say what they always said: that the array must be converted first.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def as_array(value: np.ndarray, weak: bool = False) -> Any:
    """An array of JAX. If its type is weak, it takes the other operand's type, as Python's
    numbers do: `jax.numpy` makes such arrays of these."""
    import jax.numpy as jnp

    if not weak:
        return jnp.asarray(value)
    number = jnp.asarray(value.dtype.type(0).item())
    if number.dtype != value.dtype:  # no type of Python's numbers
        return jnp.asarray(value)
    if value.ndim == 0:
        return jnp.asarray(value.item())
    return jnp.full(value.shape, number.item()).at[...].set(value)


def register(kind: type) -> bool:
    """Makes `kind` a type of JAX's arrays: it has a shape, a dtype and `__jax_array__`.

    False where this version of JAX keeps its types elsewhere.
    """
    try:
        from jax._src import core, dtypes
        from jax._src.interpreters import pxla

        abstract = core.pytype_aval_mappings
        canonical = dtypes.canonicalize_value_handlers
        on_devices = pxla.shard_arg_handlers
    except (ImportError, AttributeError):
        return False

    def to_devices(values: Any, *rest: Any) -> Any:
        arrays = [value.__jax_array__() for value in values]
        return on_devices[type(arrays[0])](arrays, *rest)

    abstract[kind] = lambda value: core.ShapedArray(
        value.shape, value.dtype, weak_type=value.weak_type
    )
    canonical[kind] = lambda value: value.__jax_array__()
    on_devices[kind] = to_devices
    return True
