# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a block reads of arrays that lie elsewhere, known before it runs: a slice of the body.

The slice (M. Weiser, "Program Slicing", ICSE 1981) is what computes the positions of reads that
depend on data, as J. Wei et al. prefetch with it (Orion, EuroSys 2019, section 4.5): it is run over
a block's entries, and what it finds is fetched at once. Reads whose positions depend on what
another read gives are none of it; they are fetched one by one.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from baechi.loops.accesses import Access
from baechi.loops.blocks import Block, Layout
from baechi.loops.entries import Entries
from baechi.loops.positions import several_of
from baechi.loops.tracing import Body

_POSITION_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Link:
    """Between a worker and who has the arrays. latency: seconds, of a message each way."""

    latency: float = 100e-6
    bytes_per_second: float = 1e9 / 8

    def request(self, sent: int, received: int) -> float:
        """The seconds of a message there and one back."""
        return 2 * self.latency + (sent + received) / self.bytes_per_second


@dataclasses.dataclass(frozen=True)
class Fetched:
    """Of a block: by array the rows that it reads, each once, as the positions that they begin
    at, with the bytes of a row; and how often it reads, with the bytes of all that."""

    block: Block
    rows: dict[str, np.ndarray]
    row_bytes: dict[str, int]
    reads: int
    read_bytes: int
    one_by_one: int  # reads that the slice does not know, as often as entries make them
    one_by_one_bytes: int
    slice_seconds: float


@dataclasses.dataclass(frozen=True)
class Prefetch:
    """blocks: in the order of a serial run. ahead, late: the reads that the slice knows, and
    those that it does not."""

    blocks: list[Fetched]
    ahead: list[Access]
    late: list[Access]

    def element_by_element(self, link: Link) -> float:
        """The seconds of a pass's fetches, if each read asks for itself. The blocks of a clock
        fetch at once, each by a link of its own."""
        return self._seconds(lambda one: self._single(link, one, every=True))

    def in_bulk(self, link: Link, cached: bool = False) -> float:
        """If each block runs the slice, and asks for all that it reads of an array at once;
        cached: the slice has been run in an earlier pass over the same entries, and both ends
        know the positions."""

        def of(one: Fetched) -> float:
            seconds = 0.0 if cached else one.slice_seconds
            for name, rows in one.rows.items():
                sent = 0 if cached else rows.size * _POSITION_BYTES
                seconds += link.request(sent, len(rows) * one.row_bytes[name])
            return seconds + self._single(link, one, every=False)

        return self._seconds(of)

    @staticmethod
    def _single(link: Link, one: Fetched, every: bool) -> float:
        count = one.one_by_one + (one.reads if every else 0)
        received = one.one_by_one_bytes + (one.read_bytes if every else 0)
        return count * link.request(_POSITION_BYTES, 0) + received / link.bytes_per_second

    def _seconds(self, of: Callable[[Fetched], float]) -> float:
        clocks = itertools.groupby(self.blocks, lambda one: one.block.clock)
        return sum(max(map(of, blocks)) for _, blocks in clocks)


def prefetch_of(
    entries: Entries, body: Body, arrays: Sequence[jax.ShapeDtypeStruct], layout: Layout
) -> Prefetch:
    """Runs the slice over each block."""
    reads = [access for access in body.accesses if access.within]
    given = len(entries.keys) + len(entries.leaves)
    jaxpr = jax.make_jaxpr(body.reads_at)(*body.arguments).jaxpr
    owners = [n for n, access in enumerate(reads) for _ in access.positions]
    ahead = []
    for n in range(len(reads)):
        _, used = partial_eval.dce_jaxpr(jaxpr, [owner == n for owner in owners])
        if not any(used[given:]):
            ahead.append(n)
    known = [owner in ahead for owner in owners]
    sliced, used = partial_eval.dce_jaxpr(jaxpr, known, instantiate=False)
    inputs = [n for n, is_used in enumerate(used) if is_used]

    def positions(*columns: Any) -> list[Any]:
        return jax.core.eval_jaxpr(sliced, (), *columns)

    run = jax.jit(jax.vmap(positions)) if inputs else None
    columns = [*entries.keys, *entries.leaves]
    fetched = []
    for block in layout.blocks:
        numbers = layout.entries[block.worker][block.first : block.end]
        mine = [columns[n][numbers] for n in inputs]
        found, seconds = _timed(run, mine) if run and len(numbers) else ([], 0.0)
        fetched.append(_fetched(body, arrays, reads, ahead, block, numbers, found, seconds))
    return Prefetch(
        fetched,
        [reads[n] for n in ahead],
        [access for n, access in enumerate(reads) if n not in ahead],
    )


def _timed(run: Callable[..., Any], columns: Sequence[np.ndarray]) -> tuple[list[Any], float]:
    """Also the seconds, the least of three: what else the machine does is none of them."""
    found = [np.asarray(each) for each in run(*columns)]  # compiles, if it has to
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        for each in run(*columns):
            each.block_until_ready()
        seconds.append(time.perf_counter() - began)
    return found, min(seconds)


def _fetched(
    body: Body,
    arrays: Sequence[jax.ShapeDtypeStruct],
    reads: Sequence[Access],
    ahead: Sequence[int],
    block: Block,
    numbers: np.ndarray,
    found: Sequence[np.ndarray],
    seconds: float,
) -> Fetched:
    rest = iter(found)
    rows: dict[str, list[np.ndarray]] = {}
    row_bytes: dict[str, int] = {}
    counts = {True: [0, 0], False: [0, 0]}
    for n, access in enumerate(reads):
        name, like = body.names[access.array], arrays[access.array]
        size = int(np.prod([p.size for p in access.positions])) * like.dtype.itemsize
        reads_of = len(numbers) * (several_of(access.positions)[0] or 1)
        counts[n in ahead][0] += reads_of
        counts[n in ahead][1] += reads_of * size
        if n not in ahead:
            continue
        begins = [next(rest) for _ in access.positions] if len(numbers) else []
        # Slices of another size are another array's rows, as it were.
        name = name if row_bytes.setdefault(name, size) == size else f"{name}, {size} bytes"
        row_bytes[name] = size
        if begins:
            several = several_of(access.positions)[0]
            shape = (len(numbers), several) if several else (len(numbers),)
            columns = [np.broadcast_to(each, shape).ravel() for each in begins]
            rows.setdefault(name, []).append(np.stack(columns, axis=1))
    return Fetched(
        block,
        {name: np.unique(np.concatenate(each), axis=0) for name, each in rows.items()},
        row_bytes,
        reads=counts[True][0],
        read_bytes=counts[True][1],
        one_by_one=counts[False][0],
        one_by_one_bytes=counts[False][1],
        slice_seconds=seconds,
    )
