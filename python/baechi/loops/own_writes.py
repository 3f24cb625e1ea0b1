# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an entry itself has written where it reads: a read sees it, as in a serial loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.loops.positions import Position


def covers(store: Sequence[Position], read: Sequence[Position], shape: Sequence[int]) -> bool:
    """Whether all that is read has surely been written."""
    return all(
        b.known and (_is_all(a, extent) or _contains(a, b))
        for a, b, extent in zip(store, read, shape, strict=True)
    )


def never_meet(store: Sequence[Position], read: Sequence[Position]) -> bool:
    """Whether no element is of both, whatever the keys are."""
    for a, b in zip(store, read, strict=True):
        begin = _begins_of(a, b)
        if begin is not None and (begin >= a.size or begin + b.size <= 0):
            return True
    return False


def seen_through(
    value: jax.Array,
    read: Sequence[Position],
    stored: jax.Array,
    store: Sequence[Position],
    keys: Sequence[Any],
    shape: Sequence[int],
) -> jax.Array:
    """What is read once `stored` is written: `value` where that is elsewhere."""
    result_shape = value.shape
    value = value.reshape([p.size for p in read])
    stored = stored.reshape([p.size for p in store])
    mask: Any = np.array(True)
    for d, (a, b, extent) in enumerate(zip(store, read, shape, strict=True)):
        begin: Any = _begins_of(a, b)
        if (begin, a.size) == (0, b.size):
            continue
        if begin is None:
            begin = b.at(keys, extent) - a.at(keys, extent)
        # Where the elements that are read are among those that were written.
        places = begin if b.size == 1 else begin + np.arange(b.size, dtype=np.int32)
        inside = places == 0 if a.size == 1 else (places >= 0) & (places < a.size)
        if b.size > 1:
            inside = inside.reshape([b.size if k == d else 1 for k in range(len(shape))])
        mask = mask & inside
        if a.size > 1:
            stored = _picked(stored, places, a.size, d)
    if isinstance(mask, jax.Array) or not mask.all():
        stored = jnp.where(mask, stored, value)
    return jnp.broadcast_to(stored, value.shape).reshape(result_shape)


def _picked(stored: jax.Array, places: Any, size: int, dimension: int) -> jax.Array:
    """Of one dimension the elements at places, or, beyond, any."""
    if not isinstance(places, jax.Array):
        at = np.clip(np.atleast_1d(places), 0, size - 1)
        return jnp.take(stored, at, axis=dimension)
    bounded = jnp.clip(jnp.atleast_1d(places), 0, size - 1)
    picked = [
        jax.lax.dynamic_slice_in_dim(stored, bounded[n], 1, dimension)
        for n in range(bounded.shape[0])
    ]
    return jnp.concatenate(picked, axis=dimension)


def _is_all(position: Position, extent: int) -> bool:
    begins = position.known and position.constant == 0 and not any(position.factors)
    return begins and position.size == extent


def _contains(store: Position, read: Position) -> bool:
    begin = _begins_of(store, read)
    return begin is not None and begin >= 0 and begin + read.size <= store.size


def _begins_of(store: Position, read: Position) -> int | None:
    """Where in what was written it is that is read, if that is the same for all keys."""
    if not store.known or not read.known or store.factors != read.factors:
        return None
    return read.constant - store.constant
