# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing a loop's body: its accesses, and a function of what they read to what they write."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core  # no export says which trace is current

from baechi.loops.accesses import Access
from baechi.loops.arrays import Array
from baechi.loops.copies import check_copies
from baechi.loops.entries import Entries
from baechi.loops.errors import LoopError, defined_at, explained, place, source
from baechi.loops.own_writes import covers, never_meet, seen_through
from baechi.loops.positions import (
    Key,
    Position,
    as_number,
    one_of,
    several_of,
    shape_at,
    shape_of_region,
)
from baechi.loops.sums import mark_sums

# What is kept of a position that data tell and that its array does not have: the entry's number
# plus 1 (0: there is none), the access, the dimension and the position.
OUTSIDE = jax.ShapeDtypeStruct((4,), np.int32)  # type: ignore[no-untyped-call]


@dataclasses.dataclass
class Body:
    """A traced body.

    function: of keys, values' leaves, the regions that the accesses read, the whole arrays of
        those for which no key tells one, and, where positions depend on data, the entry's number
        and OUTSIDE; gives what the accesses write, the positions of these that depend on data,
        the new values' leaves, and OUTSIDE.
    reads_at: of the same; gives where each read of a whole array begins, a number a dimension,
        or one for each of several.
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


class Trace:
    """apart: reads do not see what the entry has written, and each is given."""

    def __init__(
        self,
        arrays: Sequence[jax.ShapeDtypeStruct],
        names: Sequence[str],
        keys: Sequence[Any],
        reads: Sequence[Any] | None,
        wholes: dict[int, Any],
        apart: bool = False,
    ):
        self._arrays, self._names = arrays, names
        self._key_values, self.keys = keys, len(keys)
        self.accesses: list[Access] = []
        self.written: list[Any] = []  # with the accesses that write
        # Of each read whether something that the entry has written is or may be there.
        self.seen: list[tuple[Access, bool]] = []
        self._reads = None if reads is None else iter(reads)
        self._wholes, self._apart = wholes, apart
        # An array's, as they follow, each of one place.
        self._stores: dict[int, list[tuple[tuple[Position, ...], Any]]] = {}
        self._level = core.trace_ctx.trace

    def read(self, array: int, positions: tuple[Position, ...]) -> jax.Array:
        self._check_level(array, "read")
        access = Access(array, False, positions, place(), source())
        if self._apart and self._reads is not None:
            self.accesses.append(access)
            return next(self._reads)
        extents = self._arrays[array].shape
        stores = self._stores.get(array, [])
        last = max(
            (n for n, (at, _) in enumerate(stores) if covers(at, positions, extents)), default=-1
        )
        if last < 0:
            value = self._read_before(access)
        else:
            value = jnp.zeros(access.shape, self._arrays[array].dtype)
        later = [(at, v) for at, v in stores[max(last, 0) :] if not never_meet(at, positions)]
        self.seen.append((access, bool(later)))
        if not later or self._reads is None:  # accesses alone are looked for
            return value
        return self._seen_through(value, positions, later, extents)

    def _seen_through(
        self,
        value: jax.Array,
        positions: tuple[Position, ...],
        stores: Sequence[tuple[tuple[Position, ...], Any]],
        extents: Sequence[int],
    ) -> jax.Array:
        count, at = several_of(positions)
        if count:
            each = [
                self._seen_through(
                    jax.lax.index_in_dim(value, n, at, keepdims=False),
                    one_of(positions, n),
                    stores,
                    extents,
                )
                for n in range(count)
            ]
            return jnp.stack(each, axis=at)
        for place_of_store, stored in stores:
            value = seen_through(
                value, positions, stored, place_of_store, self._key_values, extents
            )
        return value

    def _read_before(self, access: Access) -> jax.Array:
        """As the array was when the entry began."""
        like = self._arrays[access.array]
        self.accesses.append(access)
        # Where keys tell of a part where it is, a block may have no more than that part.
        access.within = not access.known and not any(any(p.factors) for p in access.positions)
        if self._reads is None:
            return jnp.zeros(access.shape, like.dtype)
        found = self._wholes[access.array] if access.within else next(self._reads)
        return found if access.known else _picked(found, access, like.shape)

    def write(self, array: int, positions: tuple[Position, ...], value: Any) -> None:
        self._check_level(array, "written")
        name, like = self._names[array], self._arrays[array]
        shape = shape_at(positions)
        value = as_number(value)
        is_number = isinstance(value, bool | int | float | np.number | np.bool_)
        number = value if is_number else None
        if isinstance(value, int) and jnp.issubdtype(like.dtype, jnp.integer):
            limits = jnp.iinfo(like.dtype)  # type: ignore[no-untyped-call]
            if not limits.min <= value <= limits.max:
                raise LoopError(f"{place()}'{name}' is of {like.dtype}, which cannot hold {value}")
        value = jnp.asarray(value)
        if value.weak_type and jnp.result_type(value, like.dtype) == like.dtype:
            value = value.astype(like.dtype)  # a number of Python's, which takes the array's
        if not np.can_cast(value.dtype, like.dtype, "same_kind"):
            raise LoopError(
                f"{place()}'{name}' is of {like.dtype}, what is written of {value.dtype}: write "
                f"value.astype({name}.dtype)"
            )
        try:
            value = jnp.broadcast_to(value, shape).astype(like.dtype)
        except ValueError:
            raise LoopError(
                f"{place()}what is written to '{name}' has shape {value.shape}, its place {shape}"
            ) from None
        if not self._apart:  # where nobody looks, and a part taken would be a use
            self._store(array, positions, value)
        access = Access(array, True, positions, place(), source())
        if number is not None:
            with np.errstate(all="ignore"):
                access.number = np.asarray(number).astype(like.dtype).tobytes()
        self.accesses.append(access)
        self.written.append(value)

    def _store(self, array: int, positions: tuple[Position, ...], value: jax.Array) -> None:
        stores = self._stores.setdefault(array, [])
        count, at = several_of(positions)
        if not count:
            stores.append((positions, value))
            return
        for n in range(count):
            one = jax.lax.index_in_dim(value, n, at, keepdims=False)
            stores.append((one_of(positions, n), one))

    def _check_level(self, array: int, what: str) -> None:
        if _is_within(self._level, derivatives=what == "read"):
            return
        name = self._names[array]
        raise LoopError(
            f"{place()}'{name}' is {what} within a function that JAX traces by itself, for cond, "
            f"scan, fori_loop or vmap: read before it ({name}[i], or {name}[...]), give it what "
            "was read, and write what it returns"
        )


def _is_within(level: Any, derivatives: bool) -> bool:
    """Whether the current trace is `level`, or, if asked for, a derivative's in it: its function
    runs once, where it is called, and not how often, and whether, control flow of JAX likes."""
    trace: Any = core.trace_ctx.trace
    while trace is not level:
        if not derivatives or type(trace).__name__ not in ("JVPTrace", "LinearizeTrace"):
            return False
        trace = trace.parent_trace
    return True


def _picked(found: jax.Array, access: Access, extents: Sequence[int]) -> jax.Array:
    """Of what the body gets for a read, what is at the positions that data tell."""
    count, at = several_of(access.positions)

    def one(positions: Sequence[Position]) -> jax.Array:
        starts, sizes = [], []
        region = access.region(extents)
        for p, part, extent in zip(positions, region, extents, strict=True):
            if not part.dropped:
                starts.append(p.begins(extent) if part.whole else jnp.int32(0))
                sizes.append(p.size)
        picked = jax.lax.dynamic_slice(found, starts, sizes)
        return picked.reshape(shape_of_region(positions))

    if not count:
        return one(access.positions)
    return jnp.stack([one(one_of(access.positions, n)) for n in range(count)], axis=at)


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

    def run(trace: Trace, keys: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        units = [tuple(int(a == b) for b in range(count)) for a in range(count)]
        named = tuple(Key(unit, 0, tuple(keys), tuple(entries.bounds)) for unit in units)
        views = [Array(trace, n, names[n], like) for n, like in enumerate(arrays)]
        value = jax.tree.unflatten(entries.tree, values) if values else None
        returned = body(named if count > 1 else named[0], value, *views)
        return _new_values(returned, entries, values, defined_at(body))

    keys = [_like((), np.int32)] * count
    values = [_like(leaf.shape[1:], leaf.dtype) for leaf in entries.leaves]
    first: list[Trace] = []
    shapes: list[list[Any]] = []

    def find_accesses(keys: Any, values: Any) -> None:
        first.append(Trace(arrays, names, keys, None, {}))
        shapes.append(run(first[0], keys, values))

    try:
        jax.eval_shape(find_accesses, keys, values)
    except Exception as error:
        if (told := explained(error)) is error:
            raise
        raise told from error
    check_copies(body, [access for access, _ in first[0].seen], names)
    accesses = first[0].accesses
    reads = [
        _like(a.region_shape(arrays[a.array].shape), arrays[a.array].dtype)
        for a in accesses
        if a.given
    ]
    wholes = sorted({a.array for a in accesses if a.within})
    by_data = not all(a.known for a in accesses)

    def traced_with(*flat: Any) -> tuple[Trace, list[Any], list[Any]]:
        rest = list(flat)
        taken = [rest[:count], rest[count : count + len(values)]]
        given = rest[count + len(values) :]
        last = [given.pop(), given.pop()] if by_data else []
        whole = dict(zip(wholes, given[len(reads) :], strict=True))
        again = Trace(arrays, names, taken[0], given[: len(reads)], whole)
        return again, run(again, *taken), last

    def reads_at(*flat: Any) -> list[list[Any]]:
        again, _, _ = traced_with(*flat)
        begins = [
            [p.begins(size) for p, size in zip(a.positions, arrays[a.array].shape, strict=True)]
            for a in again.accesses
            if a.within
        ]
        return [list(jnp.broadcast_arrays(*each)) for each in begins]

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
        again = Trace(arrays, names, given[0], rest[count + len(values) :], {}, apart=True)
        new = run(again, *given)
        return again.accesses, again.written, new

    mark_sums(traced, first[0].seen, apart, [*keys, *values], arrays)
    _mark_sets(accesses, [access for access, _ in first[0].seen])
    return traced


def _mark_sets(accesses: Sequence[Access], reads: Sequence[Access]) -> None:
    """Arrays that nobody reads, and all set to one number: whoever is last, they are the same."""
    for array in {access.array for access in accesses} - {access.array for access in reads}:
        mine = [access for access in accesses if access.array == array]
        if mine[0].number is not None and len({access.number for access in mine}) == 1:
            for access in mine:
                access.joins = "set"


def _first_outside(
    accesses: Sequence[Access], arrays: Sequence[jax.ShapeDtypeStruct], entry: Any, before: Any
) -> Any:
    """OUTSIDE after an entry. What was wrong is looked for only where something was."""
    checks = [
        (number, d, position, position.outside(arrays[access.array].shape[d]))
        for number, access in enumerate(accesses)
        for d, position in enumerate(access.positions)
        if not position.known
    ]
    any_wrong = jnp.bool_(False)
    for *_, wrong in checks:
        any_wrong = any_wrong | (wrong.any() if wrong.ndim else wrong)

    def first() -> Any:
        found = jnp.zeros(OUTSIDE.shape, OUTSIDE.dtype)
        for number, d, position, wrong in reversed(checks):
            at, is_wrong = position.number, wrong
            if position.several:
                at, is_wrong = at[jnp.argmax(wrong)], wrong.any()
            said = jnp.stack([entry + 1, jnp.int32(number), jnp.int32(d), at])
            found = jnp.where(is_wrong, said, found)
        return found

    return jax.lax.cond((before[0] == 0) & any_wrong, first, lambda: before)


def _new_values(returned: Any, entries: Entries, values: Sequence[Any], where: str) -> list[Any]:
    if returned is None:
        return []
    leaves, tree = jax.tree.flatten(returned)
    if tree != entries.tree:
        raise LoopError(
            f"{where}the body returns {tree}, and an entry's value is {entries.tree}: return the "
            "entry's new value, of the form that Entries' values have, or nothing"
        )
    made = [jnp.asarray(as_number(leaf)) for leaf in leaves]
    for leaf, value in zip(made, values, strict=True):
        if leaf.shape != value.shape:
            raise LoopError(
                f"{where}the body returns a value of shape {leaf.shape}, and an entry's has "
                f"{value.shape}"
            )
        if not np.can_cast(leaf.dtype, value.dtype, "same_kind"):
            raise LoopError(
                f"{where}the body returns a value of {leaf.dtype}, and an entry's is of "
                f"{value.dtype}: return value.astype('{value.dtype}'), or give Entries values of "
                f"{leaf.dtype}"
            )
    return [leaf.astype(value.dtype) for leaf, value in zip(made, values, strict=True)]
