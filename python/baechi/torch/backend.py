# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="baechi")`: inference on several devices."""

from __future__ import annotations

import dataclasses
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from baechi import init
from baechi.compiled import Compiled, as_key
from baechi.importer import torch_linalg
from baechi.importer.errors import ImportFailure
from baechi.importer.module import Argument
from baechi.importer.torch_names import Origin, Recorder
from baechi.importer.torch_trace import Trace, trace
from baechi.program import CompileOptions, Program
from baechi.torch.arrays import Stamp, check_indices, to_numpy, to_torch

_GRAPHS: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()


def baechi(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable:
    """The backend. Options are those of `baechi.torch.compile_step`; the modes of
    `torch.compile` are the other backends' own."""
    known = [field.name for field in dataclasses.fields(CompileOptions)]
    if unknown := set(options or {}) - set(known):
        raise ValueError(
            f"backend 'baechi' has no option '{min(unknown)}'; known: {', '.join(known)}"
        )
    return CompiledGraph(module, CompileOptions(**(options or {}))).run


def graphs() -> list[CompiledGraph]:
    """What the backend has compiled and is still in use, the oldest first."""
    return sorted(_GRAPHS, key=lambda graph: graph.number)


class CompiledGraph(Compiled["_Inference"]):
    """A graph that torch.compile has found; a program for each set of shapes."""

    count = 0

    def __init__(self, module: torch.fx.GraphModule, options: CompileOptions):
        super().__init__()
        self._module, self._options = module, options
        # How torch.compile reaches each input, which it forgets after this:
        # `L['self']._modules['fc']._parameters['bias']`.
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        found = [node.meta.get("grapharg") for node in placeholders]
        sources = [a.source.name if a is not None and a.source is not None else "" for a in found]
        self._names = [
            _name(source) or str(node.target)
            for source, node in zip(sources, placeholders, strict=True)
        ]
        # What belongs to the model is moved only when it changes.
        self._held = {i for i, source in enumerate(sources) if re.search(r"\]\.\w", source)}
        self._programs: dict[Any, _Inference] = {}
        CompiledGraph.count += 1
        self.number = CompiledGraph.count
        _GRAPHS.add(self)

    def run(self, *inputs: Any) -> tuple:
        if torch.is_grad_enabled() and any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in inputs
        ):
            raise ImportFailure(
                "backend 'baechi' computes no gradients: call the model under torch.no_grad(), "
                "or train with baechi.torch.compile_step"
            )
        key = tuple(
            (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else as_key(value)
            for value in inputs
        )
        with self._whole_call(lambda: key in self._programs):
            if key not in self._programs:
                self._programs[key] = self._compile(inputs)
            self._latest = self._programs[key]
            return self._latest.run(inputs)

    def lower(self) -> str:
        """The imported module of the program called last, as MLIR text."""
        return self._called().text

    def _compile(self, inputs: Sequence[Any]) -> _Inference:
        tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        for i in tensors:
            if inputs[i].device.type != "cpu":
                raise ImportFailure(
                    f"'{self._names[i]}' is on {inputs[i].device}; keep the model on the CPU, as "
                    "the program has its own copy on the machine's devices"
                )
        recorder = Recorder(self._module)
        interpreter = _Named(self._module, recorder)
        structure: list[Any] = []

        def function(*values):
            given = list(inputs)
            for i, value in zip(tensors, values, strict=True):
                given[i] = value
            results = interpreter.run(*given)
            structure[:] = results
            return [value for value in results if isinstance(value, torch.Tensor)]

        arguments = [inputs[i].detach() for i in tensors]
        with torch.no_grad():
            traced = trace(function, arguments, [self._names[i] for i in tensors], recorder)
        _check_inputs_stay(traced)
        return _Inference(traced, self._options, arguments, tensors, self._held, structure)


def _name(source: str) -> str:
    """`fc.bias`; the words of what is no part of a module."""
    path = re.findall(r"_(?:modules|parameters|buffers)\['([^']+)'\]", source)
    return ".".join(path) if path else "/".join(re.findall(r"\w+", source.removeprefix("L")))


class _Named(torch.fx.Interpreter):
    """Runs a graph; what is traced has the module and line of its node."""

    def __init__(self, module: torch.fx.GraphModule, recorder: Recorder):
        super().__init__(module)
        self._recorder = recorder

    def run_node(self, n: torch.fx.Node) -> Any:
        stack = n.meta.get("nn_module_stack") or {}
        path = list(stack.values())[-1][0] if stack else ""
        scope = re.sub(r"^L\['\w+'\]\.?", "", path)
        lines = re.findall(r'File "([^"]+)", line (\d+)', n.meta.get("stack_trace") or "")
        source = ":".join(lines[-1]) if lines else "unknown"
        with self._recorder.known(Origin(scope, source)):
            return super().run_node(n)


class _Inference(Program):
    """A traced graph for one set of shapes."""

    def __init__(
        self,
        traced: Trace,
        options: CompileOptions,
        examples: Sequence[torch.Tensor],
        tensors: list[int],
        held: set[int],
        structure: Sequence[Any],
    ):
        with torch.random.fork_rng(devices=[]):
            values = [*examples, *traced.constants, *(draw() for draw in traced.draws)]
        named = enumerate(zip(traced.names, values, strict=True))
        arguments = [
            Argument(name, init.from_example(to_numpy(value), seed=i + 1), None)
            for i, (name, value) in named
        ]
        # A result that is an input, or one twice, is what it is without the program.
        self._outputs = traced.outputs
        self._places = {node: i for i, node in enumerate(traced.placeholders)}
        computed = [node for node in dict.fromkeys(self._outputs) if node not in self._places]
        self._computed = {node: i for i, node in enumerate(computed)}
        tables = traced.tables()
        traced.graph.graph.output_node().args = (tuple(computed),)
        traced.graph.recompile()
        results = [f"result{i}" for i in range(len(computed))]
        text, _ = torch_linalg.lower(traced.graph, "inference", arguments, results)
        super().__init__(text, options)
        self._names, self._tables = traced.names, tables
        self._tensors, self._held, self._structure = tensors, held, list(structure)
        self._draws, self._first_draw = traced.draws, len(values) - len(traced.draws)
        self._stamps: dict[int, Stamp] = {}
        for i, value in enumerate(traced.constants):
            self.library.set_argument(len(examples) + i, to_numpy(value))

    def run(self, inputs: Sequence[Any]) -> tuple:
        given = [inputs[i] for i in self._tensors]
        for index, tensor in enumerate(given):
            if self._tensors[index] in self._held:
                if index in self._stamps and self._stamps[index].fits(tensor):
                    continue
                self._stamps[index] = Stamp(tensor)
            if index in self._tables:
                check_indices(self._names[index], tensor, self._tables[index])
            self.library.set_argument(index, to_numpy(tensor))
        for i, draw in enumerate(self._draws):
            self.library.set_argument(self._first_draw + i, to_numpy(draw()))
        self.step()
        values = {
            node: to_torch(self.library.result(i), node.meta["val"].dtype)
            for node, i in self._computed.items()
        }
        tensors = iter(
            given[self._places[node]] if node in self._places else values[node]
            for node in self._outputs
        )
        return tuple(
            next(tensors) if isinstance(value, torch.Tensor) else value for value in self._structure
        )


def _check_inputs_stay(traced: Trace) -> None:
    """A program would change its own copy of an input."""
    changed = [
        node.args[0]
        for node in traced.graph.graph.nodes
        if node.target is torch.ops.aten.copy_.default and node.args[0] in traced.placeholders
    ]
    if changed:
        name = traced.names[traced.placeholders.index(changed[0])]
        raise ImportFailure(
            f"the model changes '{name}' in place, which backend 'baechi' does not support: call "
            "model.eval() for inference, or train with baechi.torch.compile_step"
        )
