# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machines that steps are simulated on."""

from __future__ import annotations

import copy
import dataclasses
import json
import pathlib
from typing import Any

_FOLDER = pathlib.Path(__file__).parent / "machines"


@dataclasses.dataclass(frozen=True)
class Machine:
    """A described machine: what `baechi-place` reads, and the roofline of its devices.

    `roofline` is KIND:GFLOPS:GBS:LAUNCH_NS, as `--baechi-annotate-costs` takes it.
    """

    name: str
    description: str
    data: dict[str, Any]
    roofline: str

    def with_share_of_memory(self, share: float) -> Machine:
        """The same with a share of every device's memory."""
        data = copy.deepcopy(self.data)
        for device in data["devices"]:
            device["memory"] = int(device["memory"] * share)
        return dataclasses.replace(self, data=data)

    def with_devices(self, count: int) -> Machine:
        """The first ones alone."""
        data = copy.deepcopy(self.data)
        del data["devices"][count:]
        return dataclasses.replace(self, data=data)

    @property
    def devices(self) -> list[str]:
        return [device["name"] for device in self.data["devices"]]


def socc2020() -> Machine:
    """Four GeForce RTX 2080 of 8 GB without NVLink (Jeon et al., 2020).

    Links: the fit that the authors' program prints, 0.0001754 µs a byte and 134 µs,
    one transfer at a time. Peak and bandwidth are NVIDIA's figures of the GPU
    (10.07 TFLOP/s in single precision, 448 GB/s); 5 µs for a launch are assumed.
    """
    return Machine(
        "socc2020",
        "4 GeForce RTX 2080 (10.07 TFLOP/s, 448 GB/s, 5 µs a launch, 8 GiB), "
        "134 µs + 5.7 GB/s between them, one transfer at a time for a device",
        json.loads((_FOLDER / "socc2020.json").read_text()),
        "cuda:10070:448:5000",
    )


def fast_links() -> Machine:
    """The same GPUs with links of 50 GB/s each way at once and 10 µs (of the order of NVLink's;
    assumed, not measured)."""
    paper = socc2020()
    data = copy.deepcopy(paper.data)
    data["link_model"] = "duplex"
    data["link_default"] = {"latency_ns": 10_000, "bytes_per_us": 50_000}
    return Machine(
        "fast-links",
        "4 GeForce RTX 2080 (as the paper's) with 10 µs + 50 GB/s between them, one transfer in "
        "and one out at a time for a device",
        data,
        paper.roofline,
    )
