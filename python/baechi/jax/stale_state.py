# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a step of replicas that go on at their own pace (docs/replicas.md): arrays of
floating point are tables of a parameter store; a count or a random key is each replica's own, and
all of them must find the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from baechi.jax import random_keys
from baechi.replicas.arguments import StoreError

# Of a table's rows; a row is what the store sends at once.
_WIDEST = 1024

MEND = "a step of stale_step returns (the next state, what else it computes)"


class StaleState:
    """What the replicas' threads share of a state, and what each has of its own."""

    def __init__(
        self,
        state: Any,
        replicas: int,
        compiled: bool,
        revised: float | Mapping[str, float] | None = None,
    ):
        paths, tree = jax.tree.flatten_with_path(state)
        self.tree: Any = tree
        named = [
            (f"state{jax.tree_util.keystr(path)}", _as_given(value, compiled))
            for path, value in paths
        ]
        self._shared = {
            at: _Shared(name, value) for at, (name, value) in enumerate(named) if _is_real(value)
        }
        self._own = {
            at: _Own(name, value, replicas)
            for at, (name, value) in enumerate(named)
            if at not in self._shared
        }
        if not self._shared:
            raise StoreError(
                "the state has no array of floating point, which is what replicas share: give "
                "the parameters and what the step keeps of them as its first argument"
            )
        names = [leaf.name for leaf in self._shared.values()]
        if revised is not None and not isinstance(revised, Mapping):
            revised = dict.fromkeys(names, revised)
        self.revised = dict(revised or {})
        if unknown := sorted(set(self.revised) - set(names)):
            raise StoreError(
                f"revised has {unknown[0]!r}, which replicas do not share; they share "
                f"{', '.join(names)}"
            )
        self.tables = {leaf.name: leaf.rows_of(named[at][1]) for at, leaf in self._shared.items()}

    def about(self) -> dict[str, Any]:
        """What another step's has to be, too, to go on from this one's."""
        leaves = (self._shared | self._own).items()
        texts = [f"{leaf.name} of {leaf.type}{list(leaf.shape)}" for _, leaf in sorted(leaves)]
        return {"leaves": texts, "revised": self.revised}

    def own(self, worker: int) -> list[Any]:
        """What a replica has for itself."""
        return [leaf.values[worker] for leaf in self._own.values()]

    def put(self, tables: dict[str, np.ndarray], own: Sequence[Any]) -> None:
        """Takes another step's values."""
        self.tables = tables
        for leaf, value in zip(self._own.values(), own, strict=True):
            leaf.values = [value] * len(leaf.values)

    def seen(self, worker: int, read: Callable[[str, range], np.ndarray]) -> Any:
        """The state as a worker sees it, of the rows that `read` gives."""
        leaves = {at: leaf.value_of(read(*leaf.place)) for at, leaf in self._shared.items()}
        leaves |= {at: copied(leaf.values[worker]) for at, leaf in self._own.items()}
        return jax.tree.unflatten(self.tree, [leaves[at] for at in sorted(leaves)])

    def changes(self, before: Any, after: Sequence[Any], count: int) -> list[tuple[Any, ...]]:
        """A table, rows and what each is given: a replica's change, of `count` of them; of what
        is revised its gradient, which that goes against."""
        old = jax.tree.leaves(before)
        shares = {
            at: np.float32(-count if leaf.name in self.revised else count)
            for at, leaf in self._shared.items()
        }
        return [
            (*leaf.place, leaf.rows_of((_single(after[at]) - _single(old[at])) / shares[at]))
            for at, leaf in self._shared.items()
        ]

    def keep(self, worker: int, after: Sequence[Any]) -> list[Any]:
        """Takes a replica's own values for its next call; returns them."""
        for at, leaf in self._own.items():
            leaf.values[worker] = after[at]
        return [after[at] for at in self._own]

    def check_same(self, by_worker: Sequence[Sequence[Any]]) -> None:
        """Raises StoreError where replicas have kept other values than the first one."""
        for worker, kept in enumerate(by_worker):
            for leaf, mine, first in zip(self._own.values(), kept, by_worker[0], strict=True):
                if not _same(mine, first):
                    raise StoreError(
                        f"{leaf.name} of type {leaf.type} is {_text(first)} at replica 0 and "
                        f"{_text(mine)} at replica {worker}: what is no floating point is each "
                        "replica's own, and has to be the same at all; let the step return it "
                        "beside the state, or make it of float32, of which replicas share the mean"
                    )

    def check_next(self, result: Any) -> list[Any]:
        """The leaves of the next state, of arrays or of shapes. Raises TypeError where it is
        another one."""
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"the step returns {type(result).__name__}: {MEND}")
        found, made = jax.tree.flatten(result[0])
        if made != self.tree:
            raise TypeError(
                f"the next state has the structure {made}, and the state {self.tree}: {MEND}"
            )
        for at, value in enumerate(found):
            leaf: _Shared | _Own = self._shared[at] if at in self._shared else self._own[at]
            if np.shape(value) != leaf.shape or _type(value) != leaf.type:
                raise TypeError(
                    f"the next {leaf.name} is {_type(value)} of shape {np.shape(value)}, not "
                    f"{leaf.type} of {leaf.shape}: {MEND}"
                )
        return found


class _Shared:
    """An array of floating point as a table of rows of float32."""

    def __init__(self, name: str, value: Any):
        if value.dtype.itemsize > 4:
            raise StoreError(
                f"{name} is of type {value.dtype} and shape {value.shape}: what replicas share "
                "has at most 32 bits; convert it to float32, or let the step keep it in another "
                "argument"
            )
        self.name = name
        self.shape, self.type, self._dtype = value.shape, str(value.dtype), value.dtype
        self._size = value.size
        self._width = min(value.size, _WIDEST)
        self._rows = -(-value.size // self._width)
        self.place = self.name, range(self._rows)

    def rows_of(self, value: Any) -> np.ndarray:
        flat = np.zeros(self._rows * self._width, np.float32)
        flat[: self._size] = _single(value).reshape(-1)
        return flat.reshape(self._rows, self._width)

    def value_of(self, rows: np.ndarray) -> np.ndarray:
        flat = rows.reshape(-1)[: self._size].reshape(self.shape)
        return flat.astype(self._dtype, copy=False)


class _Own:
    """A value that each replica has for itself: integers, booleans, random keys, arrays of no
    element."""

    def __init__(self, name: str, value: Any, replicas: int):
        if _type(value).startswith("complex") and value.size:
            raise StoreError(
                f"{name} is of type {_type(value)}: replicas share real numbers; give its real "
                "and imaginary parts"
            )
        self.name, self.shape, self.type = name, np.shape(value), _type(value)
        self.values = [value] * replicas


def arrays(value: Any) -> Any:
    """A leaf as NumPy has it; a typed key of JAX's stays one."""
    return value if random_keys.kind(value) else np.asarray(value)


def copied(value: Any) -> Any:
    """That the one who gets it may change."""
    return value if random_keys.kind(value) else value.copy()


def _as_given(value: Any, compiled: bool) -> Any:
    """A leaf of the type that `jax.jit` takes it as, where it goes there; numbers of Python's
    have that everywhere."""
    if random_keys.kind(value):
        return value
    goes_there = compiled or not hasattr(value, "dtype")
    return np.array(value, jax.dtypes.result_type(value) if goes_there else None)


def _is_real(value: Any) -> bool:
    if random_keys.kind(value):
        return False
    return value.size > 0 and bool(jax.numpy.issubdtype(value.dtype, np.floating))


def _single(value: Any) -> np.ndarray:
    return np.asarray(value).astype(np.float32, copy=False)


def _type(value: Any) -> str:
    generator = random_keys.kind(value)
    if generator:
        return f"key<{generator}>"
    return str(value.dtype if hasattr(value, "dtype") else jax.dtypes.result_type(value))


def _same(a: Any, b: Any) -> bool:
    a, b = (np.asarray(random_keys.data_of(value)) for value in (a, b))
    return a.shape == b.shape and bool((a == b).all())


def _text(value: Any) -> str:
    """In a line."""
    array = np.asarray(random_keys.data_of(value))
    return str(array) if array.size <= 4 else f"{str(array.reshape(-1)[:4])[:-1]} ...]"
