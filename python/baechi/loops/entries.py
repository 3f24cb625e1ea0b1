# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a loop runs over: key vectors with values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

_LARGEST = 2**31
# What blocks have code for; JAX has others.
_TYPES = frozenset(
    "bool float16 bfloat16 float32 float64 int8 int16 int32 int64".split()
    + "uint8 uint16 uint32 uint64".split()
)


def as_array(value: Any, name: str) -> np.ndarray:
    """As JAX takes it: in the machine's order of bytes, and without its x64 mode 32 bits for 64.
    Raises TypeError for what is no array of numbers that blocks have, ValueError for integers that
    32 bits do not hold."""
    if isinstance(value, memoryview | bytes | bytearray | str):
        raise TypeError(
            f"{name} is a {type(value).__name__}, which does not say what its numbers are: give "
            "an array, np.frombuffer(data, dtype) or np.asarray(view)"
        )
    if isinstance(value, Mapping):
        raise TypeError(
            f"{name} is a {type(value).__name__}: give its arrays one by one, each to a parameter "
            "of the body"
        )
    array = np.asarray(value)
    if array.dtype.kind in "OSUMm":
        raise TypeError(f"{name} is of {array.dtype}: give an array of numbers")
    if array.dtype.kind == "c":
        raise TypeError(
            f"{name} is of {array.dtype}, and blocks compute with real numbers: give its real and "
            "its imaginary part, x.real and x.imag, as two"
        )
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.name not in _TYPES:
        raise TypeError(
            f"{name} is of {array.dtype}, for which blocks have no code: give another type, "
            "x.astype(np.float32)"
        )
    taken = array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
    if array.dtype.kind in "iu" and taken.dtype != array.dtype and (taken != array).any():
        at = np.unravel_index(int(np.argmax(taken != array)), array.shape)
        raise ValueError(
            f"{name} has {array[at]} at {list(map(int, at))}, which {taken.dtype} cannot hold, and "
            "JAX computes with 32 bits: call jax.config.update('jax_enable_x64', True) before, or "
            "give floating-point numbers"
        )
    return taken


class Entries:
    """Key vectors with values, in the order of a serial loop.

    keys: a column of integers for each key, `(users, items)`.
    values: what each entry has beside: an array, or any tree of arrays, whose first
        dimension is the entries'; None for nothing. Keys and values are copied.
    bounds: for each key the numbers that it is among, N for 0 to N - 1 or (first, end);
        default: from the least to the greatest that there is.
    names: what messages call the keys.
    Raises ValueError and TypeError, with the entry.
    """

    def __init__(
        self,
        keys: Sequence[Any],
        values: Any = None,
        bounds: Sequence[int | tuple[int, int]] | None = None,
        names: Sequence[str] | None = None,
    ):
        if not isinstance(keys, list | tuple):
            raise TypeError(
                f"keys is a {type(keys).__name__}: give a tuple of columns, (users, items)"
            )
        if any(isinstance(column, memoryview) for column in keys):
            raise TypeError("a column of keys is a memoryview: give np.asarray(view)")
        columns = [np.asarray(column) for column in keys]
        if not columns:
            raise ValueError("keys is empty: give a column for one key at least")
        usual = ["i", "j", "k", *map("i{}".format, range(3, len(columns)))]
        self.names = list(names) if names else usual[: len(columns)]
        if len(self.names) != len(columns):
            raise ValueError(f"{len(columns)} keys have {len(self.names)} names")
        if wrong := [name for name in self.names if not isinstance(name, str) or not name]:
            raise TypeError(f"names has {wrong[0]!r}: a key's name is a word, 'user'")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"names are {', '.join(self.names)}: give each key another")
        for name, column in zip(self.names, columns, strict=True):
            self._check_column(name, column, len(columns[0]))
        if len(columns[0]) == 0:
            raise ValueError("there are no entries: a loop needs one at least")
        self.bounds = [
            self._bounds_of(name, column, bounds[k] if bounds is not None else None)
            for k, (name, column) in enumerate(zip(self.names, columns, strict=True))
        ]
        self.keys = [column.astype(np.int32) for column in columns]
        self.leaves: list[np.ndarray]
        leaves, tree = jax.tree.flatten(values)
        self.tree: Any = tree
        self.leaves = [as_array(leaf, "values").copy() for leaf in leaves]
        for leaf in self.leaves:
            if leaf.ndim == 0 or len(leaf) != len(self):
                raise ValueError(
                    f"values of shape {leaf.shape} are not one for each of {len(self)} entries"
                )
        for own in (*self.keys, *self.leaves):
            own.flags.writeable = False  # programs are kept for these entries
        self._family = object()  # of those with the same keys

    def kind(self) -> tuple[Any, ...]:
        """Equal for entries that a program is the same for: of the same keys, by `with_values`,
        and values of the same form."""
        leaves = tuple((leaf.shape, leaf.dtype.str) for leaf in self.leaves)
        return self._family, self.tree, leaves

    def __len__(self) -> int:
        return len(self.keys[0]) if hasattr(self, "keys") else 0

    def with_values(self, values: Any) -> Entries:
        """The same keys with other values. A loop is not compiled anew for them."""
        names, bounds = self.names, self.bounds
        made = Entries(self.keys, values, bounds, names)
        made._family = self._family
        return made

    def _check_column(self, name: str, column: np.ndarray, count: int) -> None:
        if column.ndim != 1 or len(column) != count:
            raise ValueError(
                f"key '{name}' has shape {column.shape}: a column has one number for each of "
                f"{count} entries"
            )
        if column.dtype.kind not in "iu":
            raise TypeError(f"key '{name}' is of {column.dtype}: keys are integers")

    def _bounds_of(self, name: str, column: np.ndarray, given: Any) -> tuple[int, int]:
        if given is None:
            given = (int(column.min()), int(column.max()) + 1)
        first, end = (0, given) if isinstance(given, int | np.integer) else map(int, given)
        wrong = np.flatnonzero((column < first) | (column >= end))
        if wrong.size:
            at = int(wrong[0])
            raise ValueError(
                f"key '{name}' of entry {at} is {column[at]}, out of its bounds {first} to "
                f"{end - 1}: {wrong.size} of {len(column)} are"
            )
        if first < -_LARGEST or end > _LARGEST:
            raise ValueError(f"key '{name}' is beyond 32 bits: number its values from 0")
        return first, int(end)
