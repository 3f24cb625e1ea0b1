# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs and machines as Python objects; the files of docs/formats.md, field by field."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from baechi.graphs.native import _placement


class _Described(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


Source: TypeAlias = "Mapping[str, Any] | str | os.PathLike[str] | _Described"


@dataclasses.dataclass
class Output:
    """A tensor that an operator produces. All in bytes."""

    bytes: int
    """Moved when it is sent to another device."""
    memory: int | None = None
    """Held where it is produced; 0: an alias, or an update in place. None: `bytes`."""
    copy: int | None = None
    """Held by a received copy. None: `bytes`."""


@dataclasses.dataclass
class Operator:
    """An operator of a graph. Operators are numbered by their position."""

    name: str
    time_ns: int | Mapping[str, int]
    """Nanoseconds, or nanoseconds by kind of device; a kind that is missing cannot run it."""
    outputs: Sequence[int | Output] = ()
    """Its tensors; a number stands for `Output(number)`."""
    scratch: int = 0
    """Bytes held while it runs."""
    resident: int = 0
    """Bytes held as long as the program lives: parameters, optimizer state."""
    group: str | None = None
    """Operators of one group are placed on one device."""
    pin: str | None = None
    """The device that it must be placed on."""
    backward: bool = False
    forward: int | None = None
    """The forward operator that a backward operator belongs to."""
    result: bool = False
    """True: its outputs live until the end of the step."""
    part: int | None = None
    """The part of the batch that it computes, on a machine of nodes (docs/nodes.md)."""
    exchange: int = 0
    """Bytes that replicas exchange of what it has made of their parts."""


@dataclasses.dataclass
class Graph:
    """Operators and who reads what from whom.

    >>> graph = Graph()
    >>> read = graph.add("read", 1000, outputs=[4096])
    >>> work = graph.add("work", 50_000, inputs=[read])
    """

    ops: list[Operator] = dataclasses.field(default_factory=list)
    edges: list[tuple[int, int | None, int]] = dataclasses.field(default_factory=list)
    """(from, output, to): a data edge; with `None` as the output a control edge."""

    def add(
        self,
        name: str,
        time_ns: int | Mapping[str, int],
        *,
        inputs: Sequence[int | tuple[int, int]] = (),
        after: Sequence[int] = (),
        **fields: Any,
    ) -> int:
        """Appends an operator and returns its number.

        inputs: operators whose first output it reads, or (operator, output).
        after: operators that it waits for without reading from them.
        fields: the others of `Operator`.
        """
        number = len(self.ops)
        self.ops.append(Operator(name, time_ns, **fields))
        for each in inputs:
            source, output = each if isinstance(each, tuple) else (each, 0)
            self.edges.append((source, output, number))
        self.edges += [(source, None, number) for source in after]
        return number

    def to_dict(self) -> dict[str, Any]:
        """The graph as its file has it."""
        return {
            "format": "baechi-graph",
            "version": 1,
            "ops": [_operator(i, op) for i, op in enumerate(self.ops)],
            "edges": [_edge(*edge) for edge in self.edges],
        }


@dataclasses.dataclass
class Device:
    """A device of a machine; `memory` in bytes."""

    name: str
    kind: str
    memory: int


@dataclasses.dataclass
class Link:
    """A transfer takes `latency_ns + ceil(bytes * 1000 / bytes_per_us)` nanoseconds;
    `latency_ns` where the link `lends`: both devices are of kind `host`, or on one GPU,
    and the receiver reads the sender's tensor where it lies."""

    latency_ns: int
    bytes_per_us: int
    lends: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The link as a machine file has it, without its ends."""
        found: dict[str, Any] = {"latency_ns": self.latency_ns, "bytes_per_us": self.bytes_per_us}
        if self.lends:
            found["lends"] = True
        return found


@dataclasses.dataclass
class Machine:
    """Devices and their links.

    link_default: of all pairs that `links` does not name; None: they cannot talk.
    link_model: which transfers exclude each other (docs/formats.md): `unlimited`,
        `parallel`, `duplex` or `sequential`.
    staged_through, runtime: as a machine file has them (docs/formats.md).
    """

    devices: list[Device]
    link_default: Link | None = None
    links: dict[tuple[str, str], Link] = dataclasses.field(default_factory=dict)
    link_model: str = "sequential"
    staged_through: str | None = None
    runtime: Mapping[str, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The machine as its file has it."""
        found: dict[str, Any] = {
            "format": "baechi-machine",
            "version": 1,
            "devices": [dataclasses.asdict(device) for device in self.devices],
            "links": [
                {"from": source, "to": target, **link.to_dict()}
                for (source, target), link in self.links.items()
            ],
            "link_model": self.link_model,
        }
        if self.link_default is not None:
            found["link_default"] = self.link_default.to_dict()
        if self.staged_through is not None:
            found["staged_through"] = self.staged_through
        if self.runtime is not None:
            found["runtime"] = dict(self.runtime)
        return found


def _operator(number: int, op: Operator) -> dict[str, Any]:
    time = dict(op.time_ns) if isinstance(op.time_ns, Mapping) else op.time_ns
    found = {"id": number, "name": op.name, "time_ns": time}
    found["outputs"] = [_output(output) for output in op.outputs]
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        if field.name not in found and value != field.default:
            found[field.name] = value
    return found


def _output(output: int | Output) -> Any:
    if not isinstance(output, Output):
        return output
    filled = {"bytes": output.bytes, "memory": output.memory, "copy": output.copy}
    return {key: output.bytes if value is None else value for key, value in filled.items()}


def _edge(source: int, output: int | None, target: int) -> dict[str, int]:
    edge = {"from": source, "to": target}
    return edge if output is None else edge | {"output": output}


def text_of(source: Source, what: str) -> tuple[str, str]:
    """The text of a graph or a machine, and the name that stands for it in errors."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if what == "machine" and not os.path.exists(path):
            return _placement.machine_text(path), path
        return _placement.read_file(path), path
    content = source if isinstance(source, Mapping) else _content(source, what)
    try:
        return json.dumps(content, default=_number), what
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what}: not JSON data: {error}") from error


def _content(source: Any, what: str) -> dict[str, Any]:
    if not hasattr(source, "to_dict"):
        raise TypeError(
            f"{what}: a dictionary, a path or a baechi.{what.capitalize()} is wanted, "
            f"not {type(source).__name__}"
        )
    return source.to_dict()


def _number(value: Any) -> Any:
    """numpy's numbers and arrays, too."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no number, text, list or dictionary")


def read(graph: Source, machine: Source) -> _placement.Problem:
    """Both, checked for their form, as the extension module has them."""
    graph_text, graph_name = text_of(graph, "graph")
    machine_text, machine_name = text_of(machine, "machine")
    return _placement.Problem.read(graph_text, graph_name, machine_text, machine_name)
