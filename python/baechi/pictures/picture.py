# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a picture of a step shows, whoever draws it: rows of spans over time, and memory.

`svg.py` draws it for notebooks, `plots.py` for papers. Steps of tens of thousands of
operators have more spans than a picture has columns: `split` leaves the long ones and
adds the short ones up, a column each.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SPAN = np.dtype([("start", np.int64), ("finish", np.int64), ("part", np.int32), ("name", np.int32)])
"""Of an operator or a transfer: ns, ns, its part of the model, the number of its name."""
PARTS = 7
"""Parts of the model that have a colour of their own; the others share one."""
OTHER = "other"
# More pairs of devices than this are drawn as one row a sender.
MOST_QUEUES = 12
# Times that a part is told apart by one word more.
_MOST_WORDS = 4


@dataclasses.dataclass
class Row:
    """What a device computes, or what one device sends to another."""

    label: str
    is_queue: bool
    spans: Array
    """[spans] of SPAN, by start."""

    def busy(self, step_ns: int) -> float:
        """Share of the step, 0 to 1."""
        return float((self.spans["finish"] - self.spans["start"]).sum()) / max(step_ns, 1)


@dataclasses.dataclass
class Memory:
    """Of one device, in bytes."""

    label: str
    time: Array
    """[levels], ns."""
    bytes: Array
    """[levels], held from a time on."""
    limit: int
    planned: bool = True
    """False: only what the arena has reserved is known, not when it is used."""

    @property
    def peak(self) -> int:
        return int(self.bytes.max(initial=0))


@dataclasses.dataclass
class Picture:
    """A step. Times are ns since it began."""

    step_ns: int
    """What the time axis ends with: all spans lie before it."""
    facts: list[str]
    """Some words each, for the headline."""
    parts: list[str]
    """Names of the parts of the model, by their work; the last may be OTHER."""
    names: Sequence[str]
    """Of operators; spans have their numbers."""
    rows: list[Row]
    memory: list[Memory]


def of_program(manifest: Mapping[str, Any], measured_ns: float | None = None) -> Picture:
    """Of a compiled program's manifest (docs/program-format.md), as planned.

    measured_ns: median of its steps.
    """
    devices = manifest["devices"]
    operators = [operator for device in devices for operator in device["operators"]]
    names = [operator["name"] for operator in operators]
    time = np.array([operator["time_ns"] for operator in operators], np.int64)
    parts, part = parts_of(names, time)
    numbers = {name: i for i, name in enumerate(names)}
    rows = []
    first = 0
    for device in devices:
        mine = np.arange(first, first + len(device["operators"]))
        first += len(mine)
        start = np.array([operator["start_ns"] for operator in device["operators"]], np.int64)
        spans = _pack(start, start + time[mine], part[mine], mine)
        rows.append(Row(device["name"], False, spans))
    for queue in manifest["queues"]:
        messages = queue["messages"]
        start = np.array([message["start_ns"] for message in messages], np.int64)
        finish = np.array([message["end_ns"] for message in messages], np.int64)
        producers = [numbers.get(message.get("name", ""), -1) for message in messages]
        sent = np.array(producers, np.int64)
        of = np.where(sent >= 0, part[sent] if len(part) else 0, len(parts) - 1)
        label = f"{devices[queue['from']]['name']} → {devices[queue['to']]['name']}"
        rows.append(Row(label, True, _pack(start, finish, of, sent)))
    memory = [
        Memory(d["name"], np.zeros(1, np.int64), np.array([d["arena_bytes"]]), d["memory"], False)
        for d in devices
    ]
    predicted = manifest["predicted"]
    # The same as the report's: with the runtime's own costs, where they were counted.
    step = predicted.get("step_ns", predicted["makespan_ns"])
    facts = facts_of(predicted["makespan_ns"], predicted["lower_bound_ns"], predicted["winner"])
    facts[0] = f"predicted step {duration(step)} by {predicted['winner']}"
    if step != predicted["makespan_ns"] and len(facts) > 1:
        facts[1] = f"the plan's {duration(predicted['makespan_ns'])}, {facts[1]}"
    if measured_ns is not None:
        facts.insert(1, f"measured {duration(measured_ns)}")
    facts.append(f"{len(names):,} operators")
    # The plan's spans know nothing of the runtime's costs, so either may be the longer.
    ends = [int(row.spans["finish"].max(initial=0)) for row in rows]
    return Picture(max(step, *ends), facts, parts, names, rows, memory)


def parts_of(names: Sequence[str], work: Array) -> tuple[list[str], Array]:
    """Parts of the model by the names' first words, and each operator's number of one.

    One word first, and one more as long as a part does most of the work (`grad` becomes
    `grad/encoder` and so on); the PARTS with the most work keep their names.
    """
    split_names = [name.replace(".", "/").split("/") for name in names]
    words = [name[0] for name in split_names]
    total = _totals(words, work)
    for _ in range(_MOST_WORDS):
        largest = max(total, key=lambda word: total[word], default="")
        if 2 * total.get(largest, 0) <= sum(total.values()):
            break
        depth = largest.count("/") + 2
        words = [
            "/".join(name[:depth]) if word == largest else word
            for word, name in zip(words, split_names, strict=True)
        ]
        total = _totals(words, work)
    by_work = sorted(total, key=lambda word: (-total[word], word))
    kept = by_work if len(by_work) <= PARTS + 1 else by_work[:PARTS]
    parts = kept + ([OTHER] if len(kept) < len(by_work) else [])
    number = {word: min(i, len(kept)) for i, word in enumerate(by_work)}
    return parts or [OTHER], np.array([number[word] for word in words], np.int32)


def _totals(words: Sequence[str], work: Array) -> dict[str, int]:
    total: dict[str, int] = collections.defaultdict(int)
    for word, ns in zip(words, work.tolist(), strict=True):
        total[word] += ns
    return total


def split(row: Row, step_ns: int, columns: int) -> tuple[Array, Array, Array]:
    """The spans that are two columns wide or wider; of all others, [columns] of the share
    of its time that each column is busy, 0 to 1, and of the part that is most of it."""
    width = max(step_ns, 1) / columns
    spans = row.spans
    long = spans["finish"] - spans["start"] >= 2 * width
    short = spans[~long]
    # By part: busy time up to each column's end, from what has begun and ended by then.
    edges = np.arange(columns + 1) * width
    shares = np.zeros((int(spans["part"].max(initial=0)) + 1, columns))
    for part in np.unique(short["part"]):
        mine = short[short["part"] == part]
        done = _since(mine["start"], edges) - _since(mine["finish"], edges)
        # What is left of sums of large numbers is no work.
        shares[part] = np.round(np.diff(done) / width, 6)
    return spans[long], np.clip(shares.sum(axis=0), 0, 1), shares.argmax(axis=0)


def envelope(memory: Memory, step_ns: int, columns: int) -> Array:
    """[columns]: the most bytes held in each column's time."""
    width = max(step_ns, 1) / columns
    # The level that a column begins with, and all that come within it.
    edges = np.arange(columns) * width
    at_start = memory.bytes[np.searchsorted(memory.time, edges, side="right") - 1]
    found = at_start.astype(np.int64)
    column = np.minimum((memory.time / width).astype(np.int64), columns - 1)
    np.maximum.at(found, column, memory.bytes)
    return found


def duration(ns: float) -> str:
    """For people: "41.2 ms", "313 ns"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 100 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """For people: "4.2 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = "TiB"
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.3g} {unit}"


def _since(when: Array, edges: Array) -> Array:
    """At each edge, the sum of the times that have passed since each `when` before it."""
    when = np.sort(when)
    count = np.searchsorted(when, edges)
    return count * edges - np.concatenate([[0], np.cumsum(when)])[count]


def facts_of(step: int, bound: int, winner: str) -> list[str]:
    facts = [f"step {duration(step)} by {winner}"]
    if bound > 0:
        facts.append(f"lower bound {duration(bound)} (gap {100 * (step / bound - 1):.1f} %)")
    return facts


def spans_of(source: Array, part: Array, name: Array) -> Array:
    return _pack(source["start"], source["finish"], part, name)


def _pack(start: Array, finish: Array, part: Array, name: Array) -> Array:
    spans = np.empty(len(start), SPAN)
    spans["start"], spans["finish"], spans["part"], spans["name"] = start, finish, part, name
    return spans[np.argsort(start, kind="stable")]
