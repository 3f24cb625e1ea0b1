#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted beside measured steps of baechi-run's reports: benchmarks/gpu/predictions.py
REPORT.json..."""

import json
import pathlib
import statistics
import sys

GOAL = 10  # percent

rows = [
    (pathlib.Path(file).stem, json.loads(pathlib.Path(file).read_text())) for file in sys.argv[1:]
]
if not rows:
    sys.exit(__doc__)
errors = []
print("| report | machine | operators | predicted, ms | measured, ms | error |")
print("|---|---|---|---|---|---|")
for name, report in rows:
    predicted, measured = report["predicted_step_ns"] / 1e6, report["measured_step_ns"] / 1e6
    errors.append(abs(measured / predicted - 1) * 100)
    print(
        f"| {name} | {report['machine']} | {report['operators']} | {predicted:.3f} | "
        f"{measured:.3f} "
        f"| {100 * (measured / predicted - 1):+.1f} % |"
    )
met = statistics.median(errors) <= GOAL
print(f"\ngoal: predictions within {GOAL} % in the median: {'reached' if met else 'missed'}")
print(f"median error {statistics.median(errors):.1f} %, worst {max(errors):.1f} %")
