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
    import jax
    import jax.numpy as jnp

    if not weak:
        return jax.device_put(value)  # jnp.asarray copies since JAX 0.10
    number = jnp.asarray(value.dtype.type(0).item())
    if number.dtype != value.dtype:  # no type of Python's numbers
        return jax.device_put(value)
    if value.ndim == 0:
        return jnp.asarray(value.item())
    return jnp.full(value.shape, number.item()).at[...].set(value)


def on_gpu(array: Any) -> Any:
    """An array of JAX on the memory of a GpuArray, where this JAX has GPUs; else that."""
    import jax

    try:
        jax.devices("cuda")
    except RuntimeError:
        return array
    return jax.dlpack.from_dlpack(array)


class Putter:
    """Makes arrays of JAX of numpy's, of the dtype, shape and weak_type of `kind`.

    `jax.numpy.asarray` looks at much that is known here and takes ten times as long. Where
    this version of JAX has no such function, or another default device is chosen, it is asked
    all the same.
    """

    def __init__(self, kind: Any):
        import jax

        self._weak = bool(kind.weak_type)
        self.aval: Any = None
        """Of the arrays, in JAX's words; None: they are made by `jax.numpy.asarray`."""
        try:
            from jax._src import config, core
            from jax._src.lib import xla_client  # type: ignore[attr-defined]  # no export

            put, chosen = xla_client.batched_device_put, config.default_device
            aval = core.ShapedArray(tuple(kind.shape), np.dtype(kind.dtype), weak_type=self._weak)
            devices = [jax.local_devices()[0]]
            sharding = jax.sharding.SingleDeviceSharding(devices[0])
            made = put(aval, sharding, [np.zeros(aval.shape, aval.dtype)], devices, False)
            found = (made.dtype, made.weak_type, made.committed)
            as_asked = found == (aval.dtype, self._weak, False)
            # 64 bits become 32 without JAX's x64 mode.
            fits = jax.dtypes.canonicalize_dtype(aval.dtype) == aval.dtype
            if as_asked and fits and devices[0].platform == "cpu":
                self.aval = aval
                self._chosen, self._put, self._where = chosen, put, (sharding, devices)
        except (ImportError, AttributeError, TypeError):
            pass

    def is_direct(self) -> bool:
        """Whether nothing but the array is asked for now."""
        return self.aval is not None and self._chosen.value is None

    def __call__(self, value: np.ndarray) -> Any:
        if not self.is_direct():
            return as_array(value, self._weak)
        return self.directly(value)

    def directly(self, value: np.ndarray) -> Any:
        """Whatever default device has been chosen since `is_direct`."""
        sharding, devices = self._where
        return self._put(self.aval, sharding, [value], devices, False)


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
