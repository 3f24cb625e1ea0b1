# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A placement as data: arrays, dictionaries, texts."""

from __future__ import annotations

import collections
import functools
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from baechi.common import files
from baechi.pictures import picture, svg
from baechi.pictures.picture import Picture

if TYPE_CHECKING:
    from baechi import _placement

OPERATOR = np.dtype([("device", np.int32), ("start", np.int64), ("finish", np.int64)])
TRANSFER = np.dtype(
    [
        ("operator", np.int32),
        ("output", np.int32),
        ("source", np.int32),
        ("target", np.int32),
        ("start", np.int64),
        ("finish", np.int64),
        ("bytes", np.int64),
    ]
)
LEVEL = np.dtype([("time", np.int64), ("bytes", np.int64)])


class Placement:
    """A device and a start for every operator, every transfer, and how good it is.

    Returned by `baechi.place`, `baechi.judge` and `baechi.Evaluator.place`; it has
    passed the independent verification of docs/placement.md. Times are nanoseconds
    since the step began, sizes bytes; devices and operators are numbered as in the
    machine and the graph.
    """

    def __init__(self, result: _placement.Result):
        self._result = result

    @functools.cached_property
    def names(self) -> list[str]:
        """Of the operators, [operators]."""
        return self._result.problem.operators

    @functools.cached_property
    def devices(self) -> list[str]:
        """Names of the devices, [devices]."""
        return self._result.problem.devices

    @functools.cached_property
    def operators(self) -> npt.NDArray[Any]:
        """[operators] of (device, start, finish): a number, ns, ns."""
        found = np.empty(len(self.names), OPERATOR)
        for field in ("device", "start", "finish"):
            found[field] = getattr(self._result, field)
        return found

    @functools.cached_property
    def transfers(self) -> npt.NDArray[Any]:
        """[transfers] of (operator, output, source, target, start, finish, bytes), by start:
        the tensor, the two devices' numbers, ns, ns, bytes."""
        columns = self._result.transfers
        found = np.empty(len(columns["operator"]), TRANSFER)
        for field, column in columns.items():
            found[field] = column
        return found

    @functools.cached_property
    def memory(self) -> list[npt.NDArray[Any]]:
        """A device each: [levels] of (time, bytes), what it holds from a time (ns) on."""
        found = []
        for time, size in self._result.memory:
            levels = np.empty(len(time), LEVEL)
            levels["time"], levels["bytes"] = time, size
            found.append(levels)
        return found

    @property
    def memory_limit(self) -> npt.NDArray[Any]:
        """[devices], bytes."""
        return self._result.problem.memory

    @property
    def peak_bytes(self) -> npt.NDArray[Any]:
        """[devices]: the most that each holds at any time."""
        return np.array([device["peak_bytes"] for device in self.report["devices"]], np.int64)

    @property
    def assignment(self) -> dict[str, str]:
        """The device of every operator, by names."""
        numbers = self.operators["device"].tolist()
        return {name: self.devices[d] for name, d in zip(self.names, numbers, strict=True)}

    @functools.cached_property
    def report(self) -> dict[str, Any]:
        """All that is known beside the schedule: what `baechi-place --json` writes."""
        found: dict[str, Any] = json.loads(self._result.report())
        return found

    @property
    def step_ns(self) -> int:
        """Predicted time of one step."""
        return self.report["makespan_ns"]

    @property
    def max_load_ns(self) -> int:
        """The largest load of a device or link: what a pipeline of steps is limited by."""
        return self.report["max_load_ns"]

    @property
    def period_ns(self) -> int | None:
        """Predicted time from one step that overlaps to the next, on average; None: the
        objective is another."""
        return self.report.get("period_ns")

    @property
    def lower_bound_ns(self) -> int:
        """No placement is better, by the objective that was asked for."""
        return self.report["lower_bound_ns"]

    @property
    def gap(self) -> float:
        """How far the objective is above its lower bound: 0.1 is 10 %, 0 proven optimal."""
        return self.report["gap"]

    @property
    def single_device_ns(self) -> int | None:
        """Step of the best device alone; None: no device can hold the graph, or not tried."""
        return self.report["single_device_ns"]

    @property
    def winner(self) -> str:
        """The candidate that this is: a placer, `search`, ...; `given` when it was given."""
        return self.report["winner"]

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """All that was tried: name, feasible, makespan_ns, max_load_ns, problem."""
        return self.report["candidates"]

    @property
    def notes(self) -> list[str]:
        """What the placer has to say."""
        return self.report["notes"]

    def explain(self, pattern: str = "*") -> str:
        """Why operators are where they are; `pattern` is a name, or has `*`, `?`, `[...]`."""
        return self._result.explain([pattern])[0]

    def reasons(self, pattern: str = "*") -> list[dict[str, Any]]:
        """The same as data: a dictionary for each of the first ten operators, with one for
        each device: excluded_by, earliest_start_ns, needed_bytes, free_bytes, makespan_ns."""
        return json.loads(self._result.explain([pattern])[1])[0]["operators"]

    def save(self, path: str | os.PathLike[str], kind: str | None = None) -> None:
        """Writes a file: `placement` (docs/formats.md), `report`, `trace` (of Chrome and
        Perfetto), `page` (HTML), `dot` (Graphviz). kind: by default `page` for .html,
        `dot` for .dot, else `placement`."""
        path = pathlib.Path(path)
        kind = kind or {".html": "page", ".dot": "dot"}.get(path.suffix, "placement")
        texts = {
            "placement": self._result.placement_file,
            "report": self._result.report,
            "trace": self._result.trace,
            "page": self._result.page,
            "dot": self._result.dot,
        }
        if kind not in texts:
            raise ValueError(f"kind '{kind}' is unknown: use one of {', '.join(texts)}")
        files.write(path, texts[kind]().encode())

    def picture(self) -> Picture:
        """What `baechi.plot_timeline` and `baechi.plot_memory` draw."""
        return picture_of(self)

    def _repr_html_(self) -> str:
        """In notebooks: timeline by device and queue, memory against the limits."""
        return svg.to_html(self.picture())

    def __str__(self) -> str:
        return self._result.text()

    def __repr__(self) -> str:
        return (
            f"<baechi.Placement of {len(self.names)} operators on {len(self.devices)} devices: "
            f"step {self.step_ns / 1e6:.3f} ms by {self.winner}, gap {100 * self.gap:.1f} %>"
        )


def picture_of(placement: Placement) -> picture.Picture:
    """As planned."""
    operators, transfers = placement.operators, placement.transfers
    work = operators["finish"] - operators["start"]
    parts, part = picture.parts_of(placement.names, work)
    rows = []
    for d, device in enumerate(placement.devices):
        mine = np.flatnonzero(operators["device"] == d)
        rows.append(picture.Row(device, False, picture.spans_of(operators[mine], part[mine], mine)))
    by_pair = collections.defaultdict(list)
    pairs = {(int(t["source"]), int(t["target"])) for t in transfers}
    for k, transfer in enumerate(transfers):
        source, target = int(transfer["source"]), int(transfer["target"])
        by_pair[(source, target if len(pairs) <= picture.MOST_QUEUES else -1)].append(k)
    for (source, target), chosen in sorted(by_pair.items()):
        to = placement.devices[target] if target >= 0 else "all"
        sent = transfers[chosen]
        producers = sent["operator"]
        spans = picture.spans_of(sent, part[producers], producers)
        rows.append(picture.Row(f"{placement.devices[source]} → {to}", True, spans))
    memory = [
        picture.Memory(device, levels["time"], levels["bytes"], int(limit))
        for device, levels, limit in zip(
            placement.devices, placement.memory, placement.memory_limit, strict=True
        )
    ]
    facts = picture.facts_of(placement.step_ns, placement.lower_bound_ns, placement.winner)
    if placement.single_device_ns:
        ratio = placement.single_device_ns / max(placement.step_ns, 1)
        facts.append(
            f"best single device {picture.duration(placement.single_device_ns)} ({ratio:.2f}×)"
        )
    facts.append(f"{len(placement.names):,} operators")
    return picture.Picture(placement.step_ns, facts, parts, placement.names, rows, memory)
