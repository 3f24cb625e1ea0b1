# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From imported modules to graphs that `baechi.place` takes."""

from __future__ import annotations

import json
import os
from typing import Any, Protocol

from baechi.compiling import compiler, stepgraph, tools
from baechi.graphs.native import _placement


class Lowered(Protocol):
    """`step.lower(...)` of `baechi.jit`."""

    def as_text(self) -> str: ...


def graph_of(
    module: str | os.PathLike[str] | Lowered,
    *,
    profile: str | os.PathLike[str] | None = None,
    roofline: str | None = None,
) -> dict[str, Any]:
    """The graph of a step in MLIR, as its file has it (docs/formats.md): an operator for
    each kernel, its nanoseconds by kind of device, bytes, the groups of what an update in
    place keeps together, and the forward operators of the backward pass.

    module: the text, a file's path, or `step.lower(...)` of `baechi.jit`.
    profile: a file of measured kernels (docs/profile-format.md); what it lacks, and
        everything without one, gets the time of a roofline.
    roofline: `KIND:GFLOPS:GBS:LAUNCH_NS`, with commas: other devices than the built-in
        `host` and `cuda`; gigaflops and gigabytes a second, ns a launch.

    Raises CompileError with what the compiler says.
    """
    text, name = source_of(module)
    passes = stepgraph.passes(roofline, profile, report=False)
    graph: dict[str, Any] = json.loads(compiler.transform(text, passes, "graph", name).text)
    stepgraph.link_backward(graph)
    return graph


def source_of(module: str | os.PathLike[str] | Lowered) -> tuple[str, str]:
    """The text of a module, and what messages call it."""
    if not isinstance(module, str | os.PathLike):
        return module.as_text(), "model.mlir"
    if isinstance(module, str) and "\n" in module:
        return module, "model.mlir"
    return _read(os.fspath(module)), os.fspath(module)


def _read(path: str) -> str:
    try:
        return _placement.read_file(path)
    except _placement.PlacementError as error:
        raise tools.CompileError(f"error: {error}") from None
