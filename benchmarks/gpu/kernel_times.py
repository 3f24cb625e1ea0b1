#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of a step take on the GPU, by name, as PyTorch's profiler (CUPTI) sees them.

    benchmarks/gpu/kernel_times.py FOLDER MODEL [--contender baechi|torch|jax] [--steps N] [--top N]

FOLDER is that of `frameworks.py prepare`. Prints the step's wall time without the profiler, the
time that kernels and copies take of a step, and a table of the kernels that take most. Where both
times are about the same, kernels are to be made faster; where they are not, the GPU waits.
"""

import argparse
import collections
import pathlib
import re
import statistics
import sys
import time

import frameworks

MAKERS = {
    "baechi": frameworks.baechi_step,
    "torch": frameworks.torch_step,
    "jax": frameworks.jax_step,
}


def spans(profile):
    """Microseconds of each kernel and copy, by name, and how long any of them ran."""
    times, ranges = collections.defaultdict(list), []
    for event in profile.events():
        if "CUDA" in str(event.device_type) and event.time_range.elapsed_us() > 0:
            times[event.name].append(event.time_range.elapsed_us())
            ranges.append((event.time_range.start, event.time_range.end))
    busy, until = 0.0, float("-inf")
    for begin, end in sorted(ranges):
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    return times, busy


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("model")
    parser.add_argument("--contender", choices=MAKERS, default="baechi")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--top", type=int, default=25)
    options = parser.parse_args()
    import torch

    torch.cuda.init()
    step = MAKERS[options.contender](options.model, options.folder, "cuda")
    for _ in range(frameworks.WARM):
        step()
    walls = []
    for _ in range(10):
        start = time.perf_counter()
        step()
        walls.append(time.perf_counter() - start)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(options.steps):
            step()
        torch.cuda.synchronize()
    times, busy = spans(profile)
    if not times:
        sys.exit("kernel_times.py: the profiler saw no kernel")
    calls = sum(len(each) for each in times.values()) / options.steps
    print(
        f"{options.model} by {options.contender}: a step takes "
        f"{statistics.median(walls) * 1e3:.3f} ms, the GPU is busy for "
        f"{busy / options.steps / 1e3:.3f} ms of it with {calls:.0f} kernels and copies"
    )
    print("\n| µs a step | of all | times | µs each | kernel |\n|---|---|---|---|---|")
    everything = sum(map(sum, times.values()))
    for name, each in sorted(times.items(), key=lambda item: -sum(item[1]))[: options.top]:
        short = re.sub(r"<.*|\(.*", "", name)[:80]
        print(
            f"| {sum(each) / options.steps:.1f} | {sum(each) / everything * 100:.1f} % "
            f"| {len(each) / options.steps:.0f} | {statistics.mean(each):.1f} | {short} |"
        )


if __name__ == "__main__":
    main()
