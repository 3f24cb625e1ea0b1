# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="baechi")`: inference and training on several devices.

torch.compile finds the graphs of a model's forward pass, AOTAutograd their gradients; it
also takes care of what changes in place and of results that share memory with inputs.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch._functorch.config
from functorch.compile import aot_function, make_boxed_func
from torch._functorch._aot_autograd import descriptors

from baechi.checking.options import CheckError, CheckOptions
from baechi.common.bytecode import text_of
from baechi.compiling.options import replan_of
from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch.graph_rules import ASSERTIONS
from baechi.importer.torch.refusals import explained_errors
from baechi.importer.torch.trace import lowerable_operations
from baechi.steps.compiled import Compiled, as_key
from baechi.steps.program import CompileOptions, Program
from baechi.torch import gpu, modes
from baechi.torch.captured import OnGpu, WithNumbers, attribute, is_number, with_lifted_tensors
from baechi.torch.graph_check import Reference, compare, with_own_memory
from baechi.torch.graph_program import GraphProgram
from baechi.torch.partition import partition
from baechi.torch.turns import CompiledOfTorch

_GRAPHS: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
# AOTAutograd's: `backward(retain_graph=True)` works, and gradients have the types of
# PyTorch's, whose backward pass runs outside of autocast.
_SETTINGS = {"donated_buffer": False, "backward_pass_autocast": "off"}


def baechi(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable:
    """The backend. Options are those of `baechi.torch.compile_step`, and `weights`: the
    parameters and buffers that a call reads are what they hold then ("newest"), or what
    they held when their version counter last changed ("held"), which moves them less
    often but does not see writes through `.data` or NumPy. `check` and `check_tolerance`
    compare calls with PyTorch's own (docs/checking.md). The modes of `torch.compile` are the
    other backends' own."""
    given = dict(options or {})
    weights = given.pop("weights", "newest")
    if weights not in ("newest", "held"):
        raise ValueError(f"backend 'baechi': weights='{weights}': known are 'newest' and 'held'")
    check, tolerance = given.pop("check", None), given.pop("check_tolerance", None)
    # Each call of a graph is waited for.
    others = ("objective", "step_times")
    known = [f.name for f in dataclasses.fields(CompileOptions) if f.name not in others]
    if unknown := set(given) - set(known):
        known += ["weights", "check", "check_tolerance"]
        raise ValueError(
            f"backend 'baechi' has no option '{min(unknown)}'; known: {', '.join(known)}"
        )
    given["replan"] = replan_of(given.get("replan"))
    compiling = CompileOptions(**given).replicated()
    checks = CheckOptions(check, tolerance, compiling.cuda_math)
    return CompiledGraph(module, compiling, weights == "held", checks).run


def graphs() -> list[CompiledGraph]:
    """What the backend has compiled and is still in use, the oldest first."""
    return sorted(_GRAPHS, key=lambda graph: graph.number)


class CompiledGraph(CompiledOfTorch[Program]):
    """A graph that torch.compile has found; a program for each set of shapes, and one of
    its gradients.

    What it tells of itself (`placement`, `report()`, ...) is of the forward pass called last;
    `backward` tells the same of that one's backward pass.
    """

    count = 0

    def __init__(
        self,
        module: torch.fx.GraphModule,
        options: CompileOptions,
        held: bool = False,
        checks: CheckOptions | None = None,
    ):
        super().__init__()
        self._options, self._given = options, module
        self._checks = checks or CheckOptions()
        self._module, self._further = with_lifted_tensors(module)
        module = self._module
        # How torch.compile reaches each input, which it forgets after this:
        # `L['self']._modules['fc']._parameters['bias']`.
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        found = [node.meta.get("grapharg") for node in placeholders]
        sources = [a.source.name if a is not None and a.source is not None else "" for a in found]
        self._names = [
            _name(source) or str(node.target)
            for source, node in zip(sources, placeholders, strict=True)
        ]
        # What belongs to the model.
        members = {i for i, source in enumerate(sources) if re.search(r"\]\.\w", source)}
        self._held = members if held else set()
        # Python's numbers come as tensors whose `item()` is taken.
        self._numbers = {i for i, node in enumerate(placeholders) if is_number(node)}
        self._found: dict[Any, _Differentiable] = {}
        self._last: _Differentiable | None = None
        CompiledGraph.count += 1
        self.number = CompiledGraph.count
        _GRAPHS.add(self)

    def run(self, *inputs: Any) -> tuple:
        inputs = *inputs, *(attribute(self._given, path) for path in self._further)
        given = [x.item() if i in self._numbers else x for i, x in enumerate(inputs)]
        key = _key(given)
        with self._whole_call(lambda: key in self._found and self._found[key].is_compiled()):
            found = self._found.get(key)
            if found is None:
                form = self._module, given, self._names, self._held
                found = _Differentiable(*form, self._options, self._checks, self._home(given))
            results = found.run([x for x in given if isinstance(x, torch.Tensor)])
            self._found[key] = self._last = found
            self._latest = found.forward._latest
            return results

    @property
    def backward(self) -> Compiled[Program] | None:
        """The backward pass that belongs to the forward pass called last; None without
        gradients."""
        return self._last.backward if self._last else None

    def lower(self) -> str:
        """The imported module of the program called last, as MLIR text."""
        return text_of(self._called().source()[0])

    def _home(self, inputs: Sequence[Any]) -> torch.device:
        """Where the tensors of a call are. Raises ValueError for those of two places, and
        ImportFailure for what cannot be followed there."""
        pairs = zip(self._names, inputs, strict=True)
        found = gpu.home({n: x for n, x in pairs if isinstance(x, torch.Tensor)}, "all")
        if self._checks.check is not None:
            gpu.refuse_checks(found)
        gpu.refuse_graph(found, self._module.graph)
        return found


class _Differentiable:
    """A graph for inputs of one form: a function of PyTorch's that autograd can follow."""

    forward: GraphProgram
    backward: GraphProgram | None = None

    def __init__(
        self,
        module: torch.fx.GraphModule,
        inputs: Sequence[Any],
        names: Sequence[str],
        held: set[int],
        options: CompileOptions,
        checks: CheckOptions,
        home: torch.device,
    ):
        """inputs: of the call, which are there; of what are no tensors the values are part of
        the program."""
        self._options, self._checks, self._calls = options, checks, 0
        self._home, self._only_traces = home, False
        self._changed: set[int] = set()  # inputs that are on a GPU
        self._programs: list[GraphProgram] = []
        places = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        self._names = [names[i] for i in places]
        self._held = {i for i, place in enumerate(places) if place in held}
        interpreter = OnGpu(module) if home.type == "cuda" else WithNumbers(module)
        # Gradients that a graph itself asks for are of its inputs, not of copies.
        self._is_plain = all(node.target is not torch.autograd.grad for node in module.graph.nodes)

        def eager(*values: torch.Tensor) -> Any:
            filled = [None if isinstance(x, torch.Tensor) else x for x in inputs]
            for i, value in zip(places, values, strict=True):
                filled[i] = value
            return interpreter.run(*filled)

        def function(*values: torch.Tensor) -> Any:
            with lowerable_operations(), torch.fx.traceback.preserve_node_meta():
                return eager(*values)

        self._eager = eager

        self._function = aot_function(
            function, self._forward, self._backward, partition_fn=self._partition, enable_log=False
        )
        self._is_compiled = False

    def is_compiled(self) -> bool:
        """Whether the forward pass can run as it is."""
        return self.forward.is_compiled()

    def run(self, inputs: Sequence[torch.Tensor]) -> tuple:
        gpu.refuse_autocast(self._home, "what torch.compile compiled for tensors")
        if not self._checks.is_due(self._calls):
            results = self._run(inputs)
        else:
            reference = self._reference(inputs)
            try:
                results = self._run(inputs)
                self._compare(reference, results, inputs)
            except CheckError:
                reference.restore(inputs)
                raise
        self._calls += 1
        return results

    def _reference(self, inputs: Sequence[torch.Tensor]) -> Reference:
        def run(values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            """What is returned, and what inputs have become."""
            return [*_tensors(self._eager(*values)), *values]

        return Reference(run, with_own_memory(inputs))

    def _compare(
        self, reference: Reference, results: tuple, inputs: Sequence[torch.Tensor]
    ) -> None:
        if not self._is_plain:
            return
        ours = _tensors(results)
        names = [*(f"result {i}" for i in range(len(ours))), *self._names]
        # The operations that were compiled are PyTorch's: else this would not be reached.
        compare(names, [*ours, *inputs], reference, self._checks, lambda: None)

    def _run(self, inputs: Sequence[torch.Tensor]) -> tuple:
        if self._is_compiled:
            gpu.refuse_shared(self._names, inputs, self._changed)
            return self._function(*inputs)
        with torch._functorch.config.patch(_SETTINGS), explained_errors():
            try:
                if self._home.type == "cuda":
                    self._trace_on_cpu(inputs)
                results = self._function(*inputs)
            except AssertionError as error:
                if "a set_ on a graph input" not in str(error):
                    raise
                raise ImportFailure(
                    "what is compiled replaces the .data of a tensor from outside, which PyTorch "
                    "cannot follow: write into it (x.copy_(value) under torch.no_grad())"
                ) from error
        self._is_compiled = True
        return results

    def _trace_on_cpu(self, inputs: Sequence[torch.Tensor]) -> None:
        self._only_traces = True
        try:
            self._changed = gpu.trace_on_cpu(self._function, inputs)
        except RuntimeError as error:
            if mend := gpu.mend_of(error, self._home):
                raise ImportFailure(f"{error}{mend}") from error
            raise
        finally:
            self._only_traces = False
        gpu.refuse_shared(self._names, inputs, self._changed)

    @torch.compiler.disable
    def _forward(self, module: torch.fx.GraphModule, _: Sequence[Any]) -> Callable:
        inputs = [_input_of(node) for node in module.graph.nodes if node.op == "placeholder"]
        names = [f"input{i}" if j is None else self._names[j] for i, j in enumerate(inputs)]
        held = frozenset(i for i, j in enumerate(inputs) if j in self._held)
        messages = _assertions_as_results(module)
        with _outside_of_tracing():
            self.forward = GraphProgram(
                module, names, self._options, self._programs, self._checks, held, home=self._home
            )
        return self._boxed(self.forward, messages)

    def _partition(
        self, joint: torch.fx.GraphModule, inputs: Any, **options: Any
    ) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
        """AOTAutograd compiles a backward graph when it is first needed; what cannot be
        imported in it is an error now."""
        forward, backward = partition(joint, inputs, **options)
        self.backward = self._traced_backward(backward)
        self._backward_code = backward.code
        return forward, backward

    @torch.compiler.disable
    def _backward(self, module: torch.fx.GraphModule, _: Sequence[Any]) -> Callable:
        if self.backward is None or module.code != self._backward_code:
            self.backward = self._traced_backward(module)
        return _once_only(self._boxed(self.backward))

    def _traced_backward(self, module: torch.fx.GraphModule) -> GraphProgram:
        names = []
        for node in module.graph.nodes:
            if node.op == "placeholder":
                place = _input_of(node)
                names.append(f"saved/{node.name}" if place is None else self._names[place])
        with _outside_of_tracing():
            own = copy.deepcopy(module), names, self._options, self._programs, self._checks
            return GraphProgram(*own, backward=True, home=self._home)

    def _boxed(self, program: GraphProgram, messages: Sequence[str] = ()) -> Callable:
        """messages: of the assertions whose conditions are the graph's last results."""

        # Gradients may be asked for within a function that torch.compile follows.
        @torch.compiler.disable
        def run(*inputs: torch.Tensor) -> list[Any]:
            results = program.stand_ins() if self._only_traces else program.run(inputs)
            first = len(results) - len(messages)
            for condition, message in zip(results[first:], messages, strict=True):
                # Nothing of the caller's has changed yet.
                if not self._only_traces and not condition.item():
                    raise RuntimeError(message)
            return results[:first]

        return make_boxed_func(run)


def _tensors(results: Any) -> list[torch.Tensor]:
    return [x for x in results if isinstance(x, torch.Tensor)]


def _once_only(run: Callable) -> Callable:
    """A backward pass that does not run where PyTorch would cut the graph behind it without a
    word: where it keeps nothing that requires a gradient."""

    @torch.compiler.disable
    def checked(*inputs: Any) -> list[Any]:
        if torch.is_grad_enabled():
            raise ImportFailure(
                "a gradient with create_graph=True is asked for outside of what "
                'torch.compile(backend="baechi") compiled, which has no gradients of gradients: '
                "ask for both within it (torch.func.grad, jvp and hessian do), or train with "
                "baechi.torch.compile_step, whose forward may ask for gradients"
            )
        return run(list(inputs))

    return make_boxed_func(checked)


def _assertions_as_results(module: torch.fx.GraphModule) -> list[str]:
    """What a graph asserts while it runs (in `F.one_hot`) becomes further results of it."""
    graph, conditions, messages = module.graph, [], []
    for node in list(graph.nodes):
        if node.target in ASSERTIONS:
            condition, *message = node.args
            conditions.append(condition)
            messages.append(message[0] if message else "an assertion does not hold")
            graph.erase_node(node)
    if conditions:
        output = graph.output_node()
        output.args = ((*output.args[0], *conditions),)
        module.recompile()
    return messages


def _input_of(node: torch.fx.Node) -> int | None:
    """The position of the input that a placeholder of AOTAutograd's is; of several that
    share memory the first."""
    described = node.meta.get("desc")
    while isinstance(described, descriptors.SyntheticBaseAOTInput | descriptors.ViewBaseAOTInput):
        described = described.base_of
    return described.idx if isinstance(described, descriptors.PlainAOTInput) else None


@contextlib.contextmanager
def _outside_of_tracing() -> Iterator[None]:
    """A graph is traced anew without what AOTAutograd's tracing has set up."""
    with torch._subclasses.fake_tensor.unset_fake_temporarily(), torch._guards.tracing(None):
        yield


def _key(inputs: Sequence[Any]) -> tuple:
    """What a graph is compiled for: modes, forms, and which inputs share memory."""
    current = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), modes.key()
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    storages = [value.untyped_storage()._cdata for value in tensors]
    first: dict[int, int] = {}
    owners = [first.setdefault(storage, number) for number, storage in enumerate(storages)]
    shared: tuple = ()
    if len(first) < len(storages):
        counts = collections.Counter(owners)
        shared = tuple(
            (owner, value.storage_offset())
            for owner, value in zip(owners, tensors, strict=True)
            if counts[owner] > 1
        )
    return current, shared, tuple(map(_form, inputs))


def _form(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        layout = tuple(value.shape), value.stride(), value.dtype
        return *layout, value.requires_grad, value.is_inference()
    return as_key(value)


def _name(source: str) -> str:
    """`fc.bias`; the words of what is no part of a module."""
    path = re.findall(r"_(?:modules|parameters|buffers)\['([^']+)'\]", source)
    return ".".join(path) if path else "/".join(re.findall(r"\w+", source.removeprefix("L")))
