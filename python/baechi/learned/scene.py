# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem in numbers that mean the same for every graph and machine: shares, not sizes.

Nothing depends on how many groups or devices there are, nor on their names, so that a policy
can be carried from one problem to another.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from baechi.graphs import problem
from baechi.learned.features import Floats, View, bytes_of, times_of

BINS = 16  # of time


@dataclasses.dataclass(frozen=True)
class Scene:
    """Of [groups] and [devices], or with more of both that stand for nothing (`padded`).

    Times are shares of all work: the sum of each operator's where it is fastest.
    """

    static: Floats
    """[groups, features] that no placement changes."""
    times: Floats
    """[groups, devices]"""
    sends: Floats
    """[groups, groups]: what transfers between the two take if they are on two devices."""
    when: Floats
    """[groups, BINS]: when its work could run if nothing but its inputs held it up."""
    held: Floats
    """[groups, devices]: all that its operators hold, as a share of the device's memory."""
    allowed: np.ndarray[Any, np.dtype[np.bool_]]
    """[groups, devices]"""
    count: int
    """Of groups that stand for something: the first ones."""

    def padded(self, groups: int, devices: int) -> Scene:
        more, further = groups - self.count, devices - self.allowed.shape[1]

        def wide(values: Any) -> Any:
            return np.pad(values, ((0, more), (0, further)))

        allowed = wide(self.allowed)
        allowed[self.count :, 0] = True
        return Scene(
            np.pad(self.static, ((0, more), (0, 0))),
            wide(self.times),
            np.pad(self.sends, ((0, more), (0, more))),
            np.pad(self.when, ((0, more), (0, 0))),
            wide(self.held),
            allowed,
            self.count,
        )


def scene(graph: problem.Source, machine: problem.Source, view: View) -> Scene:
    """Of a problem and its groups."""
    described = json.loads(problem.text_of(graph, "graph")[0])
    ops, edges = described["ops"], described.get("edges", [])
    devices = json.loads(problem.text_of(machine, "machine")[0])
    kinds = [device["kind"] for device in devices["devices"]]
    count = view.count

    times = np.array([times_of(op["time_ns"], kinds) for op in ops]).reshape(len(ops), len(kinds))
    fastest = np.nanmin(times, axis=1, initial=np.inf, where=~np.isnan(times))
    times = np.where(np.isnan(times), fastest[:, None], times)
    work = view.work_ns
    by_group = np.stack(
        [np.bincount(view.of_operator, times[:, d], count) for d in range(len(kinds))], axis=1
    )
    ends = np.array([(e["from"], e["to"]) for e in edges], np.int64).reshape(-1, 2)
    early, late, whole = _levels(fastest, ends)
    when = _when(view.of_operator, count, fastest, early, late, whole) / work
    sends = _sends(view.of_operator, count, ops, edges, *_mean_link(devices)) / work
    held = np.bincount(view.of_operator, [_held(op) for op in ops], count)
    memory = np.array([device["memory"] for device in devices["devices"]], np.float64)

    members = np.bincount(view.of_operator, minlength=count)

    def mean(values: Any) -> Any:
        return np.bincount(view.of_operator, np.asarray(values, np.float64), count) / members

    own = np.bincount(view.of_operator, fastest, count) / work
    begins, ends_at = mean(early) / whole, mean(late) / whole
    columns = [
        np.log(own * count + 0.01),
        np.sqrt(own),
        np.log(sends.sum(axis=0) * count + 0.01),
        np.log(sends.sum(axis=1) * count + 0.01),
        np.sqrt(np.minimum(sends.sum(axis=0) + sends.sum(axis=1), 4)),
        2 * begins - 1,
        2 * ends_at - 1,
        ends_at - begins,
        2 * mean([bool(op.get("backward")) for op in ops]) - 1,
        np.log(members / members.mean()),
        np.minimum(held[:, None] / np.maximum(memory, 1), 2).max(axis=1),
        np.full(count, whole / work),
    ]
    return Scene(
        np.stack(columns, axis=1).astype(np.float32),
        (by_group / work).astype(np.float32),
        sends.astype(np.float32),
        when.astype(np.float32),
        np.minimum(held[:, None] / np.maximum(memory, 1), 4).astype(np.float32),
        view.allowed,
        count,
    )


def _levels(times: Any, ends: Any) -> tuple[Any, Any, float]:
    """[operators]: the earliest and the latest start without communication, and when all is
    done."""
    count = len(times)
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for source, target in ends.tolist():
        after[source].append(target)
        waiting[target] += 1
    order = [i for i in range(count) if not waiting[i]]
    early = [0.0] * count
    for source in order:  # grows meanwhile
        done = early[source] + times[source]
        for target in after[source]:
            early[target] = max(early[target], done)
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    tail = [0.0] * count
    for source in reversed(order):
        tail[source] = times[source] + max((tail[target] for target in after[source]), default=0.0)
    whole = max(max(tail, default=0.0), 1.0)
    return np.array(early), whole - np.array(tail), whole


def _when(groups: Any, count: int, times: Any, early: Any, late: Any, whole: float) -> Any:
    """[groups, BINS]: an operator's work halves between its earliest and its latest start."""
    found = np.zeros((count, BINS))
    for start in (early, late):
        place = np.minimum((start / whole * BINS).astype(np.int64), BINS - 1)
        np.add.at(found, (groups, place), times / 2)
    return found


def _mean_link(machine: dict[str, Any]) -> tuple[float, float]:
    """Nanoseconds before the first byte and a byte, over all pairs that have a link."""
    names = [device["name"] for device in machine["devices"]]
    known = {(link["from"], link["to"]): link for link in machine.get("links", [])}
    usual = machine.get("link_default")
    links = [known.get((a, b), usual) for a in names for b in names if a != b]
    there = [link for link in links if link]
    if not there:
        return 0.0, 0.0
    return (
        float(np.mean([link["latency_ns"] for link in there])),
        float(np.mean([1000 / link["bytes_per_us"] for link in there])),
    )


def _sends(
    groups: Any, count: int, ops: Any, edges: Any, latency_ns: float, ns_per_byte: float
) -> Any:
    """[groups, groups] of ns: each tensor once for a group that reads it."""
    found = np.zeros((count, count))
    tensors = dict.fromkeys(
        (edge["from"], edge["output"], int(groups[edge["to"]]))
        for edge in edges
        if "output" in edge and groups[edge["from"]] != groups[edge["to"]]
    )
    for source, output, target in tensors:
        found[groups[source], target] += latency_ns + ns_per_byte * bytes_of(ops[source], output)
    return found


def _held(op: dict[str, Any]) -> float:
    outputs = sum(bytes_of(op, i) for i in range(len(op.get("outputs", []))))
    return float(op.get("resident", 0) + outputs)
