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

from baechi.compiling import compiler, tools
from baechi.graphs.native import _placement

# Costs where nothing better is known: the compiler's own figures of a host.
ASSUMED = "host:50:10:200"

# What names begin with that are no forward operators: arguments' first components, too.
_NOT_FORWARD = ("backward/", "update/", "params/", "optimizer/", "batch/", "key/")


@dataclasses.dataclass(frozen=True)
class Formed:
    """What became of a module: operators as they came, calls of kernels, distinct kernels."""

    before: int
    operators: int
    kernels: int


def passes(
    roofline: str | None, profile: str | os.PathLike[str] | None = None, report: bool = True
) -> list[str]:
    """What makes a graph of a module: kernels, their costs by a profile and a roofline
    (`KIND:GFLOPS:GBS:LAUNCH_NS`, with commas), and what belongs together.
    report: says what became of the operators (`counts`)."""
    return [
        compiler.step("baechi-form-kernels", report="true" if report else None),
        compiler.step(
            "baechi-annotate-costs",
            profile=None if profile is None else os.path.abspath(profile),
            roofline=roofline,
        ),
        "baechi-colocate",
    ]


def counts(said: str) -> Formed:
    """What the passes report on standard error."""
    found = re.search(r"(\d+) operators that move .* became (\d+) calls of (\d+) distinct", said)
    if found is None:
        raise tools.CompileError(f"baechi-opt said nothing of kernels:\n{said[-2000:]}")
    return Formed(*map(int, found.groups()))


def write_graph(module: pathlib.Path, graph: pathlib.Path, roofline: str = ASSUMED) -> Formed:
    """Writes the graph file of a module. Raises CompileError."""
    made = compiler.transform(module.read_text(), passes(roofline), "graph", str(module))
    graph.write_text(made.text)
    return counts(made.said)


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


def machine(spec: str | os.PathLike[str]) -> dict[str, Any]:
    """The machine of `host:N[@SIZE]` or of a machine file, as its file has it.
    Raises CompileError for what is neither."""
    try:
        found: dict[str, Any] = json.loads(_placement.machine_text(os.fspath(spec)))
    except _placement.PlacementError as error:
        raise tools.CompileError(f"error: {error}") from None
    return found
