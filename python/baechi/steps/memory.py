# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled step holds on each device, and the least that it can do with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from baechi.compiling.options import CompileOptions
from baechi.compiling.tools import CompileError
from baechi.pictures.picture import size

_ALIGNMENT = 64  # bytes, of what lies in an arena (docs/program-format.md)
# How near the smallest memory that was found is to one that was tried in vain.
_PRECISION = 64
# How often more is looked for that is proven to be too little.
_PROOFS = 3
# What the compiler says of memories; all else that it says is no matter of size.
_IMPOSSIBLE = "no placement can fit the memories"
_NOT_FOUND = (
    "no placement was found that fits the memories",
    "the plan needs",
    "the step does not fit",  # with a pool
)


@dataclasses.dataclass(frozen=True)
class DeviceMemory:
    """Of one device, in bytes."""

    device: str
    arena_bytes: int
    """All that the step uses there, exactly."""
    resident_bytes: int
    """Arguments: parameters, the optimizer's state, the batch. They are there between steps."""
    limit_bytes: int
    """What the plan was proven against."""

    @property
    def scratch_bytes(self) -> int:
        """Results, and all that lives within a step only."""
        return self.arena_bytes - self.resident_bytes


@dataclasses.dataclass(frozen=True)
class Memory:
    """Of a compiled step. Prints as a table; `memory["host0"]` is one device."""

    devices: tuple[DeviceMemory, ...]

    def __iter__(self) -> Iterator[DeviceMemory]:
        return iter(self.devices)

    def __getitem__(self, device: str) -> DeviceMemory:
        for found in self.devices:
            if found.device == device:
                return found
        raise KeyError(f"{device!r}; devices: {', '.join(d.device for d in self.devices)}")

    def __str__(self) -> str:
        rows = [["device", "arena", "resident", "scratch", "limit"]]
        for d in self.devices:
            figures = (d.arena_bytes, d.resident_bytes, d.scratch_bytes, d.limit_bytes)
            rows.append([d.device, *map(size, figures)])
        return "\n".join("{:10} {:>10} {:>10} {:>10} {:>10}".format(*row) for row in rows)


@dataclasses.dataclass(frozen=True)
class LeastMemory:
    """The least memory of equal devices that a placement was found for, in bytes each."""

    devices: int
    bytes: int
    """With so much the step was placed and compiled."""
    not_found_bytes: int
    """With so much none was found: there may be one."""
    impossible_bytes: int
    """With so much, or less, there is none: the compiler has a proof, of operators as they are.
    What `fit_memory="auto"` cuts into pieces may take less."""

    def __str__(self) -> str:
        count = "1 device" if self.devices == 1 else f"{self.devices} devices"
        vain = (
            f"with {size(self.not_found_bytes)} none was found, "
            if self.not_found_bytes > self.impossible_bytes
            else ""
        )
        return (
            f"{count}: {size(self.bytes)} each; {vain}with {size(self.impossible_bytes)} there is "
            "none, as long as no operator is cut"
        )


def of_program(manifest: Mapping[str, Any]) -> Memory:
    """manifest: docs/program-format.md."""
    resident = [0] * len(manifest["devices"])
    for argument in manifest["arguments"]:
        for part in argument.get("pieces", [argument]):
            resident[part["device"]] += _aligned(part["bytes"])
    return Memory(
        tuple(
            DeviceMemory(device["name"], device["arena_bytes"], held, device["memory"])
            for device, held in zip(manifest["devices"], resident, strict=True)
        )
    )


def is_too_little(error: CompileError) -> bool:
    """Whether the compiler found no plan that fits, whatever else it says."""
    return any(words in str(error) for words in (_IMPOSSIBLE, *_NOT_FOUND))


def least(
    memory: Memory,
    kinds: set[str],
    devices: int | None,
    options: CompileOptions,
    compiled: Callable[[CompileOptions], Memory],
    pools: Collection[str] = (),
) -> LeastMemory:
    """Halves between what is proven to be too little and what suffices.

    memory, kinds, pools: of the step as it is, with its options; kinds of the devices that
    compute, names of those that do not. devices: None for as many as
    it has. compiled: compiles the step with other options, and gives its memory.
    Raises ValueError and CompileError.
    """
    beside = {device.device: device for device in memory if device.device in pools}
    computing = [device for device in memory if device.device not in pools]
    count = len(computing) if devices is None else devices
    if count < 1:
        raise ValueError(f"devices is {devices!r}: give a number of devices, 1 or more")
    if len(kinds) != 1:
        raise ValueError(
            f"the step is on devices of several kinds ({', '.join(sorted(kinds))}), which have "
            "no equal memories"
        )
    (kind,) = kinds

    resident = sum(device.resident_bytes for device in memory)
    # Every argument is in one place, so a byte less on each is too little.
    # Where some may wait in a pool, nothing is proven.
    impossible = 0 if beside else max(-(-resident // count) - 1, 0)
    vain = [impossible]
    pool = f"+pool:{sum(device.limit_bytes for device in beside.values())}" if beside else ""

    def largest_arena(limit: str) -> int:
        machine = dataclasses.replace(options, machine=f"{kind}:{count}{limit}{pool}")
        held = [d.arena_bytes for d in compiled(machine) if d.device not in pools]
        return _aligned(max(held))

    def suffices(size: int) -> int | None:
        """What of so much is used; None: it is too little."""
        nonlocal impossible
        try:
            return largest_arena(f"@{size}")
        except CompileError as error:
            if _IMPOSSIBLE in str(error) and not pool:
                impossible = max(impossible, size)
            elif not is_too_little(error):
                raise
        vain.append(size)
        return None

    # What is proven is proven of the operators as they are.
    if options.fit_memory == "auto":
        options = dataclasses.replace(options, fit_memory="whole")
    enough = largest_arena("")
    # A tighter limit is another problem, so that what suffices has to be found again.
    while (used := suffices(enough)) is None:
        enough *= 2
    while enough - (low := max(vain)) > max(enough // _PRECISION, _ALIGNMENT):
        tried = used if used is not None and low < used < enough else _middle(low, enough)
        used = suffices(tried)
        if used is not None:
            enough = tried
    for _ in range(_PROOFS):
        tried = _middle(impossible, min(enough, max(vain)))
        if tried <= impossible or tried in vain:
            break  # neither found nor proven: halves between the same come to the same
        if suffices(tried) is not None:
            enough = tried  # less sufficed than what was tried in vain before
    return LeastMemory(count, enough, max(v for v in vain if v < enough), impossible)


def _middle(low: int, high: int) -> int:
    return (low + high) // (2 * _ALIGNMENT) * _ALIGNMENT


def _aligned(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT
