# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.device_map`: which module on which device, for tools that follow such a map."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch

import baechi
from baechi.compiling import stepgraph
from baechi.graphs import problem
from baechi.torch.module_graph import ModuleGraph, ModuleGraphBuilder

# Between devices that are named by max_memory: PCIe 3 with 16 lanes.
_LINK = baechi.Link(latency_ns=10_000, bytes_per_us=12_000)
_KINDS = {"cpu": "host", "disk": "disk"}
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


class DeviceMap(dict):
    """Module and parameter paths to devices, as accelerate takes it (`dispatch_model`).

    step_ns: the predicted time of a forward pass. peak_bytes: what each device
    holds at most, activations included, by its name.
    """

    step_ns: int
    peak_bytes: dict[Any, int]


def device_map(
    model: torch.nn.Module,
    sample: Any,
    machine: Any = "host:2",
    *,
    no_split: Collection[str | type] = (),
    costs: str = "roofline",
    budget: str | float = "auto",
) -> DeviceMap:
    """Places the modules of `model` for inference on `sample`.

    sample: a tensor, a tuple of the inputs, or a dictionary of them by name. The
        model's tensors need no values with costs="roofline" (device "meta").
    machine: `host:N[@SIZE]`, a machine file, a `baechi.Machine`, or memory by
        device as accelerate's `max_memory`: `{0: "10GiB", 1: "10GiB", "cpu": "30GiB"}`,
        numbers being GPUs; `"disk"` is for what the others have no room for.
    no_split: classes, or their names, whose modules stay whole, in addition to those
        that must: with parameters of their own, or combining tensors themselves.
    costs: `roofline` by kind of device, or `measured`, which times every operator
        on this processor (for devices of the kind `host`).

    Raises PlacementError where nothing fits, with the bytes.
    """
    if costs not in ("roofline", "measured"):
        raise ValueError(f"costs='{costs}': known are 'roofline' and 'measured'")
    args, kwargs = _arguments(sample)
    described, keys = _machine(machine)
    kinds = {device["kind"] for device in described["devices"]}
    built = ModuleGraphBuilder(model, args, kwargs, no_split).build(kinds, costs == "measured")
    evaluator = baechi.Evaluator(built.graph, described)
    placement = baechi.place(built.graph, described, budget=budget)
    chosen = [np.asarray(placement.operators["device"], np.int32)]
    # Devices filled one after the other, in the order of the model, with smaller and
    # smaller shares of their memory: few transfers, which a search may miss.
    chosen += _filled(built, described, evaluator)
    found = [evaluator(numbers) for numbers in chosen]
    fitting = [i for i, evaluation in enumerate(found) if evaluation.fits]
    best = min(fitting, key=lambda i: found[i].step_ns) if fitting else 0
    names = [keys.get(device["name"], device["name"]) for device in described["devices"]]
    where = {
        unit: names[number] for unit, number in zip(built.units, chosen[best]) if unit is not None
    }
    result = DeviceMap(_merged(model, where))
    result.step_ns = int(found[best].step_ns)
    result.peak_bytes = dict(zip(names, map(int, found[best].peak_bytes)))
    return result


def _arguments(sample: Any) -> tuple[tuple, dict]:
    if isinstance(sample, Mapping):
        return (), dict(sample)
    return (tuple(sample), {}) if isinstance(sample, tuple | list) else ((sample,), {})


def _machine(machine: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The machine as data, and the keys that the map shall have instead of names."""
    if isinstance(machine, str) and re.match(r"^\w+:\d", machine):
        return stepgraph.machine(machine), {}
    if not isinstance(machine, Mapping) or "devices" in machine:
        return json.loads(problem.text_of(machine, "machine")[0]), {}
    devices, keys = [], {}
    for key, memory in machine.items():
        if key not in _KINDS and not isinstance(key, int):
            raise ValueError(
                f"machine: no device {key!r}; GPUs are numbers, the host is 'cpu', files are 'disk'"
            )
        name = f"gpu{key}" if isinstance(key, int) else key
        keys[name] = key
        kind = "cuda" if isinstance(key, int) else _KINDS[key]
        devices.append(baechi.Device(name, kind, _size(memory)))
    # The fastest first, as accelerate has them.
    devices.sort(key=lambda device: ["cuda", "host", "disk"].index(device.kind))
    return baechi.Machine(devices, link_default=_LINK, link_model="duplex").to_dict(), keys


def _size(memory: int | str) -> int:
    if isinstance(memory, int):
        return memory
    match = re.fullmatch(r"\s*([\d.]+)\s*([A-Za-z]*)\s*", memory)
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"machine: '{memory}' is no size; write 10GiB or a number of bytes")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _filled(built: ModuleGraph, machine: dict, evaluator: baechi.Evaluator) -> list[np.ndarray]:
    """Groups in the order in which the model first uses them, on one device after
    the other, each up to a share of its memory."""
    held: dict[int, int] = {}
    for unit, op in zip(evaluator.units, built.graph.ops, strict=True):
        held[int(unit)] = held.get(int(unit), 0) + op.resident
    order = _by_use(built, evaluator)
    limits = [device["memory"] for device in machine["devices"]]
    total = sum(held.values())
    found: dict[bytes, np.ndarray] = {}
    for share in (*(i / 20 for i in range(20, 0, -1)), total / max(1, sum(limits))):
        device, used = 0, 0
        choice = np.zeros(max(held) + 1, np.int32)
        for unit in order:
            while device + 1 < len(limits) and (
                used + held[unit] > share * limits[device] or not evaluator.allowed[unit, device]
            ):
                device, used = device + 1, 0
            choice[unit] = device
            used += held[unit]
        numbers = choice[evaluator.units]
        found.setdefault(numbers.tobytes(), numbers)
    return list(found.values())


def _by_use(built: ModuleGraph, evaluator: baechi.Evaluator) -> list[int]:
    """Parameters are operators at the graph's beginning: what reads them counts."""
    first: dict[int, int] = {}
    for i, (unit, op) in enumerate(zip(evaluator.units, built.graph.ops, strict=True)):
        if op.resident == 0:
            first.setdefault(int(unit), i)
    for unit in evaluator.units:
        first.setdefault(int(unit), len(built.graph.ops))
    return sorted(first, key=first.__getitem__)


def _merged(model: torch.nn.Module, where: dict[str, Any]) -> dict[str, Any]:
    """The shortest map: a module stands for what is in it where that is together."""
    tensors = [name for name, _ in [*model.named_parameters(), *model.named_buffers()]]

    def device_of(tensor: str) -> Any:
        parts = tensor.split(".")
        paths = [".".join(parts[:i]) for i in range(len(parts), 0, -1)]
        return next(where[path] for path in paths if path in where)

    devices = {tensor: device_of(tensor) for tensor in tensors}
    result: dict[str, Any] = {}

    def visit(module: torch.nn.Module, path: str) -> None:
        prefix = f"{path}." if path else ""
        inside = {d for name, d in devices.items() if name.startswith(prefix)}
        inside |= {d for unit, d in where.items() if unit == path or unit.startswith(prefix)}
        if len(inside) == 1:
            result[path] = inside.pop()
        elif inside:
            for tensors in (module._parameters, module._buffers):
                for name in tensors:
                    if prefix + name in devices:
                        result[prefix + name] = devices[prefix + name]
            for name, child in module.named_children():
                visit(child, prefix + name)

    visit(model, "")
    return result
