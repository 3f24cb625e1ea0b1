# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From imported modules to graphs that `baechi.place` takes."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

from baechi import stepgraph, temporary, tools

if TYPE_CHECKING:
    from baechi.stages.lowered import Lowered


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

    Runs baechi-opt and baechi-translate; raises CompileError with what they say.
    """
    if not isinstance(module, str | os.PathLike):
        module = module.as_text()
    options = [] if profile is None else [f"profile={os.path.abspath(profile)}"]
    options += [] if roofline is None else [f"roofline={roofline}"]
    annotate = "--baechi-annotate-costs" + (f"={' '.join(options)}" if options else "")
    with temporary.folder("baechi-graph-") as name:
        folder = pathlib.Path(name)
        model, costs = folder / "model.mlir", folder / "costs.mlir"
        if isinstance(module, str) and "\n" in module:
            model.write_text(module)
        else:
            model = pathlib.Path(module)
        passes = ("--baechi-form-kernels", annotate, "--baechi-colocate")
        # Locations are names.
        tools.run("baechi-opt", model, *passes, "--mlir-print-debuginfo", "-o", costs)
        done = tools.run("baechi-translate", costs, "--baechi-to-graph")
    graph: dict[str, Any] = json.loads(done.stdout)
    stepgraph.link_backward(graph)
    return graph
