# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a policy sees of a problem: groups with features, in topological order."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from baechi.graphs import problem
from baechi.graphs.evaluator import Evaluator

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

# Up to so many units `auto` leaves the graph as it is; so many groups are walked at most.
_FEW_UNITS = 128
_MOST_GROUPS = 256
_WAVES = 4
_SMOOTH, _SMOOTHINGS = 8, 30


@dataclasses.dataclass(frozen=True)
class View:
    """Groups are numbered by their mean position in a topological order."""

    of_operator: Ints
    """[operators]: its group."""
    allowed: npt.NDArray[np.bool_]
    """[groups, devices]"""
    features: Floats
    """[groups, features], about 0 with deviations of about 1: work, bytes, neighbours, place in
    the order, place in the graph, passes, and what devices take longer or may not run."""
    edges: Ints
    """[edges, 2]: from a group to another, each pair once."""
    traffic: Floats
    """[edges]: bytes between them, as a share of the largest."""
    work_ns: float
    """Of all operators, each where it is fastest."""

    @property
    def count(self) -> int:
        return len(self.allowed)

    @property
    def devices(self) -> int:
        return self.allowed.shape[1]

    def adjacency(self) -> Floats:
        """[groups, groups]: whether the first sends to the second, and how much: 1 to 2."""
        found = np.zeros((self.count, self.count), np.float32)
        if len(self.edges):
            found[self.edges[:, 0], self.edges[:, 1]] = 1 + self.traffic
        return found


def view(
    graph: problem.Source, machine: problem.Source, evaluator: Evaluator, grouping: str
) -> View:
    """Of a problem whose form is right, as the evaluator made from it is there."""
    operators = json.loads(problem.text_of(graph, "graph")[0])
    kinds = [d["kind"] for d in json.loads(problem.text_of(machine, "machine")[0])["devices"]]
    ops, edges = operators["ops"], operators.get("edges", [])
    ends = np.array([(e["from"], e["to"]) for e in edges], np.int64).reshape(-1, 2)
    position = _positions(len(ops), ends)
    of_operator, allowed = _groups(evaluator, grouping, position)
    count = len(allowed)

    times = np.array([times_of(op["time_ns"], kinds) for op in ops]).reshape(len(ops), len(kinds))
    fastest = np.nanmin(times, axis=1, initial=np.inf, where=~np.isnan(times))
    moved = np.array(
        [bytes_of(ops[e["from"]], e["output"]) if "output" in e else 0 for e in edges], np.float64
    )

    def total(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64]
        found = np.bincount(of_operator, np.asarray(values, np.float64), count).astype(np.float64)
        return found

    across = of_operator[ends[:, 0]] != of_operator[ends[:, 1]]
    pairs, place = np.unique(of_operator[ends[across]], axis=0, return_inverse=True)
    traffic = np.bincount(place.ravel(), moved[across], len(pairs))
    members = total(np.ones(len(ops)))
    sums = [
        total(fastest),
        members,
        total([sum(bytes_of(op, i) for i in range(len(op.get("outputs", [])))) for op in ops]),
        total([op.get("resident", 0) for op in ops]),
        total([op.get("scratch", 0) for op in ops]),
        np.bincount(pairs[:, 0], traffic, count),
        np.bincount(pairs[:, 1], traffic, count),
        np.bincount(pairs[:, 0], minlength=count),
        np.bincount(pairs[:, 1], minlength=count),
    ]
    shares = [values / max(values.max(), 1e-9) for values in sums]
    where = total(position) / members
    waves = [f(np.pi * 2**i * where) for i in range(_WAVES) for f in (np.sin, np.cos)]
    backward = total([bool(op.get("backward")) for op in ops]) / members
    # Unlike devices: how much longer than on the fastest.
    slower = np.nan_to_num((times - fastest[:, None]) / np.maximum(fastest, 1)[:, None])
    unlike = [total(slower[:, d]) / members for d in range(len(kinds))]
    columns = [*(_even(np.log1p(values)) for values in sums), *map(_even, shares)]
    columns += [2 * where - 1, *waves, 2 * backward - 1, *map(np.log1p, unlike)]
    columns += list(_smooth(count, pairs).T)
    return View(
        of_operator,
        allowed,
        np.stack([*columns, *allowed.T.astype(np.float64)], axis=1).astype(np.float32),
        pairs.astype(np.int32).reshape(-1, 2),
        (traffic / max(traffic.max(initial=0), 1)).astype(np.float32),
        max(float(fastest.sum()), 1.0),
    )


def _groups(
    evaluator: Evaluator, grouping: str, position: npt.NDArray[np.float64]
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The group of each operator, and where each group may be."""
    of_operator, allowed = evaluator.units, evaluator.allowed
    if grouping == "coplace" or (grouping == "auto" and len(allowed) > _FEW_UNITS):
        of_operator, allowed = _joined(evaluator, evaluator.coplaced())
        if len(allowed) > _MOST_GROUPS:  # neighbours in the order that may be at the same places
            rank = _ranks(of_operator, position, len(allowed))
            part = rank[of_operator] * _MOST_GROUPS // len(allowed)
            where = np.unique(allowed, axis=0, return_inverse=True)[1].ravel()
            both = part * (where.max() + 1) + where[of_operator]
            of_operator, allowed = _joined(evaluator, both)
    rank = _ranks(of_operator, position, len(allowed))
    return rank[of_operator].astype(np.int32), allowed[np.argsort(rank)]


def _joined(evaluator: Evaluator, groups: npt.ArrayLike) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Any numbers of groups, which join units, to numbers from 0; and where each may be."""
    of_operator = np.unique(groups, return_inverse=True)[1].ravel().astype(np.int32)
    allowed = np.ones((of_operator.max(initial=-1) + 1, len(evaluator.devices)), bool)
    np.logical_and.at(allowed, of_operator, evaluator.allowed[evaluator.units])
    return of_operator, allowed


def _ranks(
    of_operator: Ints, position: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.int64]:
    """[groups]: its place when they are sorted by their operators' mean position."""
    mean = np.bincount(of_operator, position, count) / np.bincount(of_operator, minlength=count)
    ranks = np.empty(count, np.int64)
    ranks[np.argsort(mean, kind="stable")] = np.arange(count)
    return ranks


def _positions(count: int, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[operators]: the longest path to each by the number of its edges, 0 to 1."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for source, target in ends.tolist():
        after[source].append(target)
        waiting[target] += 1
    depth = np.zeros(count)
    ready = [i for i in range(count) if not waiting[i]]
    for source in ready:  # grows meanwhile
        for target in after[source]:
            depth[target] = max(depth[target], depth[source] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return depth / max(depth.max(initial=0), 1)


def _smooth(count: int, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[groups, _SMOOTH]: coordinates that vary slowly along edges and tell parts of the graph
    apart: subspace iteration with the average over neighbours."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    degree = np.maximum(np.bincount(both[:, 0], minlength=count), 1)
    found = np.random.default_rng(0).standard_normal((count, _SMOOTH))
    for _ in range(_SMOOTHINGS):
        sums = [np.bincount(both[:, 0], column[both[:, 1]], count) for column in found.T]
        found = (found + np.stack(sums, axis=1) / degree[:, None]) / 2
        found = np.linalg.qr(found - found.mean(axis=0))[0]
    wide = np.zeros((count, _SMOOTH))
    wide[:, : found.shape[1]] = np.stack([_even(column) for column in found.T], axis=1)
    return wide


def times_of(time: Any, kinds: list[str]) -> list[float]:
    """On each device; NaN where it cannot run."""
    if isinstance(time, dict):
        return [float(time.get(kind, np.nan)) for kind in kinds]
    return [float(time)] * len(kinds)


def bytes_of(op: dict[str, Any], output: int) -> int:
    given = op["outputs"][output]
    return given["bytes"] if isinstance(given, dict) else given


def _even(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """About 0, with a deviation of 1."""
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-9 else np.zeros_like(values)
