# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is traced of a training step, and what its graph takes and gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from baechi import init
from baechi.importer.common.errors import ImportFailure
from baechi.importer.common.module import Argument
from baechi.importer.torch.indices import Lookup
from baechi.importer.torch.trace import Trace
from baechi.torch.arrays import to_numpy
from baechi.torch.gradients import GradientOptions
from baechi.torch.left_behind import Journal
from baechi.torch.state import Cohort, State

LOSS = "loss"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What a step does besides calling the model; see `compile_step`."""

    loss: Callable[..., Any] | None
    outputs: Callable[[Any], Any] | None
    gradients: GradientOptions


@dataclasses.dataclass(frozen=True)
class Phase:
    """What one call does.

    used: the trained parameters that the loss depends on; others: those that it depends
    on and the optimizer does not have; accumulated: those whose `.grad` is added to;
    cohorts: those that are updated, none where gradients are only added up.
    """

    used: list[str]
    others: list[str]
    accumulated: list[str]
    cohorts: list[Cohort]

    def key(self) -> tuple:
        return tuple(self.accumulated), tuple((c.label, tuple(c.parameters)) for c in self.cohorts)


@dataclasses.dataclass
class TrainingTrace:
    """A traced step; `arguments` are those of its module, in order.

    told: the positions of results by name (`loss`, `overflow`, `gradient_norm`,
    `flags`). outputs: what is returned beside the loss, with an index for each leaf that
    the program computes.
    """

    graph: torch.fx.GraphModule
    arguments: list[Argument]
    results: list[str]
    held: dict[str, int]  # the positions of the state
    inputs: list[int]  # of the inputs' tensors
    numbers: dict[tuple[str, str], int]  # of the host's, by cohort and name
    constants: dict[int, torch.Tensor]
    draws: dict[int, Callable[[], torch.Tensor]]  # random numbers, anew for every step
    tables: dict[int, list[Lookup]]  # of arguments that are indices: see Trace
    checks: list[Lookup]
    told: dict[str, int]
    outputs: Outputs | None
    dtypes: dict[int, torch.dtype]  # of the results
    journal: Journal  # of the model and the loss


@dataclasses.dataclass
class Outputs:
    """What is returned beside the loss: a leaf is a value, or where a tensor is found."""

    leaves: list[Any]
    structure: Any
    count: int  # of tensors

    @dataclasses.dataclass(frozen=True)
    class Result:
        """The program's result at this position."""

        index: int

    @dataclasses.dataclass(frozen=True)
    class Given:
        """An argument of the program, which is what it was."""

        index: int


class Described:
    """The arguments and results of a trace. What a step leaves alone (the buffers of
    most models) is no result."""

    def __init__(
        self,
        traced: Trace,
        flat: Sequence[torch.Tensor],
        told: list[str],
        updated: list[str],
        state: State,
    ):
        self._traced, self._flat = traced, flat
        self._told, self._updated = told, updated
        self._trained = set(state.trained)
        self._fixed = set(state.parameters) - self._trained

    def trace(
        self,
        first: int,
        inputs: int,
        numbers: list[tuple[str, str]],
        outputs: Outputs | None,
        journal: Journal,
    ) -> TrainingTrace:
        """first: of the inputs among the arguments. outputs, journal: of the run."""
        traced, flat = self._traced, self._flat
        graph = traced.graph.graph
        placeholders = {node: i for i, node in enumerate(traced.placeholders)}
        results: list[str] = []
        nodes: list[torch.fx.Node] = []
        found: dict[str, int] = {}  # positions of what is told
        given: dict[str, int] = {}
        own = traced.outputs
        pairs = list(zip([*self._told, *self._updated], own, strict=True))
        pairs += zip(["flags"], traced.flags)
        for i, (name, node) in enumerate(pairs):
            if node in placeholders:
                given[name] = placeholders[node]
                continue
            if i < len(self._told) or name == "flags":
                found[name] = len(results)
            results.append(name)
            nodes.append(node)
        self._add_changed(results, nodes)
        graph.output_node().args = (tuple(nodes),)
        graph.eliminate_dead_code()
        traced.graph.recompile()
        with torch.random.fork_rng(devices=[]):  # examples, which the program's numbers do not see
            values = [*flat, *traced.constants, *(draw() for draw in traced.draws)]
        told = set(self._told) | {"flags"}
        new = {n: i for i, n in enumerate(results) if n not in told}
        arguments = [
            Argument(name, init.from_example(to_numpy(value), seed=i + 1), new.get(name))
            for i, (name, value) in enumerate(zip(traced.names, values, strict=True))
        ]
        drawn = len(flat) + len(traced.constants)
        if outputs is not None:
            outputs = dataclasses.replace(outputs, leaves=_placed(outputs.leaves, found, given))
        held = {name: i for i, name in enumerate(traced.names[:first])}
        return TrainingTrace(
            traced.graph,
            arguments,
            results,
            held=held,
            inputs=list(range(first, first + inputs)),
            numbers={key: first + inputs + i for i, key in enumerate(numbers)},
            constants={len(flat) + i: value for i, value in enumerate(traced.constants)},
            draws={drawn + i: draw for i, draw in enumerate(traced.draws)},
            tables=traced.tables(),
            checks=traced.checks,
            told=found,
            outputs=outputs,
            dtypes={i: node.meta["val"].dtype for i, node in enumerate(nodes)},
            journal=journal,
        )

    def _add_changed(self, results: list[str], nodes: list[torch.fx.Node]) -> None:
        """Makes results of what is changed in place beside the buffers: tensors outside of the
        model (the statistics of a critic in the loss), parameters that are not trained (an
        averaged network)."""
        traced = self._traced
        placeholders = {node: i for i, node in enumerate(traced.placeholders)}
        for node in list(traced.graph.graph.nodes):
            if node.target is not torch.ops.aten.copy_.default or node.args[0] not in placeholders:
                continue
            name = traced.names[placeholders[node.args[0]]]
            if name in self._trained:
                raise ImportFailure(
                    f"the model or the loss changes '{name}' in place, which the step updates: "
                    "change it before or after the step, which reads the newest"
                )
            if not (name.startswith("constant/") or name in self._fixed):
                raise ImportFailure(
                    f"the model or the loss changes '{name}' in place: change a copy (.clone())"
                )
            results.append(name)
            nodes.append(node.args[1])
            node.replace_all_uses_with(node.args[1])
            traced.graph.graph.erase_node(node)


def _placed(leaves: list[Any], found: dict[str, int], given: dict[str, int]) -> list[Any]:
    def placed(leaf):
        if not isinstance(leaf, Outputs.Result):
            return leaf
        name = f"output/{leaf.index}"
        return Outputs.Result(found[name]) if name in found else Outputs.Given(given[name])

    return [placed(leaf) for leaf in leaves]
