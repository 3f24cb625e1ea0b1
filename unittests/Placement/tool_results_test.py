#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What baechi-place makes of a placement: timelines, graphs, explanations, comparisons.

tool_results_test.py PATH-OF-BAECHI-PLACE
"""

import json
import shutil
import subprocess
import unittest

from tool_case import GRAPH, MACHINE, ToolCase

#: Two branches worth a device each.
FORK = GRAPH | {
    "ops": [
        {"id": i, "name": n, "time_ns": t, "outputs": [10]}
        for i, (n, t) in enumerate(
            (("in/a", 10), ("left/b", 1000), ("right/c", 1000), ("out/d", 10))
        )
    ],
    "edges": [
        {"from": 0, "output": 0, "to": 1},
        {"from": 0, "output": 0, "to": 2},
        {"from": 1, "output": 0, "to": 3},
        {"from": 2, "output": 0, "to": 3},
    ],
}
EMPTY = GRAPH | {"ops": [], "edges": []}
ONE_DEVICE = MACHINE | {"devices": MACHINE["devices"][:1]}


class DrawingTest(ToolCase):
    def test_timeline(self):
        trace = self.path / "t.json"
        self.expect_success(f"--trace={trace}", graph=FORK)
        events = json.loads(trace.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        self.assertEqual(
            {e["name"] for e in spans if e["tid"] == 0}, {"in/a", "left/b", "right/c", "out/d"}
        )
        self.assertEqual(sum(e["ph"] == "s" for e in events), sum(e["ph"] == "f" for e in events))
        self.assertTrue(any(e["ph"] == "C" and e["args"]["bytes"] > 0 for e in events))

    def test_dot(self):
        graph = self.path / "g.dot"
        self.expect_success(f"--dot={graph}", graph=FORK)
        text = graph.read_text()
        self.assertIn("left/b", text)
        if shutil.which("dot"):
            done = subprocess.run(["dot", "-Tsvg", str(graph)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("left/b", done.stdout)

    def test_empty_graph_and_one_device(self):
        for graph, machine in ((EMPTY, MACHINE), (FORK, ONE_DEVICE)):
            trace, dot = self.path / "t.json", self.path / "g.dot"
            self.expect_success(f"--trace={trace}", f"--dot={dot}", graph=graph, machine=machine)
            events = json.loads(trace.read_text())["traceEvents"]
            self.assertEqual(sum(e["ph"] == "X" for e in events), len(graph["ops"]))
            self.assertIn("digraph", dot.read_text())

    def test_unwritable(self):
        for option in ("--trace", "--dot", "--html", "--json", "-o"):
            self.expect_error("there is no folder", options=[option, self.path / "no" / "file"])
            self.expect_error("it is a folder", options=[option, self.path])


class CompareTest(ToolCase):
    def test_table_and_json(self):
        report = self.path / "r.json"
        printed = self.expect_success("--compare", f"--json={report}", graph=FORK)
        data = json.loads(report.read_text())
        rows = {row["name"]: row for row in data["placers"]}
        for name, row in rows.items():
            (line,) = [x for x in printed.splitlines() if x.split()[0:1] == [name]]
            self.assertEqual("yes" in line, row["valid"])
            self.assertIn("speed_up" if row["valid"] else "problem", row)
        self.assertIn(data["best"], rows)
        self.assertEqual(rows["single"]["makespan_ns"], data["single_device_ns"])
        self.assertLessEqual(
            rows["default"]["makespan_ns"],
            min(r["makespan_ns"] for r in rows.values() if r["valid"]),
        )

    def test_some(self):
        printed = self.expect_success("--compare", "--placers=metf,default", graph=FORK)
        self.assertEqual(
            [x.split()[0] for x in printed.splitlines()[:3]], ["placer", "metf", "default"]
        )

    def test_nothing_fits(self):
        done = self.run_on("--compare", graph=self.graph(resident=101))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none of them found a valid placement", done.stderr)
        self.assertIn("no placement can fit the memories", done.stdout)

    def test_errors(self):
        self.expect_error("unknown placer 'best'", options=["--compare", "--placers=metf,best"])
        self.expect_error("--placers requires --compare", options=["--placers=metf"])
        self.expect_error("excludes --compare", options=["--compare", "-o", self.path / "p.json"])
        self.expect_error(
            "there is no folder", options=["--compare", "--json", self.path / "no" / "r.json"]
        )


class SweepTest(ToolCase):
    def test_table_and_json(self):
        report = self.path / "r.json"
        printed = self.expect_success(
            "--sweep",
            "--sweep-devices=1,2",
            "--sweep-links=1,2",
            "--sweep-memory=own,60%",
            f"--json={report}",
            graph=FORK,
        )
        data = json.loads(report.read_text())
        keys = [(p["devices"], p["link_speed"], p["memory_bytes"]) for p in data["points"]]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual({k[:2] for k in keys}, {(1, 1), (2, 1), (2, 2)})
        by_key = dict(zip(keys, data["points"]))
        self.assertEqual(by_key[1, 1, 100]["makespan_ns"], data["one_device_ns"])
        self.assertLess(by_key[2, 1, 100]["makespan_ns"], data["one_device_ns"])
        self.assertEqual([e["devices"] for e in data["least_memory"]], [1, 2])
        for entry in data["least_memory"]:
            self.assertGreaterEqual(entry["bytes"], entry["proven_bytes"])
        self.assertIn("the least memory a device must have", printed)
        self.assertEqual(
            sum(line.split()[2:3] in (["x1"], ["x2"]) for line in printed.splitlines()), len(keys)
        )

    def test_without_least_memory(self):
        printed = self.expect_success(
            "--sweep", "--sweep-devices=1", "--no-least-memory", graph=FORK
        )
        self.assertNotIn("least memory", printed)

    def test_one_device(self):
        self.expect_error("the machine has no link", options=["--sweep"], machine=ONE_DEVICE)
        self.expect_success("--sweep", "--sweep-devices=1", graph=FORK, machine=ONE_DEVICE)

    def test_empty_graph(self):
        self.expect_success("--sweep", graph=EMPTY)

    def test_errors(self):
        self.expect_error("unknown memory '8Gb'", options=["--sweep", "--sweep-memory=own,8Gb"])
        self.expect_error(
            "0 devices cannot be swept over", options=["--sweep", "--sweep-devices=0"]
        )
        self.expect_error("see --help", options=["--sweep", "--sweep-devices=two"])
        self.expect_error("-1 times as fast", options=["--sweep", "--sweep-links=-1"])
        self.expect_error("--sweep-devices requires --sweep", options=["--sweep-devices=1"])
        self.expect_error("excludes", options=["--sweep", "--compare"])


class ExplainTest(ToolCase):
    def test_text_and_json(self):
        report = self.path / "r.json"
        printed = self.expect_success("--explain=out/d", f"--json={report}", graph=FORK)
        self.assertIn("operator 3 'out/d' is on d", printed)
        self.assertIn("if moved", printed)
        (entry,) = json.loads(report.read_text())["explanations"]
        self.assertEqual((entry["pattern"], entry["matches"]), ("out/d", 1))
        devices = entry["operators"][0]["devices"]
        self.assertEqual([d["device"] for d in devices], ["d0", "d1"])
        self.assertTrue(all(d["excluded_by"] == "none" and d["makespan_ns"] > 0 for d in devices))

    def test_several(self):
        printed = self.expect_success("--explain=*/[bc]", "--explain=0", graph=FORK)
        self.assertIn("'*/[bc]': 2 operators", printed)
        self.assertEqual(printed.count("if all here"), 1)
        for name in ("left/b", "right/c", "in/a"):
            self.assertIn(f"'{name}' is on d", printed)

    def test_unknown(self):
        self.expect_error(
            "no operator is called 'left/bb': did you mean 'left/b'?",
            graph=FORK,
            options=["--explain=left/bb"],
        )
        self.expect_error("the graph is empty", graph=EMPTY, options=["--explain=x"])
        self.expect_error(
            "there is no operator 4: the graph has 4", graph=FORK, options=["--explain=4"]
        )

    def test_one_device(self):
        self.assertIn(
            "There is no other device.",
            self.expect_success("--explain=1", graph=FORK, machine=ONE_DEVICE),
        )


class GivenPlacementTest(ToolCase):
    def test_judged(self):
        placement = self.path / "p.json"
        # With a budget the exact search may prove a higher bound; without one no single device is
        # tried.
        for budget, lines in (
            ("auto", ("one device", "max load")),
            ("0", ("lower bound", "max load")),
        ):
            found = self.expect_success("-o", placement, f"--budget={budget}", graph=FORK)
            judged = self.expect_success(f"--placement={placement}", graph=FORK)
            for line in lines:
                expected = [x for x in found.splitlines() if x.startswith(line)]
                self.assertEqual(len(expected), 1)
                self.assertEqual([x for x in judged.splitlines() if x.startswith(line)], expected)

    def test_not_valid(self):
        placement = self.path / "p.json"
        self.expect_success("-o", placement, graph=FORK)
        data = json.loads(placement.read_text())
        data["makespan_ns"] += 1
        data["transfers"] = []
        self.write("p.json", data)
        self.expect_error("p.json is not valid:", graph=FORK, options=[f"--placement={placement}"])
        self.expect_error("never moved", graph=FORK, options=[f"--placement={placement}"])

    def test_of_another_graph(self):
        placement = self.path / "p.json"
        self.expect_success("-o", placement, graph=FORK)
        self.expect_error("the placement is of another graph", options=[f"--placement={placement}"])


if __name__ == "__main__":
    unittest.main()
