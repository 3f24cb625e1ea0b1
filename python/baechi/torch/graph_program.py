# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of ATen operations, forward or backward, as a program on the devices."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Sequence
from typing import Any

import torch

from baechi import init
from baechi.checking.compare import Suspect
from baechi.checking.options import CheckOptions
from baechi.common import progress
from baechi.importer.common.module import Argument
from baechi.importer.torch import linalg, passes
from baechi.importer.torch.names import BACKWARD, Origin, Recorder, name_of
from baechi.importer.torch.trace import Trace, trace
from baechi.steps.program import CompileOptions, Program
from baechi.torch import modes
from baechi.torch.arrays import (
    Stamp,
    as_argument,
    check_flags,
    check_indices,
    room,
    to_numpy,
    to_torch,
)
from baechi.torch.bisect import Parts
from baechi.torch.gpu import begin_step, refuse_hosts, tell_of_draws
from baechi.torch.graph_check import Reference, compare, with_own_memory
from baechi.torch.turns import CompiledOfTorch

# The name of all: torch.compile does not tell whose they are.
_GRAPH = "graph"
_CPU = torch.device("cpu")


class GraphProgram(CompiledOfTorch[Program]):
    """Runs a graph without mutations, as AOTAutograd makes it: for one set of shapes.

    It is traced at once, which raises ImportFailure, and compiled when it is first called,
    with values as examples.
    """

    def __init__(
        self,
        module: torch.fx.GraphModule,
        names: Sequence[str],
        options: CompileOptions,
        siblings: list[GraphProgram],
        checks: CheckOptions,
        held: frozenset[int] = frozenset(),
        backward: bool = False,
        home: torch.device = _CPU,
    ):
        """names: of the inputs, which are at home. siblings: the programs that share the options'
        pins; this one is added. held: inputs that are moved only when they are other tensors, or
        their version counter shows a change."""
        super().__init__()
        self._options, self._held, self._siblings = options, held, siblings
        self._checks, self._calls, self._module = checks, 0, module
        self._backward, self._home = backward, home
        siblings.append(self)
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        (results,) = module.graph.output_node().args
        self._results = [_Result(node, inputs) for node in results]
        recorder = Recorder(None)
        interpreter = _Named(module, recorder, backward)

        def function(*values: torch.Tensor) -> list[torch.Tensor]:
            return [x for x in interpreter.run(*values) if isinstance(x, torch.Tensor)]

        # A backward pass is traced when it is first run.
        with self._compiling(), torch.no_grad(), progress.shown(options.verbose, _GRAPH):
            progress.phase("import")
            examples = [_like(node.meta["val"]) for node in inputs]
            self._traced = trace(function, examples, names, recorder)
        self._tables = self._traced.tables()
        places = {node: i for i, node in enumerate(self._traced.placeholders)}
        outputs = iter(self._traced.outputs)
        for result in self._results:
            if result.is_tensor:
                result.node = next(outputs)
                result.argument = places.get(result.node)
        found = [r.node for r in self._results if r.is_tensor and r.argument is None]
        self._flags = self._traced.flags
        found += self._flags
        self._computed = {node: i for i, node in enumerate(dict.fromkeys(found))}
        if not self._computed:
            passes.drop()
        self._stamps: dict[int, Stamp] = {}

    def run(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The graph's results. What an input is without being computed is the input
        itself; all else has memory of its own, laid out as PyTorch's."""
        for index, lookups in self._tables.items():
            if index < len(inputs):  # else a constant
                check_indices(self._traced.names[index], inputs[index], lookups)
        with self._whole_call(self.is_compiled):
            reference = None
            if self._checks.is_due(self._calls):
                reference = Reference(self._by_pytorch, with_own_memory(inputs))
            drawn = [draw() for draw in self._traced.draws]
            given = [*inputs, *self._traced.constants, *drawn]
            computed: list[torch.Tensor] = []
            if self._computed:
                computed = self._step(given, len(inputs))
            results = [result.value(given, computed, self._computed) for result in self._results]
            if reference is not None:
                self._compare(reference, given, results)
            self._calls += 1
            return results

    def is_compiled(self) -> bool:
        """Whether it can run as it is: it needs no program, or has one that stays."""
        return not self._computed or (self._latest is not None and not self._latest.is_measured())

    def stand_ins(self) -> list[Any]:
        """What the graph's results look like, on the CPU."""
        return [result.stand_in() for result in self._results]

    def _by_pytorch(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The graph as it was before it was traced for the compiler."""
        with modes.autocast(None):  # its casts are in it
            found = torch.fx.Interpreter(self._module).run(*values)
        return [x for x in found if isinstance(x, torch.Tensor)]

    def _compare(
        self, reference: Reference, given: Sequence[torch.Tensor], results: Sequence[Any]
    ) -> None:
        def blame() -> Suspect | None:
            if self._latest is None:
                return None
            names, placement = self._traced.names, self._latest.placement_file()
            graph = self._traced.graph
            parts = Parts(graph, names, given, self._checks, self._options, placement)
            return parts.first_wrong()

        (nodes,) = self._module.graph.output_node().args
        what = "backward" if self._backward else "forward"
        names = [
            f"{what}/{node}"
            for node, result in zip(nodes, self._results, strict=True)
            if result.is_tensor
        ]
        ours = [x for x in results if isinstance(x, torch.Tensor)]
        compare(names, ours, reference, self._checks, blame)

    def _step(self, given: Sequence[torch.Tensor], inputs: int) -> list[torch.Tensor]:
        if self._latest is None or self._latest.is_measured():
            with progress.shown(self._options.verbose, _GRAPH):
                program = self._latest.replanned(_GRAPH) if self._latest else self._compiled(given)
            refuse_hosts(self._home, program.library.program["devices"])
            self._latest = program
            self._stamps.clear()
            for i in range(inputs, len(given) - len(self._traced.draws)):
                self._latest.library.set_argument(i, to_numpy(given[i]))
        news: dict[int, torch.Tensor] = {}
        stamps: dict[int, Stamp] = {}
        for i, value in enumerate(given):
            if inputs <= i < len(given) - len(self._traced.draws):
                continue  # a constant
            if i in self._held:
                if i in self._stamps and self._stamps[i].fits(value):
                    continue
                # Where the call fails, it may not have been taken.
                self._stamps.pop(i, None)
                stamps[i] = Stamp(value)
            news[i] = value
        computed = self._computed_from(self._latest, news)
        self._stamps |= stamps
        for node in self._flags:
            check_flags(computed[self._computed[node]].tolist(), self._traced.checks)
        return computed

    def _compiled(self, given: Sequence[torch.Tensor]) -> Program:
        progress.phase("import")
        if self._traced.draws and self._home.type == "cuda":
            tell_of_draws(self._home)
        text = _text(self._traced, given, list(self._computed))
        return Program(text, dataclasses.replace(self._options, pin=self._pins()))

    def _computed_from(self, program: Program, news: dict[int, torch.Tensor]) -> list[torch.Tensor]:
        """One step with new values of arguments. What lies on a GPU, and is at home there, is
        copied as a part of it."""
        library = program.library
        kinds = {i: node.meta["val"].dtype for node, i in self._computed.items()}
        found = {i: room(library, i, kind, self._home) for i, kind in kinds.items()}
        made = {i: tensor for i, tensor in found.items() if tensor is not None}
        if self._home.type == "cuda":
            given = {i: as_argument(x, library, i) for i, x in news.items()}
            begin_step(program, self._home, given, made)
        else:
            # Those that are held stay for the calls that follow.
            lent = news.keys() - self._held
            program.step({i: to_numpy(x) for i, x in news.items()}, lent=lent)
        return [
            made[i] if i in made else to_torch(library.result(i), kind).to(self._home)
            for i, kind in kinds.items()
        ]

    def _pins(self) -> dict[str, str]:
        """Those that are for this program, and those for none, which it refuses."""
        return {
            pattern: device
            for pattern, device in (self._options.pin or {}).items()
            if self._has(pattern) or not any(other._has(pattern) for other in self._siblings)
        }

    def _has(self, pattern: str) -> bool:
        calls = (node for node in self._traced.graph.graph.nodes if node.op == "call_function")
        names = [*self._traced.names, *map(name_of, calls)]
        return any(fnmatch.fnmatchcase(name, pattern) for name in names)


class _Result:
    """What a graph gives at one place."""

    node: torch.fx.Node  # in the trace
    argument: int | None  # the argument of the trace that it is, by position

    def __init__(self, node: Any, inputs: Sequence[torch.fx.Node]):
        value = node.meta["val"] if isinstance(node, torch.fx.Node) else node
        self.is_tensor = isinstance(value, torch.Tensor)
        self._itself = node in inputs
        self._value = value

    def stand_in(self) -> Any:
        return _like(self._value) if self.is_tensor else self._value

    def value(
        self,
        given: Sequence[torch.Tensor],
        computed: Sequence[torch.Tensor],
        places: dict[torch.fx.Node, int],
    ) -> Any:
        if not self.is_tensor:
            return self._value
        if self.argument is None:
            found = computed[places[self.node]]
        elif self._itself:
            return given[self.argument]
        else:
            found = given[self.argument].clone()
        if found.stride() == self._value.stride():
            return found
        return _with_strides(found, self._value.stride())


def _with_strides(found: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The same elements in another order in memory; what is repeated there is written once."""
    once = found
    for dimension, stride in enumerate(strides):
        if stride == 0 and found.shape[dimension] > 1:
            once = once.narrow(dimension, 0, 1)
    made = torch.empty_strided(once.shape, strides, dtype=found.dtype, device=found.device).copy_(
        once
    )
    return made.expand(found.shape)


def _text(traced: Trace, given: Sequence[torch.Tensor], results: list[torch.fx.Node]) -> str:
    arguments = [
        Argument(name, init.from_example(to_numpy(value), seed=i + 1), None)
        for i, (name, value) in enumerate(zip(traced.names, given, strict=True))
    ]
    traced.graph.graph.output_node().args = (tuple(results),)
    traced.graph.recompile()
    names = [f"result{i}" for i in range(len(results))]
    return linalg.lower(traced.graph, _GRAPH, arguments, names)[0]


def _like(fake: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype)


class _Named(torch.fx.Interpreter):
    """Runs a graph; what is traced has the module and line of its node."""

    def __init__(self, module: torch.fx.GraphModule, recorder: Recorder, backward: bool):
        super().__init__(module)
        self._recorder, self._backward = recorder, backward

    def run_node(self, n: torch.fx.Node) -> Any:
        with self._recorder.known(origin_in_user_code(n, self._backward)):
            return super().run_node(n)


def origin_in_user_code(node: torch.fx.Node, backward: bool) -> Origin:
    """The module and line that torch.compile noted for a node."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = list(stack.values())[-1][0] if stack else ""
    scope = re.sub(r"^L\['\w+'\]\.?", "", path)
    if backward:
        scope = f"{BACKWARD}/{scope}" if scope else BACKWARD
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return Origin(scope, ":".join(lines[-1]) if lines else "unknown")
