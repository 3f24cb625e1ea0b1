# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of steps in pieces."""

from __future__ import annotations

import json
import pathlib
import re

from baechi.compiling import compiler, stepgraph
from baechi.experiments import measured
from baechi.experiments.hardware import Machine
from baechi.experiments.inputs import Input


def cut_graph(
    made: Input,
    machine: Machine,
    way: str,
    cuts: list[str],
    graph: pathlib.Path,
    pinned: bool = False,
) -> float:
    """Writes the graph of a step that passes have cut for a machine. `pinned`: its replicas
    are on devices of their own. Returns the processor seconds of cutting it and of forming
    its kernels."""
    described, cut = graph.with_suffix(".machine.json"), graph.with_suffix(".cut.mlir")
    costs = graph.with_suffix(".mlir")
    described.write_text(json.dumps(machine.data))
    cut.write_text(on_machine(made.module.read_text(), machine))
    passes = [*cuts, *stepgraph.passes(machine.roofline)]
    if pinned:
        passes.append(compiler.step("baechi-pin-replicas", machine=described))
    formed = measured.checked(
        measured.tool(
            "baechi-opt", cut, f"--pass-pipeline={compiler.pipeline(passes)}",
            "--mlir-print-debuginfo", "-o", costs,
        ),
        way,
    )  # fmt: skip
    measured.checked(
        measured.tool("baechi-translate", costs, "--baechi-to-graph", "-o", graph), way
    )
    for file in (described, cut, costs):
        file.unlink()
    linked = json.loads(graph.read_text())
    stepgraph.link_backward(linked)
    graph.write_text(json.dumps(linked))
    return formed.cost.cpu_s


def on_machine(module: str, machine: Machine) -> str:
    """A module that says which machine it is for, as a compiler's modules do."""
    devices = ", ".join(
        f'<"{each["name"]}", kind = "{each["kind"]}", memory = {each["memory"]}>'
        for each in machine.data["devices"]
    )
    link = machine.data["link_default"]
    attribute = (
        f"#baechi.machine<devices = [{devices}], "
        f'link_default = <"" -> "", latency_ns = {link["latency_ns"]}, '
        f"bytes_per_us = {link['bytes_per_us']}>, link_model = {machine.data['link_model']}>"
    )
    text, count = re.subn(
        r"^module( @\w+)? \{",
        lambda found: f"module{found[1] or ''} attributes {{baechi.machine = {attribute}}} {{",
        module,
        count=1,
        flags=re.M,
    )
    assert count == 1, "an imported step is a module"
    return text
