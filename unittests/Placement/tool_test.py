#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""baechi-place on malformed and on sound input: one clear error and exit status 1, or a placement.

tool_test.py PATH-OF-BAECHI-PLACE
"""

import json
import lzma
import os
import subprocess
import unittest

from tool_case import GRAPH, MACHINE, TOOL, ToolCase


class ToolTest(ToolCase):
    def test_missing_file(self):
        done = self.run_tool(self.path / "none.json", self.write("machine.json", MACHINE))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.json: cannot read: No such file", done.stderr)

    def test_not_json(self):
        self.expect_error("graph.json: not valid JSON", graph=b"ops: []")

    def test_empty_file(self):
        self.expect_error("not valid JSON", graph=b"")

    def test_binary(self):
        self.expect_error("not valid JSON", graph=bytes(range(256)))

    def test_bytes_behind_a_zero(self):
        whole = json.dumps(GRAPH).encode()
        self.expect_error(f"byte {len(whole)} is zero", graph=whole + b"\0 and more")

    def test_truncated_json(self):
        self.expect_error("not valid JSON", graph=json.dumps(GRAPH).encode()[:-5])

    def test_deep_nesting(self):
        self.expect_error("graph.json", graph=b"[" * 100000)

    def test_truncated_xz(self):
        whole = lzma.compress(json.dumps(GRAPH).encode() * 50)
        self.expect_error("it ends too early", graph=whole[:-20], name="graph.json.xz")

    def test_damaged_xz(self):
        whole = bytearray(lzma.compress(json.dumps(GRAPH).encode() * 50))
        whole[len(whole) // 2] ^= 255
        self.expect_error(
            "cannot read: its data is damaged", graph=bytes(whole), name="graph.json.xz"
        )

    def test_not_xz(self):
        self.expect_error("it is not an xz file", graph=GRAPH, name="graph.json.xz")

    def test_xz_that_inflates_too_far(self):
        # Streams may follow each other: 17 of 64 MiB.
        bomb = lzma.compress(bytes(2**26), preset=0) * 17
        self.expect_error(
            "it inflates to 1140850688 bytes, and 1073741824 are the most",
            graph=bomb,
            name="graph.json.xz",
        )

    def test_pipe_and_device(self):
        machine = self.write("machine.json", MACHINE)
        os.mkfifo(self.path / "pipe.json")
        for file, reason in (
            (self.path / "pipe.json", "it is a pipe that nobody writes to; name a file"),
            ("/dev/zero", "it is a device; name a file"),
        ):
            done = self.run_tool(file, machine)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"cannot read: {reason}", done.stderr)

    def test_wrong_format(self):
        self.expect_error("this must be a baechi-graph file", graph=MACHINE)
        self.expect_error("this must be a baechi-machine file", machine=GRAPH)

    def test_wrong_version(self):
        self.expect_error("only version 1 is known", graph=GRAPH | {"version": 7})

    def test_wrong_types(self):
        self.expect_error("ops: must be an array, not object", graph=GRAPH | {"ops": {}})
        self.expect_error("ops[0]: must be an object, not number", graph=GRAPH | {"ops": [3]})
        self.expect_error(
            "ops[0] 'a'.time_ns: must be an integer, not string", graph=self.graph(time_ns="5")
        )
        self.expect_error(
            "ops[0] 'a'.outputs[0]: must be an integer", graph=self.graph(outputs=[[1]])
        )
        self.expect_error(
            "edges[0].from: must be an integer, not boolean",
            graph=GRAPH | {"edges": [{"from": True, "to": 1}]},
        )

    def test_missing_member(self):
        self.expect_error(
            "the member 'edges' is missing", graph={k: v for k, v in GRAPH.items() if k != "edges"}
        )

    def test_absurd_numbers(self):
        self.expect_error("must be an integer", graph=self.graph(time_ns=1e308))
        self.expect_error("does not fit 64 bits", graph=self.graph(scratch=2**63))
        self.expect_error(
            f"{2**64} does not fit 64 bits: check its unit", graph=self.graph(scratch=2**64)
        )
        self.expect_error("has -1 resident bytes", graph=self.graph(resident=-1))
        self.expect_error("the sizes of the graph add up", graph=self.graph(resident=2**62))

    def test_unknown_ids(self):
        self.expect_error(
            "from operator 0 to operator 9",
            graph=GRAPH | {"edges": [{"from": 0, "output": 0, "to": 9}]},
        )
        self.expect_error("its devices are d0, d1", graph=self.graph(pin="d9"))

    def test_cycle(self):
        self.expect_error(
            "the graph has a cycle: operator 0 'a' -> operator 1 'b'",
            graph=GRAPH | {"edges": GRAPH["edges"] + [{"from": 1, "output": 0, "to": 0}]},
        )

    def test_does_not_fit(self):
        self.expect_error("no placement can fit the memories", graph=self.graph(resident=101))

    def test_options(self):
        self.expect_error(
            "the placers are mtopo, mtopo-nonuniform, metf", options=["--placer=best"]
        )
        self.expect_error("unknown step 'shuffle'", options=["--grouping=fuse,shuffle"])
        self.expect_error("unknown objective 'speed'", options=["--objective=speed"])
        period = "--objective=period"
        self.expect_error("--explain knows makespan", options=[period, "--explain=a"])
        self.expect_error("--sweep knows makespan", options=[period, "--sweep"])
        self.expect_error("compared by makespan or max-load", options=[period, "--compare"])
        self.expect_error("--budget: unknown budget '-1'", options=["--budget=-1"])
        self.expect_error("--seed", options=["--seed=-1"])
        self.expect_error("see --help", options=["--frobnicate"])
        self.expect_error("cannot write", options=["-o", self.path / "no" / "folder.json"])

    def test_expert_file(self):
        rules = self.write("x.expert", b"a = d0\nb -> d1\n")
        self.expect_error(
            "x.expert:2: there is no '=': a line is PATTERN = DEVICE",
            options=["--placer=expert", f"--expert={rules}"],
        )
        self.expect_error("expert: there are no rules", options=["--placer=expert"])
        rules = self.write("x.expert", b"b = d1\na = d0\n")
        placement = self.path / "p.json"
        done = self.run_tool(
            self.write("graph.json", GRAPH),
            self.write("machine.json", MACHINE),
            "--budget=0",
            "--placer=expert",
            f"--expert={rules}",
            "-o",
            placement,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [op["device"] for op in json.loads(placement.read_text())["ops"]], ["d0", "d1"]
        )

    def test_no_arguments(self):
        done = subprocess.run([TOOL], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("GRAPH is required", done.stderr)

    def test_placement_and_report(self):
        placement, report = self.path / "p.json.xz", self.path / "r.json"
        done = self.run_tool(
            self.write("graph.json", GRAPH),
            self.write("machine.json", MACHINE),
            "-o",
            placement,
            f"--json={report}",
            "--budget=0.05",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        for word in ("lower bound", "candidates", "phases", "peak MiB"):
            self.assertIn(word, done.stdout)
        with lzma.open(placement, "rt") as f:
            self.assertEqual(json.load(f)["makespan_ns"], 12)
        data = json.loads(report.read_text())
        self.assertEqual(data["makespan_ns"], 12)
        self.assertEqual(data["lower_bound_ns"], 12)
        self.assertEqual(data["gap"], 0)
        self.assertTrue(any(phase["name"] == "verify" for phase in data["phases"]))

    def test_coplacement_does_not_swallow_resnet(self):
        graph, machine = self.msr("throughput-inputs/OperatorGraphs/resnet50_training.json")
        report = self.path / "r.json"
        done = self.run_tool(graph, machine, "--placer=mtopo", "--budget=0", f"--json={report}")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = json.loads(report.read_text())["grouping_steps"]
        self.assertEqual([step["name"] for step in steps], ["colocate", "coplace", "fuse"])
        self.assertEqual(steps[0]["groups_before"], 1243)
        self.assertGreaterEqual(steps[-1]["groups_after"], 12)
        self.assertLessEqual(steps[-1]["largest_work"], 1.2 / 7)
        self.assertLess(steps[-1]["operators_after"], steps[-1]["operators_before"])


if __name__ == "__main__":
    unittest.main()
