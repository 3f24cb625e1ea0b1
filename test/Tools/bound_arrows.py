# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many ends a trace's arrows have, and how many lie in no slice of their
row: viewers draw only arrows with both ends in one."""

import collections
import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
slices = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X":
        # In ns, as viewers keep them.
        begin = round(event["ts"] * 1000)
        end = begin + round(event["dur"] * 1000)
        slices[event["pid"], event["tid"]].append((begin, end))
for process, name in ((1, "predicted"), (2, "measured")):
    for phase in "sf":
        ends = [event for event in events if event["ph"] == phase and event["pid"] == process]
        bound = 0
        for event in ends:
            at = round(event["ts"] * 1000)
            row = slices[process, event["tid"]]
            bound += any(begin <= at < end or begin == at for begin, end in row)
        print(name, phase, len(ends), "unbound", len(ends) - bound)
