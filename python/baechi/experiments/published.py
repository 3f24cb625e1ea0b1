# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the paper and its authors report: the figures that ours stand beside.

Sources: [1] Jeon et al., "Baechi: Fast Device Placement of Machine Learning
Graphs", SoCC 2020, extended as arXiv 2301.08695; [2] the runs that its authors
keep beside their PyTorch program, chiragcshetty/BaechiPyTorch,
main_training/results/result_details.txt (Inception-V3, batch 64, 4 GPUs; the
mean of the two runs of each). Their models, frameworks and graphs are not ours:
compare ratios, not milliseconds.
"""

from __future__ import annotations

# Seconds of placing with the paper's optimisations and without, over its models [1].
PLACEMENT_SECONDS = {"optimised": (0.9, 2.4), "not optimised": (68.0, 406.0)}

# Speed-up of GNMT's step on four GPUs over one [1].
GNMT_SPEED_UP = (1.18, 1.34)

# The worst step of Baechi's against the expert's in TensorFlow [1].
WORST_AGAINST_EXPERT = 1.062

# Milliseconds of a step by placer [2].
STEP_MS = {
    "inception-64": {"single": 458.8, "metf": 465.7, "msct": 464.5, "mtopo": 535.1},
}


def speed_up(benchmark: str, placer: str) -> str:
    """The published speed-up over one device, as text; empty where there is none."""
    steps = STEP_MS.get(benchmark, {})
    if placer in steps:
        return f"{steps['single'] / steps[placer]:.2f}"
    if benchmark.startswith("gnmt") and placer == "msct":
        return f"{GNMT_SPEED_UP[0]:.2f}–{GNMT_SPEED_UP[1]:.2f}"
    return ""
