#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of baechi-place share: a small graph, a machine, and a case that runs the tool on
them.

The first argument of such a test is the path of baechi-place.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPH = {
    "format": "baechi-graph",
    "version": 1,
    "ops": [
        {"id": 0, "name": "a", "time_ns": 5, "outputs": [10]},
        {"id": 1, "name": "b", "time_ns": 7, "outputs": [10]},
    ],
    "edges": [{"from": 0, "output": 0, "to": 1}],
}
MACHINE = {
    "format": "baechi-machine",
    "version": 1,
    "link_model": "sequential",
    "devices": [{"name": n, "kind": "gpu", "memory": 100} for n in ("d0", "d1")],
    "link_default": {"latency_ns": 10, "bytes_per_us": 1000},
}


class ToolCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def write(self, name, content):
        target = self.path / name
        target.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return target

    def run_tool(self, graph, machine, *options):
        return subprocess.run(
            [TOOL, str(graph), str(machine), *map(str, options)],
            capture_output=True,
            text=True,
            timeout=60,
        )

    def run_on(self, *options, graph=GRAPH, machine=MACHINE):
        return self.run_tool(
            self.write("graph.json", graph), self.write("machine.json", machine), *options
        )

    def msr(self, name):
        """An instance of data/msr as a graph file and its machine file."""
        graph, machine = self.path / "msr-graph.json", self.path / "msr-machine.json"
        subprocess.run(
            [
                sys.executable,
                ROOT / "scripts" / "oracle" / "msr_to_graph.py",
                ROOT / "data" / "msr" / name,
                graph,
                machine,
            ],
            check=True,
        )
        return graph, machine

    def expect_error(self, text, graph=GRAPH, machine=MACHINE, options=(), name="graph.json"):
        done = self.run_tool(self.write(name, graph), self.write("machine.json", machine), *options)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("baechi-place: error:"), 1)
        self.assertEqual(done.stdout, "")

    def expect_success(self, *options, graph=GRAPH, machine=MACHINE):
        """What the tool prints."""
        done = self.run_on(*options, graph=graph, machine=machine)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def graph(self, **changes):
        """The graph with members of its first operator changed."""
        result = copy.deepcopy(GRAPH)
        result["ops"][0].update(changes)
        return result
