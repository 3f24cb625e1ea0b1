# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of each group of a graph file, a line a group."""

import json
import sys

groups = {}
with open(sys.argv[1]) as file:
    for op in json.load(file)["ops"]:
        groups.setdefault(op.get("group"), []).append(op["name"])
for name in sorted(filter(None, groups)):
    print(*sorted(groups[name]))
