# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing a loop's body: its accesses, and a function of what they read to what they write."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from baechi.loops.accesses import Access
from baechi.loops.entries import Entries
from baechi.loops.positions import Key, Position, as_number, meet, positions_of
from baechi.loops.sums import mark_sums

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
_JAX = pathlib.Path(jax.__file__).resolve().parent


class LoopError(ValueError):
    """A loop that is not well formed, or that may not run as it was asked to; the text names
    the place and the mend."""


# What is kept of a position that data tell and that its array does not have: the entry's number
# plus 1 (0: there is none), the access, the dimension and the position.
OUTSIDE = jax.ShapeDtypeStruct((4,), np.int32)  # type: ignore[no-untyped-call]


@dataclasses.dataclass
class Body:
    """A traced body.

    function: of keys, values' leaves, what the accesses read, the whole arrays of those that
        depend on data, and, where there are such, the entry's number and OUTSIDE; gives what
        the accesses write, the positions of these that depend on data, the new values' leaves,
        and OUTSIDE.
    reads_at: of the same; gives where each read whose position depends on data begins, a number
        a dimension.
    """

    names: list[str]  # the arrays'
    accesses: list[Access]
    function: Callable[..., list[Any]]
    arguments: list[jax.ShapeDtypeStruct]
    new_values: bool  # whether entries get them
    reads_at: Callable[..., list[list[Any]]]

    @property
    def by_data(self) -> bool:
        """Whether positions depend on data."""
        return not all(access.known for access in self.accesses)


class _Array:
    """An array within the body: reads and writes are recorded."""

    def __init__(self, trace: _Trace, number: int, name: str, like: jax.ShapeDtypeStruct):
        self._trace, self._number, self._name = trace, number, name
        self.shape, self.dtype, self.ndim = like.shape, like.dtype, len(like.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> jax.Array:
        return self._trace.read(self, self._positions(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._trace.write(self, self._positions(index), value)

    def __jax_array__(self) -> jax.Array:
        return self[...]

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    @property
    def at(self) -> Any:
        raise LoopError(
            f"{_place()}'{self._name}' is changed with .at, which makes another array: write "
            f"{self._name}[i] = value or {self._name}[i] += value"
        )

    def _positions(self, index: Any) -> tuple[Position, ...]:
        try:
            return positions_of(index, self.shape, self._trace.keys, self._name)
        except (IndexError, TypeError) as error:
            raise LoopError(f"{_place()}{error}") from None


class _Trace:
    """apart: reads do not see what the entry has written, and each is given."""

    def __init__(
        self,
        keys: Sequence[Any],
        reads: Sequence[Any] | None,
        wholes: dict[int, Any] | None,
        apart: bool = False,
    ):
        self._key_values, self.keys = keys, len(keys)
        self.accesses: list[Access] = []
        self.written: list[Any] = []  # with the accesses that write
        # Of each read whether something that the entry has written is or may be there.
        self.seen: list[tuple[Access, bool]] = []
        self._reads = None if reads is None else iter(reads)
        self._wholes, self._apart = wholes, apart
        self._stores: dict[int, list[tuple[Access, Any]]] = {}  # an array's, as they follow

    def read(self, array: _Array, positions: tuple[Position, ...]) -> jax.Array:
        shape = tuple(p.size for p in positions if not p.dropped)
        access = Access(array._number, False, positions, _place(), _source())
        if self._apart and self._reads is not None:
            self.accesses.append(access)
            return next(self._reads)
        later, value = self._stores_that_meet(array, access)
        own = value is None
        if value is None:
            value = self._read_before(array, access, shape)
        elif value.shape != shape:
            value = value.reshape(shape)
        self.seen.append((access, bool(later) or not own))
        for same, stored in later:
            value = jnp.where(same, stored.reshape(shape), value)
        return value

    def _stores_that_meet(self, array: _Array, access: Access) -> tuple[list[Any], Any]:
        """What the entry itself has stored where it now reads: the last that surely is of this
        place, and with a condition each those after it that may be."""
        found: list[tuple[Any, Any]] = []
        surely = None
        for store, stored in self._stores.get(array._number, []):
            same = meet(store.positions, access.positions, self._key_values, array.shape)
            if same is None:
                raise LoopError(
                    f"{_place()}'{array._name}' is read where the same entry may have written a "
                    f"part of it ({store.place.rstrip(': ')}): read before that write, and "
                    "take what is written there from its value"
                )
            if same is True:
                found, surely = [], stored
            elif same is not False:
                found.append((same, stored))
        return found, surely

    def _read_before(self, array: _Array, access: Access, shape: tuple[int, ...]) -> jax.Array:
        """As the array was when the entry began."""
        positions = access.positions
        self.accesses.append(access)
        if access.known:
            if self._reads is None:
                value = jnp.zeros(shape, array.dtype)
            else:
                value = next(self._reads)
        else:
            access.within = True
            whole = (
                jnp.zeros(array.shape, array.dtype)
                if self._wholes is None
                else self._wholes[array._number]
            )
            starts = [p.begins(size) for p, size in zip(positions, array.shape, strict=True)]
            if any(any(p.factors) for p in positions):
                raise LoopError(
                    f"{_place()}'{array._name}' is read at a key and at a number that depends on "
                    "data: read the whole row, and pick of it"
                )
            value = jax.lax.dynamic_slice(whole, starts, [p.size for p in positions])
            value = value.reshape(shape)
        return value

    def write(self, array: _Array, positions: tuple[Position, ...], value: Any) -> None:
        shape = tuple(p.size for p in positions if not p.dropped)
        value = jnp.asarray(as_number(value))
        if not np.can_cast(value.dtype, array.dtype, "same_kind"):
            raise LoopError(
                f"{_place()}'{array._name}' is of {array.dtype}, what is written of "
                f"{value.dtype}: write value.astype({array._name}.dtype)"
            )
        try:
            value = jnp.broadcast_to(value, shape).astype(array.dtype)
        except ValueError:
            raise LoopError(
                f"{_place()}what is written to '{array._name}' has shape {value.shape}, its "
                f"place {shape}"
            ) from None
        access = Access(array._number, True, positions, _place(), _source())
        self._stores.setdefault(array._number, []).append((access, value))
        self.accesses.append(access)
        self.written.append(value)


def _like(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def shape_of(array: Any) -> jax.ShapeDtypeStruct:
    return _like(array.shape, array.dtype)


def trace(
    body: Callable[..., Any],
    entries: Entries,
    arrays: Sequence[jax.ShapeDtypeStruct],
    names: list[str],
) -> Body:
    """Traces a body. Raises LoopError."""
    count = len(entries.keys)

    def run(trace: _Trace, keys: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        units = [tuple(int(a == b) for b in range(count)) for a in range(count)]
        named = tuple(Key(unit, 0, tuple(keys)) for unit in units)
        views = [_Array(trace, n, names[n], like) for n, like in enumerate(arrays)]
        value = jax.tree.unflatten(entries.tree, values) if values else None
        returned = body(named if count > 1 else named[0], value, *views)
        return _new_values(returned, entries, values)

    keys = [_like((), np.int32)] * count
    values = [_like(leaf.shape[1:], leaf.dtype) for leaf in entries.leaves]
    first: list[_Trace] = []
    shapes: list[list[Any]] = []

    def find_accesses(keys: Any, values: Any) -> None:
        first.append(_Trace(keys, None, None))
        shapes.append(run(first[0], keys, values))

    try:
        jax.eval_shape(find_accesses, keys, values)
    except OverflowError as error:
        raise LoopError(
            f"{_place_of(error)}a number is beyond the 32 bits that JAX computes with ({error}): "
            "call jax.config.update('jax_enable_x64', True) before"
        ) from error
    except (jax.errors.TracerBoolConversionError, jax.errors.TracerIntegerConversionError) as error:
        raise LoopError(
            f"{_place_of(error)}the body branches on a value that is known when it runs: use "
            f"jnp.where or jax.lax.cond ({str(error).splitlines()[0]})"
        ) from error
    except (ValueError, jax.errors.TracerArrayConversionError) as error:
        if "__jax_array__" not in str(error) and not isinstance(error, TypeError):
            raise
        raise LoopError(
            f"{_place_of(error)}a key, an array or a traced value is given to a function that "
            "cannot take it: give functions of jnp a key's value (i.value) and an array's "
            f"elements (x[...]), and use jnp, not np ({str(error).splitlines()[0]})"
        ) from error
    accesses = first[0].accesses
    reads = [
        _like(tuple(p.size for p in a.positions if not p.dropped), arrays[a.array].dtype)
        for a in accesses
        if not a.writes and a.known
    ]
    wholes = sorted({a.array for a in accesses if a.within})
    by_data = not all(a.known for a in accesses)

    def traced_with(*flat: Any) -> tuple[_Trace, list[Any], list[Any]]:
        rest = list(flat)
        taken = [rest[:count], rest[count : count + len(values)]]
        given = rest[count + len(values) :]
        last = [given.pop(), given.pop()] if by_data else []
        whole = dict(zip(wholes, given[len(reads) :], strict=True))
        again = _Trace(taken[0], given[: len(reads)], whole)
        return again, run(again, *taken), last

    def reads_at(*flat: Any) -> list[list[Any]]:
        again, _, _ = traced_with(*flat)
        return [
            [p.begins(size) for p, size in zip(a.positions, arrays[a.array].shape, strict=True)]
            for a in again.accesses
            if a.within
        ]

    def function(*flat: Any) -> list[Any]:
        again, new, last = traced_with(*flat)
        numbers = [
            p.begins(size)
            for a in again.accesses
            if a.writes
            for p, size in zip(a.positions, arrays[a.array].shape, strict=True)
            if not p.known
        ]
        if by_data:
            last = [_first_outside(again.accesses, arrays, entry=last[1], before=last[0])]
        return [*again.written, *numbers, *new, *last]

    arguments = [*keys, *values, *reads, *(arrays[n] for n in wholes)]
    arguments += [_like((), np.int32), OUTSIDE] if by_data else []
    traced = Body(names, accesses, function, arguments, bool(shapes[0]), reads_at)

    def apart(*flat: Any) -> tuple[list[Access], list[Any], list[Any]]:
        rest = list(flat)
        given = [rest[:count], rest[count : count + len(values)]]
        again = _Trace(given[0], rest[count + len(values) :], None, apart=True)
        new = run(again, *given)
        return again.accesses, again.written, new

    mark_sums(traced, first[0].seen, apart, [*keys, *values], arrays)
    return traced


def _first_outside(
    accesses: Sequence[Access], arrays: Sequence[jax.ShapeDtypeStruct], entry: Any, before: Any
) -> Any:
    """OUTSIDE after an entry."""
    for number, access in enumerate(accesses):
        for d, position in enumerate(access.positions):
            if position.known:
                continue
            found = jnp.stack([entry + 1, jnp.int32(number), jnp.int32(d), position.number])
            wrong = position.outside(arrays[access.array].shape[d])
            before = jnp.where((before[0] == 0) & wrong, found, before)
    return before


def _new_values(returned: Any, entries: Entries, values: Sequence[Any]) -> list[Any]:
    if returned is None:
        return []
    leaves, tree = jax.tree.flatten(returned)
    if tree != entries.tree:
        raise LoopError(f"the body returns {tree}, and an entry's value is {entries.tree}")
    for leaf, value in zip(leaves, values, strict=True):
        if jnp.shape(leaf) != value.shape:
            raise LoopError(
                f"the body returns a value of shape {jnp.shape(leaf)}, and an entry's has "
                f"{value.shape}"
            )
    return [
        jnp.asarray(leaf).astype(value.dtype) for leaf, value in zip(leaves, values, strict=True)
    ]


@functools.cache
def _is_users(name: str) -> bool:
    file = pathlib.Path(name).resolve()
    return not file.is_relative_to(_PACKAGE) and not file.is_relative_to(_JAX)


def _user_frame(frame: Any) -> Any:
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def _place() -> str:
    """ "mf.py:12: ", the user's line that is being traced."""
    frame = _user_frame(sys._getframe(1))
    if frame is None:
        return ""
    return f"{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno}: "


def _source() -> str:
    """The expression of the user's that is being traced, of one line."""
    frame = _user_frame(sys._getframe(1))
    if frame is None:
        return ""
    at = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, last, first, end = at
    if None in at or line != last:
        return ""
    text = linecache.getline(frame.f_code.co_filename, line).encode()
    return text[first:end].decode().strip()


def _place_of(error: BaseException) -> str:
    """The innermost line of the user's that an error came through."""
    found, at = "", error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if _is_users(file):
            found = f"{pathlib.Path(file).name}:{at.tb_lineno}: "
        at = at.tb_next
    return found
