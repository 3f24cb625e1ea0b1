# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says what a page of baechi-run (docs/report-page.md) holds."""

import json
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
operators, measured = data["operators"], data["measured"]
spans = measured["operators"]["start_ns"]
timed = [start for start, time in zip(spans, operators["time_ns"]) if time > 0]
moved = measured["transfers"]["start_ns"]
print(data["format"], data["version"])
print("model", data["summary"]["model"])
print(len(operators["name"]), "operators")
print(len(spans), "measured spans")
print(len(timed), "operators with a time")
print(sum(start >= 0 for start in timed), "of them ran")
print(len(data["transfers"]["op"]), "transfers")
print(sum(start >= 0 for start in moved), "happened")
print("reasons:", "yes" if data["reasons"] else "no")
