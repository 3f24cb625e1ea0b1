# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that follow the first calls: what tests of them compile by, and what reports say."""

from __future__ import annotations

import json
import pathlib
from typing import Any

FIRST = "plan       of one device, until a few calls have told what kernels take"
SECOND = "plan       made of what kernels took in the first"
# Enough for a plan, however much other work disturbs them.
CALLS = 12


def options(folder: pathlib.Path) -> dict[str, Any]:
    """By a placer that always uses both devices, for links that hold nobody up whatever else the
    machine does, from a profile that knows nothing."""
    devices = [{"name": f"host{i}", "kind": "host", "memory": 1 << 30} for i in (0, 1)]
    link = {"latency_ns": 0, "bytes_per_us": 1000000}
    machine = {"format": "baechi-machine", "version": 1, "devices": devices}
    links = {"link_default": link, "link_model": "parallel"}
    (folder / "machine.json").write_text(json.dumps(machine | links))
    return {
        "machine": folder / "machine.json",
        "placer": "round-robin",
        "budget": "0",
        "costs": "measured",
        "profile": folder / "profile.json",
        "replan": "auto",
        "verbose": False,
    }


def devices(step: Any) -> set[str]:
    return set(step.placement.values())
