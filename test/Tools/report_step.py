# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a report's operators and transfers with its sums."""

import json
import sys

report = json.load(open(sys.argv[1]))
step = report["fastest_step"]
names = {device["name"] for device in report["devices"]}
operators = [
    (op["device"], op["name"], op["kernel"], op["planned_ns"], op["measured_ns"])
    for op in step["operators"]
    if op["device"] in names and op["planned_ns"] > 0 and op["measured_ns"] >= 0
]
print(sum(device["operators"] for device in report["devices"]), "operators on devices")
print(len(operators), "operators, all measured")
sent = [
    transfer["bytes"]
    for transfer in step["transfers"]
    if transfer["name"]
    and {transfer["from"], transfer["to"]} <= names
    and transfer["from"] != transfer["to"]
    and transfer["planned_ns"] > 0
    and transfer["measured_ns"] >= 0
]
print(sum(device["sent_bytes"] for device in report["devices"]), "bytes sent by devices")
print(sum(sent), "bytes of transfers, all measured")
far = [
    (op["device"], op["operator"], op["kernel"], op["planned_ns"], op["measured_ns"])
    for op in report["furthest_operators"]
]
print("the furthest are", "among them" if set(far) <= set(operators) else "others")
