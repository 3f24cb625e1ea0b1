# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operation of a traced graph is the first whose values are not PyTorch's."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from baechi import init
from baechi.checking import halving
from baechi.checking.compare import Difference, Suspect, first_difference
from baechi.checking.options import CheckOptions
from baechi.common import temporary
from baechi.compiling.options import CompileOptions
from baechi.compiling.tools import CompileError
from baechi.importer.common.errors import ImportFailure
from baechi.importer.common.module import Argument
from baechi.importer.torch import linalg
from baechi.importer.torch.names import name_of, origin_of
from baechi.steps.library_file import StepError
from baechi.steps.program import Program
from baechi.torch import modes
from baechi.torch.arrays import to_numpy
from baechi.torch.eager import disturbed
from baechi.torch.short_types import shortened

_DRAWS = 2
_REFUSALS = (CompileError, ImportFailure, StepError)


@dataclasses.dataclass
class Parts:
    """A graph of ATen operations without mutations, with values for its arguments.

    names: of the arguments. placement: of the operators that have one, as a file.
    """

    graph: torch.fx.GraphModule
    names: Sequence[str]
    given: Sequence[torch.Tensor]
    checks: CheckOptions
    options: CompileOptions
    placement: str

    def results(self) -> list[np.ndarray]:
        """The graph's results, computed by PyTorch one operation after the other."""
        (nodes,) = self.graph.graph.output_node().args
        return self._computed(self.graph, list(nodes), self.given)

    def first_wrong(self) -> Suspect | None:
        """The operation up to which the graph must be compiled to give other values than
        PyTorch, while up to the one before it gives the same. None: there is none."""
        calls = [node for node in self.graph.graph.nodes if node.op == "call_function"]
        cuts = [k for k in range(1, len(calls) + 1) if _can_return(self._live(calls, k))]
        found = halving.first_wrong(len(calls), cuts, lambda n: self._judge(calls, n), _REFUSALS)
        if found is None:
            return None
        last = calls[found.last]
        name, source = name_of(last), origin_of(last).source
        return Suspect(name, str(last.target), source, found.difference.text, found.others)

    def _live(self, calls: Sequence[torch.fx.Node], count: int) -> list[torch.fx.Node]:
        """What the first so many operations make for the others, or for the graph's user."""
        made = set(calls[:count])
        later = [used for node in calls[count:] for used in node.all_input_nodes]
        later += self.graph.graph.output_node().all_input_nodes
        return [node for node in dict.fromkeys(later) if node in made]

    def _judge(self, calls: Sequence[torch.fx.Node], count: int) -> Difference | None:
        live = self._live(calls, count)
        theirs = self._computed(self.graph, live, self.given)

        def others() -> list[list[np.ndarray]]:
            draws = [np.random.default_rng(seed) for seed in range(_DRAWS)]
            changed = [[disturbed(x, draw) for x in self.given] for draw in draws]
            return [self._computed(self.graph, live, given) for given in changed]

        def rounded() -> list[Sequence[np.ndarray]]:
            return shortened(lambda: self._computed(self.graph, live, self.given))

        ours = self._compiled(live)
        return first_difference(ours, theirs, self.checks, "PyTorch", others, rounded)

    def _computed(
        self,
        graph: torch.fx.GraphModule,
        nodes: Sequence[torch.fx.Node],
        given: Sequence[torch.Tensor],
    ) -> list[np.ndarray]:
        keeper = _Keeper(graph, set(nodes))
        with torch.no_grad(), modes.autocast(None):
            keeper.run(*(tensor.clone() for tensor in given))
        return [to_numpy(keeper.kept[node]).copy() for node in nodes]

    def _compiled(self, live: Sequence[torch.fx.Node]) -> list[np.ndarray]:
        """The nodes' values by a program that has them as its results."""
        part = copy.deepcopy(self.graph)
        same = dict(zip(self.graph.graph.nodes, part.graph.nodes, strict=True))
        part.graph.output_node().args = (tuple(same[node] for node in live),)
        part.graph.eliminate_dead_code()
        part.recompile()
        arguments = [
            Argument(name, init.from_example(to_numpy(value), seed=i + 1), None)
            for i, (name, value) in enumerate(zip(self.names, self.given, strict=True))
        ]
        results = [f"result{i}" for i in range(len(live))]
        text = linalg.lower(part, "part", arguments, results)[0]
        program = self._program(text)
        for i, value in enumerate(self.given):
            program.library.set_argument(i, to_numpy(value))
        program.step()
        return [program.library.result(i) for i in range(len(live))]

    def _program(self, text: str) -> Program:
        """Where the whole program's operators are, if it has any by name."""
        options = dataclasses.replace(
            self.options, pin=None, placement=None, budget="0", replan="never"
        )
        with temporary.folder("baechi-jit-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the placement is of more than the part
            file = pathlib.Path(folder) / "placement.json"
            file.write_text(self.placement)
            try:
                return Program(text, dataclasses.replace(options, placement=file))
            except CompileError:
                return Program(text, options)


class _Keeper(torch.fx.Interpreter):
    """Runs a graph and keeps some nodes' values."""

    def __init__(self, module: torch.fx.GraphModule, wanted: set[torch.fx.Node]):
        super().__init__(module)
        self._wanted = wanted
        self.kept: dict[torch.fx.Node, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if n in self._wanted:
            self.kept[n] = value
        return value


def _can_return(nodes: Sequence[torch.fx.Node]) -> bool:
    values = [node.meta.get("val") for node in nodes]
    return all(isinstance(x, torch.Tensor) and not x.is_complex() for x in values)
