# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a step with just the arguments that it was compiled for: one call into C.

Arguments are arrays of JAX and numpy that lie on the host in C's order, Python's numbers and
what lies on its device already. What is anything else is left to the longer way, which knows
what is wrong with it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from baechi.jax.dispatch import Dispatcher, Flight
from baechi.jax.pending import PendingArray
from baechi.steps import resident_jax
from baechi.steps.library import StepLibrary, own_memory

Kind = tuple[tuple[int, ...], np.dtype[Any], bool | None]
"""Shape, type, and whether it is weak; None: that does not matter."""

# From this size on a result is aligned, so that JAX need not copy it.
_WORTH_ALIGNING = 1 << 14  # bytes


class QuickCall:
    """The step of a library, for arguments of these kinds. For one thread at a time."""

    def __init__(
        self,
        native: Any,
        library: StepLibrary,
        given: Sequence[Kind],
        updated: dict[int, int],
        results: Sequence[jax.ShapeDtypeStruct],
    ):
        """updated: the results that lie in arguments' places, by argument."""
        self._library = library
        _, wall_ns, _, step = library.addresses()
        resident = set(updated.values())
        arguments = [
            (tuple(shape), np.dtype(dtype), weak, math.prod(shape) * np.dtype(dtype).itemsize)
            for shape, dtype, weak in given
        ]
        self._call = native.StepCall(
            wall_ns,
            step,
            library.queue(native),
            [(*each, _number(*each[:3])) for each in arguments],
            [_bytes(kind) for kind in results],
            list(updated),
            type(jax.numpy.zeros(())),
            np.ndarray,
            PendingArray,
        )
        self._makers = [
            None if k in resident else _maker(kind.shape, np.dtype(kind.dtype))
            for k, kind in enumerate(results)
        ]
        self._put = [
            None if k in resident else resident_jax.Putter(kind) for k, kind in enumerate(results)
        ]

    def __call__(self, leaves: list[Any], holders: list[Any]) -> tuple[int, list[Any]] | None:
        """The step's nanoseconds (-1: it failed) and its results, None for those that are
        resident. None: these arguments are not for it, and nothing has happened."""
        if not self._library.is_open:
            return None
        outputs: list[Any] = [None if make is None else make() for make in self._makers]
        ns = self._call.run(leaves, holders, outputs)
        if ns is None:
            return None
        if ns >= 0:
            for k, put in enumerate(self._put):
                if put is not None:
                    outputs[k] = put(outputs[k])
        return ns, outputs

    def is_direct(self) -> bool:
        """Whether results may be made later: nothing but the arrays is asked of JAX, which
        has another default device chosen, say."""
        return all(put is None or put.is_direct() for put in self._put)

    def dispatch(
        self, leaves: list[Any], holders: list[Any], dispatcher: Dispatcher
    ) -> tuple[Flight, list[Any]] | None:
        """The same, but the step runs when those before it have, and results wait for it.
        Only where `is_direct`."""
        if not self._library.is_open:
            return None
        outputs: list[Any] = [None if make is None else make() for make in self._makers]
        last = dispatcher.last
        pending = self._call.dispatch(leaves, holders, outputs, last and last.pending)
        if pending is None:
            return None
        flight = dispatcher.add(pending)
        for k, put in enumerate(self._put):
            if put is not None:
                outputs[k] = PendingArray(put, outputs[k], flight)
        return flight, outputs


def _maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], np.ndarray]:
    if math.prod(shape) * dtype.itemsize < _WORTH_ALIGNING:
        return functools.partial(np.empty, shape, dtype)
    return functools.partial(own_memory, shape, dtype)


def _bytes(kind: jax.ShapeDtypeStruct) -> int:
    return math.prod(kind.shape) * np.dtype(kind.dtype).itemsize


# Types that Python's numbers have for JAX, by whether they are weak.
_NUMBERS = {
    ("float32", True): "f32",
    ("float64", True): "f64",
    ("int32", True): "i32",
    ("int64", True): "i64",
    ("bool", False): "i1",
}


def _number(shape: tuple[int, ...], dtype: np.dtype[Any], weak: bool | None) -> str:
    """Which of Python's numbers the argument may be."""
    if shape:
        return ""
    return _NUMBERS.get((dtype.name, dtype.name != "bool" if weak is None else weak), "")
