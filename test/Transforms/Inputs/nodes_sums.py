# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a graph file says of parts, exchanges and ways, summed up."""

import collections
import json
import sys

with open(sys.argv[1]) as file:
    ops = json.load(file)["ops"]
parts = collections.Counter(op["part"] for op in ops if "part" in op)
print("parts", *(parts[part] for part in sorted(parts)))
print("exchange", sum(op.get("exchange", 0) for op in ops))
print("ways", *sorted({way["name"] for op in ops for way in op.get("alternatives", [])}))
