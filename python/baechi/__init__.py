# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Baechi's Python side: `baechi.jit`, `baechi.place`, importing training steps, the model
collection."""

import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baechi.checking.options import CheckError as CheckError
    from baechi.compiling.modules import graph_of as graph_of
    from baechi.compiling.nodes import NodesPlan as NodesPlan
    from baechi.compiling.nodes import plan_nodes as plan_nodes
    from baechi.compiling.tools import CompileError as CompileError
    from baechi.graphs.evaluator import Evaluation as Evaluation
    from baechi.graphs.evaluator import Evaluations as Evaluations
    from baechi.graphs.evaluator import Evaluator as Evaluator
    from baechi.graphs.evaluator import evaluate as evaluate
    from baechi.graphs.hlo_text import ProfileError as ProfileError
    from baechi.graphs.native import PlacementError as PlacementError
    from baechi.graphs.placement import Placement as Placement
    from baechi.graphs.placing import Comparison as Comparison
    from baechi.graphs.placing import compare as compare
    from baechi.graphs.placing import judge as judge
    from baechi.graphs.placing import place as place
    from baechi.graphs.placing import placers as placers
    from baechi.graphs.problem import Device as Device
    from baechi.graphs.problem import Graph as Graph
    from baechi.graphs.problem import Link as Link
    from baechi.graphs.problem import Machine as Machine
    from baechi.graphs.problem import Operator as Operator
    from baechi.graphs.problem import Output as Output
    from baechi.graphs.xla import graph_of_xla as graph_of_xla
    from baechi.jax.jit import jit as jit
    from baechi.jax.lowered import load_step as load_step
    from baechi.jax.shardings import Collective as Collective
    from baechi.jax.shardings import Shardings as Shardings
    from baechi.jax.shardings import shardings as shardings
    from baechi.jax.stale import stale_step as stale_step
    from baechi.loops.entries import Entries as Entries
    from baechi.loops.errors import LoopError as LoopError
    from baechi.loops.foreach import foreach as foreach
    from baechi.pictures.plots import plot_memory as plot_memory
    from baechi.pictures.plots import plot_timeline as plot_timeline
    from baechi.replicas.store import ParameterStore as ParameterStore
    from baechi.steps.library_file import StepError as StepError


def _builds() -> list[str]:
    """Where builds of a checkout leave the extension module; in an installed package it
    lies beside this file. baechi.compiling.tools looks for programs in the same builds."""
    builds = [pathlib.Path(__file__).resolve().parents[2] / "build" / "release"]
    if tools := os.environ.get("BAECHI_TOOLS"):
        builds.insert(0, pathlib.Path(tools).absolute().parent)
    return [str(folder) for build in builds if (folder := build / "lib" / "python").is_dir()]


__path__ = [*__path__, *_builds()]

# By module; each is loaded when it is first asked for: what needs JAX, the extension or
# numpy does not keep the others from working.
_PUBLIC = {
    "baechi.jax.jit": ["jit"],
    "baechi.steps.library_file": ["StepError"],
    "baechi.jax.lowered": ["load_step"],
    "baechi.jax.shardings": ["Collective", "Shardings", "shardings"],
    "baechi.loops.foreach": ["foreach"],
    "baechi.loops.entries": ["Entries"],
    "baechi.loops.errors": ["LoopError"],
    "baechi.compiling.tools": ["CompileError"],
    "baechi.checking.options": ["CheckError"],
    "baechi.graphs.placing": ["Comparison", "compare", "judge", "place", "placers"],
    "baechi.graphs.placement": ["Placement"],
    "baechi.compiling.modules": ["graph_of"],
    "baechi.compiling.nodes": ["NodesPlan", "plan_nodes"],
    "baechi.graphs.native": ["PlacementError"],
    "baechi.graphs.hlo_text": ["ProfileError"],
    "baechi.graphs.xla": ["graph_of_xla"],
    "baechi.pictures.plots": ["plot_memory", "plot_timeline"],
    "baechi.replicas.store": ["ParameterStore"],
    "baechi.jax.stale": ["stale_step"],
    "baechi.graphs.evaluator": ["Evaluation", "Evaluations", "Evaluator", "evaluate"],
    "baechi.graphs.problem": ["Device", "Graph", "Link", "Machine", "Operator", "Output"],
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}

# What another package must be there for, and how it comes with this one.
_NEEDS = {
    name: ("jax", "import")
    for name in (
        *("jit", "load_step", "shardings", "Shardings", "Collective", "stale_step"),
        *("foreach", "Entries", "LoopError", "graph_of_xla"),
    )
}


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


__all__ = sorted(n for n in _MODULES if n not in _NEEDS or _is_there(_NEEDS[n][0]))


def _version() -> str:
    try:
        return importlib.metadata.version("baechi")
    except importlib.metadata.PackageNotFoundError:  # a checkout on the path
        project = pathlib.Path(__file__).resolve().parents[2] / "pyproject.toml"
        return str(tomllib.loads(project.read_text())["project"]["version"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _MODULES:
        raise AttributeError(f"module 'baechi' has no attribute '{name}'")
    if name in _NEEDS and not _is_there(_NEEDS[name][0]):
        package, extra = _NEEDS[name]
        raise ModuleNotFoundError(
            f"baechi.{name} needs the package '{package}': install it with baechi's extra "
            f"'{extra}', in a checkout by pip install '.[{extra}]'",
            name=package,
        )
    try:
        module = importlib.import_module(_MODULES[name])
    except ImportError as error:
        # What JAX keeps to itself moves from version to version.
        if "jax._src" not in str(error):
            raise
        raise ImportError(
            f"baechi.{name} cannot use JAX {importlib.metadata.version('jax')}: it needs a "
            "version that baechi's extra 'import' names, in a checkout by pip install '.[import]'",
            name="jax",
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", *(n for n in globals() if n.startswith("__"))])
