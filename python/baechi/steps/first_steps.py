# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first steps of a program, on one device: they tell what its kernels take, so that nobody
waits for measurements before them. The compiler asks for it (`to_measure` in the manifest)."""

from __future__ import annotations

import contextlib
import json
import pathlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

from baechi.steps.library import StepLibrary

# As the compiler does where it measures steps itself (lib/Costs/Measure/StepCosts.cpp): the
# first step warms, three have a median, one long one is enough; those that other work disturbed
# are replaced, as often.
_WARM_UPS, _ENOUGH, _ENOUGH_NS = 1, 3, 1.5e9
# What differs between the time and what the process computed in it.
_SHARE, _IDLE_NS = 0.05, 5e5


class FirstSteps:
    """Records the steps of a library that is to be measured, until there are enough."""

    def __init__(self, library: StepLibrary):
        self._library = library
        self._profile: dict[str, Any] = library.program["to_measure"]
        operators = [device["operators"] for device in library.program["devices"]]
        self._device = max(range(len(operators)), key=lambda i: len(operators[i]))
        self._kernels = [operator["kernel"] for operator in operators[self._device]]
        self._good: list[list[int]] = []
        self._disturbed: list[list[int]] = []
        self._spent_ns, self.steps = 0, 0
        library.record_times(True)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Around a step of the library."""
        wall, used = time.monotonic_ns(), time.process_time_ns()
        yield
        wall, used = time.monotonic_ns() - wall, time.process_time_ns() - used
        self.steps += 1
        if self.steps <= _WARM_UPS:
            return
        self._spent_ns += wall
        times = self._library.operator_ns(self._device)
        if wall - used <= _SHARE * wall + _IDLE_NS:
            self._good.append(times)
            return
        # Operators cannot have computed more than the process.
        share = min(1.0, used / max(1, sum(times)))
        self._disturbed.append([round(ns * share) for ns in times])

    def is_enough(self) -> bool:
        if len(self._good) >= _ENOUGH or len(self._disturbed) >= 2 * _ENOUGH:
            return True
        return self._spent_ns > _ENOUGH_NS and bool(self._good or len(self._disturbed) > 1)

    def write(self, file: pathlib.Path) -> None:
        """A profile of what the steps took, for the option `step-times`."""
        samples, disturbed = (self._good, False) if self._good else (self._disturbed, True)
        by_kernel: dict[str, list[int]] = {}
        for kernel, times in zip(self._kernels, zip(*samples, strict=True), strict=True):
            by_kernel.setdefault(kernel, []).append(statistics.median_low(times))
        rows = []
        for row in self._profile["rows"]:
            if row["kernel"] not in by_kernel:
                continue
            # So that the sum over a step is right.
            ns = round(statistics.mean(by_kernel[row["kernel"]]))
            step = {"step_ns": ns, "step_disturbed": disturbed}
            # What has no undisturbed time of its own is better off with this one.
            alone = {"median_ns": ns, "samples": len(samples), "disturbed": disturbed}
            rows.append(row | step | (alone if row.get("disturbed") else {}))
        file.write_text(json.dumps(self._profile | {"rows": rows}))
