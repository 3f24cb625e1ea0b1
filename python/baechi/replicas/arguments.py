# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a parameter store is given, checked before the library gets it as C's numbers."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

_LARGEST = 2**31 - 1


class StoreError(RuntimeError):
    """A wrong use, a worker that was lost or is late, or a number that is not finite."""


def whole(what: str, value: Any, mend: str, largest: int = _LARGEST) -> int:
    """An integer that fits; its least value is the library's to say."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise StoreError(f"{what} is {value!r}: give {mend}") from None
    if abs(number) > largest:
        raise StoreError(f"{what} is {number}: give {mend}, at most {largest}")
    return number


def real(what: str, value: Any, mend: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise StoreError(f"{what} is {value!r}: give {mend}")
    return float(value)


def array(what: str, values: Any) -> np.ndarray:
    """float32 of what has a value for each element: no complex numbers, no words."""
    try:
        found = np.asarray(values)
    except ValueError as error:  # rows of several lengths
        raise StoreError(f"{what}: {error}; give numbers") from None
    if found.dtype.kind not in "biuf" and not _is_small_float(found.dtype):
        raise StoreError(f"{what}: {found.dtype} has no value in float32; give real numbers")
    return np.asarray(found, np.float32)


def _is_small_float(dtype: np.dtype) -> bool:
    """bfloat16 and its like, which NumPy knows as bytes."""
    return dtype.kind == "V" and "float" in dtype.name


def shapes_and_starts(
    tables: Any,
) -> tuple[dict[str, tuple[int, int]], dict[str, np.ndarray]]:
    """Rows and width of each table, and the values of those that begin with some."""
    told = "give a dictionary of names to (rows, width) or to arrays of two dimensions"
    if not isinstance(tables, Mapping):
        raise StoreError(f"tables is of type {type(tables).__name__}: {told}")
    shapes, starts = {}, {}
    for name, of in tables.items():
        if not isinstance(name, str):
            raise StoreError(f"tables has {name!r} for a name: {told}")
        if isinstance(of, np.ndarray):
            if of.ndim != 2:
                raise StoreError(
                    f"table '{name}': a table is an array of two dimensions, not of {of.ndim}"
                )
            starts[name] = array(f"table '{name}'", of)
            shapes[name] = of.shape
            continue
        if not isinstance(of, tuple | list) or len(of) != 2:
            raise StoreError(f"table '{name}' is {of!r}: {told}")
        rows, width = (
            whole(f"table '{name}': {what}", size, "a number from 1 on", 2**32 - 1)
            for what, size in zip(("rows", "width"), of, strict=True)
        )
        if rows < 1 or width < 1:
            raise StoreError(f"table '{name}' has {rows} rows of {width} numbers: give at least 1")
        shapes[name] = rows, width
    return shapes, starts


def revisions(revised: Any, tables: Mapping[str, Any]) -> dict[str, float]:
    """The size of the steps of each table that is given gradients."""
    if revised is None:
        return {}
    if not isinstance(revised, Mapping):
        raise StoreError(
            f"revised is of type {type(revised).__name__}: give a dictionary of tables' names to "
            "the sizes of their steps"
        )
    for name, step in revised.items():
        if name not in tables:
            every = ", ".join(f"'{table}'" for table in tables)
            raise StoreError(f"there is no table '{name}' to be revised; known: {every}")
        if not real(f"the step of table '{name}'", step, "a number above 0") > 0:
            raise StoreError(f"table '{name}' is revised with steps of {step}: give more than 0")
    return {name: float(step) for name, step in revised.items()}


_NOTHING = object()


def rows_and_values(
    name: str, width: int, rows: Any, given: Any = _NOTHING
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a table as the library takes them, and their values: those given, or room."""
    asked = np.atleast_1d(np.asarray(rows))
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise StoreError(
            f"rows of '{name}' are a number or a list of integers, not {asked.dtype} of "
            f"{asked.ndim} dimensions"
        )
    if asked.size and int(asked.min()) < 0:
        raise StoreError(f"table '{name}' has no row {asked.min()}: rows count from 0")
    which = np.ascontiguousarray(asked, dtype=np.int64)
    shape = (width,) if np.ndim(rows) == 0 else (len(which), width)
    if given is _NOTHING:  # None is no number
        return which, np.empty(shape, np.float32)
    numbers = array(f"table '{name}'", given)
    try:
        return which, np.ascontiguousarray(np.broadcast_to(numbers, shape))
    except ValueError:
        raise StoreError(
            f"table '{name}' is given values of shape {numbers.shape}, where {shape} are asked "
            "for: give a row for each, or one for all"
        ) from None


def known(name: str, tables: Mapping[str, Any]) -> Any:
    """What a table's name stands for."""
    if not isinstance(name, str) or name not in tables:
        every = ", ".join(f"'{table}'" for table in tables)
        raise StoreError(f"there is no table {name!r}; known: {every}")
    return tables[name]


def address(given: Any) -> tuple[str, int]:
    """A machine's name or number, and a port."""
    told = "give the machine's name or number and a port, as ('127.0.0.1', 7000)"
    if not isinstance(given, tuple | list) or len(given) != 2 or not isinstance(given[0], str):
        raise StoreError(f"the address is {given!r}: {told}")
    port = whole("the address's port", given[1], "a number from 0 to 65535", 65535)
    if port < 0:
        raise StoreError(f"the address's port is {port}: give a number from 0 to 65535")
    return given[0], port
