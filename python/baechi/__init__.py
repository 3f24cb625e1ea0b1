# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Baechi's Python side: `baechi.jit`, `baechi.place`, importing training steps, the model
collection."""

import importlib
import os
import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baechi.checking.options import CheckError as CheckError
    from baechi.evaluator import Evaluation as Evaluation
    from baechi.evaluator import Evaluations as Evaluations
    from baechi.evaluator import Evaluator as Evaluator
    from baechi.evaluator import evaluate as evaluate
    from baechi.jitted import jit as jit
    from baechi.modules import graph_of as graph_of
    from baechi.native import PlacementError as PlacementError
    from baechi.placement import Placement as Placement
    from baechi.placing import Comparison as Comparison
    from baechi.placing import compare as compare
    from baechi.placing import judge as judge
    from baechi.placing import place as place
    from baechi.placing import placers as placers
    from baechi.plots import plot_memory as plot_memory
    from baechi.plots import plot_timeline as plot_timeline
    from baechi.problem import Device as Device
    from baechi.problem import Graph as Graph
    from baechi.problem import Link as Link
    from baechi.problem import Machine as Machine
    from baechi.problem import Operator as Operator
    from baechi.problem import Output as Output


def _builds() -> list[str]:
    """Where builds of a checkout leave the extension module; in an installed package it
    lies beside this file. baechi.tools looks for programs in the same builds."""
    builds = [pathlib.Path(__file__).resolve().parents[2] / "build" / "release"]
    if tools := os.environ.get("BAECHI_TOOLS"):
        builds.insert(0, pathlib.Path(tools).absolute().parent)
    return [str(folder) for build in builds if (folder := build / "lib" / "python").is_dir()]


__path__ = [*__path__, *_builds()]

# By module; each is loaded when it is first asked for: what needs JAX, the extension or
# numpy does not keep the others from working.
_PUBLIC = {
    "baechi.jitted": ["jit"],
    "baechi.checking.options": ["CheckError"],
    "baechi.placing": ["Comparison", "compare", "judge", "place", "placers"],
    "baechi.placement": ["Placement"],
    "baechi.modules": ["graph_of"],
    "baechi.native": ["PlacementError"],
    "baechi.plots": ["plot_memory", "plot_timeline"],
    "baechi.evaluator": ["Evaluation", "Evaluations", "Evaluator", "evaluate"],
    "baechi.problem": ["Device", "Graph", "Link", "Machine", "Operator", "Output"],
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'baechi' has no attribute '{name}'")
