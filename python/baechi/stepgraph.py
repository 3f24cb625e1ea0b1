# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An imported module as the files that `baechi-place` takes (docs/formats.md)."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
from typing import Any

from baechi import temporary, tools

# Costs where nothing better is known: the compiler's own figures of a host.
ASSUMED = "host:50:10:200"

# What names begin with that are no forward operators: arguments' first components, too.
_NOT_FORWARD = ("backward/", "update/", "params/", "optimizer/", "batch/", "key/")

# The smallest step that has a machine.
_NOTHING = """func.func @step(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = math.exp %x {baechi.cost = #baechi.cost<time_ns = {host = 1, cuda = 1}, scratch = 0>}
    : tensor<1xf32>
  return %0 : tensor<1xf32>
}
"""


@dataclasses.dataclass(frozen=True)
class Formed:
    """What became of a module: operators as they came, calls of kernels, distinct kernels."""

    before: int
    operators: int
    kernels: int


def passes(roofline: str) -> list[str]:
    """What `baechi-opt` does to a module: kernels, their costs by a roofline
    (`KIND:GFLOPS:GBS:LAUNCH_NS`, with commas), and what belongs together."""
    return [
        "--baechi-form-kernels=report=true",
        f"--baechi-annotate-costs=roofline={roofline}",
        "--baechi-colocate",
        "--mlir-print-debuginfo",
    ]


def counts(said: str) -> Formed:
    """What the passes report on standard error."""
    found = re.search(r"(\d+) operators that move .* became (\d+) calls of (\d+) distinct", said)
    if found is None:
        raise tools.CompileError(f"baechi-opt said nothing of kernels:\n{said[-2000:]}")
    return Formed(*map(int, found.groups()))


def write_graph(module: pathlib.Path, graph: pathlib.Path, roofline: str = ASSUMED) -> Formed:
    """Writes the graph file of a module. Raises CompileError."""
    costs = graph.with_suffix(".costs.mlir")
    done = tools.run("baechi-opt", module, *passes(roofline), "-o", costs)
    tools.run("baechi-translate", costs, "--baechi-to-graph", "-o", graph)
    costs.unlink()
    return counts(done.stderr)


def link_backward(graph: dict[str, Any]) -> None:
    """Says of each operator of the backward pass, whose names begin with `backward/`, which
    forward operator it belongs to: the last one of its scope, or of the nearest scope around
    that has one. Grouping by `forward` goes by it (docs/placement.md)."""
    last: dict[str, int] = {}
    for op in graph["ops"]:
        scope, _, own = op["name"].rpartition("/")
        if own and not op["name"].startswith(_NOT_FORWARD):
            last[scope] = op["id"]
    for op in graph["ops"]:
        if not op["name"].startswith("backward/"):
            continue
        op["backward"] = True
        scope = op["name"].removeprefix("backward/")
        while "/" in scope:
            scope = scope.rpartition("/")[0]
            if scope in last:
                op["forward"] = last[scope]
                break


def check_machine(spec: str) -> None:
    """Raises CompileError for what is neither `host:N[@SIZE]` nor a machine file."""
    with temporary.folder("baechi-machine-") as folder:
        module = pathlib.Path(folder) / "nothing.mlir"
        module.write_text(_NOTHING)
        fuse = f"--baechi-fuse=machine={spec}"
        tools.run("baechi-opt", module, fuse, "-o", module.with_suffix(".out"), hidden=module)


def write_machine(spec: str, file: pathlib.Path) -> dict[str, Any]:
    """Writes the machine file of `host:N[@SIZE]`, or copies a machine file;
    returns it as data. Raises CompileError."""
    if os.path.exists(spec):
        file.write_bytes(pathlib.Path(spec).read_bytes())
    else:
        module, with_machine = file.with_suffix(".mlir"), file.with_suffix(".machine.mlir")
        module.write_text(_NOTHING)
        fuse = f"--baechi-fuse=machine={spec}"
        tools.run("baechi-opt", module, fuse, "-o", with_machine, hidden=module)
        tools.run("baechi-translate", with_machine, "--baechi-to-machine", "-o", file)
        module.unlink()
        with_machine.unlink()
    return json.loads(file.read_text())
