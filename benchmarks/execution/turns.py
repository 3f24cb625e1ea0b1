# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a contender's process does: it steps in turns, when it is told to."""

import json
import sys
import time


def serve(step, first, steps):
    """Writes the first losses; makes so many steps for each line that it reads, and writes their
    wall times in seconds and its processor time."""
    print(json.dumps([step() for _ in range(first)]), flush=True)
    for _ in sys.stdin:
        walls, began = [], time.process_time()
        for _ in range(steps):
            start = time.perf_counter()
            step()
            walls.append(time.perf_counter() - start)
        print(json.dumps({"walls": walls, "cpu": time.process_time() - began}), flush=True)
