# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One whole training step as a graph: loss, gradients, buffers, update."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.func import functional_call, grad_and_value
from torch.utils import _pytree as pytree

from baechi import init
from baechi.importer.errors import ImportFailure
from baechi.importer.module import Argument
from baechi.importer.torch_names import Recorder
from baechi.importer.torch_refusals import DATA_DEPENDENT
from baechi.importer.torch_trace import Trace, lowerable_operations, trace
from baechi.torch.arrays import to_numpy
from baechi.torch.state import State

LOSS = "loss"


@dataclasses.dataclass
class TrainingTrace:
    """A traced step; `arguments` are those of its module, in order."""

    graph: torch.fx.GraphModule
    arguments: list[Argument]
    results: list[str]
    held: dict[str, int]  # the positions of the state
    inputs: list[int]  # of the inputs' leaves
    numbers: dict[tuple[int, str], int]  # of the optimizer's, by group and name
    constants: dict[int, torch.Tensor]
    draws: dict[int, Callable[[], torch.Tensor]]  # random numbers, anew for every step
    tables: dict[int, tuple[int, str]]  # of arguments that are indices: see Trace
    loss_dtype: torch.dtype


def trace_step(
    state: State, loss: Callable | None, leaves: list[Any], structure: Any
) -> TrainingTrace:
    """Traces a step on `leaves`, the leaves of (inputs, kwargs, target), of which
    tensors are arguments. Raises ImportFailure."""
    model = state.model
    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    recorder = Recorder(model)
    places = _Places(model)

    def run(parameters, buffers, given):
        filled = list(leaves)
        for i, value in zip(tensors, given, strict=True):
            filled[i] = value
        inputs, kwargs, target = pytree.tree_unflatten(filled, structure)
        held = places.filled({**parameters, **buffers})
        output = functional_call(model, held, inputs, kwargs, tie_weights=False)
        with recorder.scope(LOSS):
            value = output if loss is None else loss(output, target)
        if not isinstance(value, torch.Tensor) or value.dim() != 0:
            kind = f"shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
            raise ImportFailure(f"the loss must be a tensor of one number, not of {kind}")
        return value

    used = _with_gradient(run, state, [leaves[i] for i in tensors])
    numbers = {
        (g, name): value
        for g, group in enumerate(state.groups)
        for name, value in group.rule.numbers(group.settings, 1).items()
    }
    kept = [
        f"{name}/{kind}"
        for group in state.groups
        for name in group.parameters
        for kind in group.rule.state
        if name in used
    ]

    parts = {
        "parameters": {n: p.detach() for n, p in state.parameters.items()},
        "buffers": dict(state.buffers),
        "kept": {name: state.slots[name].value() for name in kept},
        "inputs": [leaves[i].detach() for i in tensors],
        "numbers": {key: torch.tensor(value) for key, value in numbers.items()},
    }
    flat, tree = pytree.tree_flatten(parts)

    def step(*values):
        parts = pytree.tree_unflatten(list(values), tree)
        frozen = {n: p for n, p in parts["parameters"].items() if n not in used}
        trained = {n: p for n, p in parts["parameters"].items() if n in used}

        def with_buffers(parameters):
            # Cloned inside, as a differentiated function must not change others' tensors.
            buffers = {name: buffer.clone() for name, buffer in parts["buffers"].items()}
            return run({**frozen, **parameters}, buffers, parts["inputs"]), buffers

        gradients, (value, buffers) = grad_and_value(with_buffers, has_aux=True)(trained)
        results = [value]
        for g, group in enumerate(state.groups):
            given = {name: x for (owner, name), x in parts["numbers"].items() if owner == g}
            for name in [n for n in group.parameters if n in used]:
                old = {kind: parts["kept"][f"{name}/{kind}"] for kind in group.rule.state}
                with recorder.scope(f"update/{name}"):
                    new, kept = group.rule.update(trained[name], gradients[name], old, given)
                results += [new, *(kept[kind] for kind in group.rule.state)]
        return [*results, *buffers.values()]

    names = [
        *parts["parameters"],
        *parts["buffers"],
        *parts["kept"],
        *_input_names(model, structure, tensors, loss is not None),
        *(f"optimizer/{g}/{name}" for g, name in numbers),
    ]
    updated = [LOSS]
    for group in state.groups:
        for name in [n for n in group.parameters if n in used]:
            updated += [name, *(f"{name}/{kind}" for kind in group.rule.state)]
    updated += parts["buffers"]
    traced = trace(step, flat, names, recorder)
    return _described(traced, flat, updated, len(tensors), list(numbers))


class _Places:
    """Where a model holds each tensor of its state.

    `functional_call` can find those of tied weights itself, but of a module that is part
    of two others it would put back the wrong tensors.
    """

    def __init__(self, model: torch.nn.Module):
        first: dict[torch.Tensor, str] = {}
        self._names: dict[str, str] = {}  # of a place: the tensor's first name
        for path, module in model.named_modules():
            held = {**module._parameters, **module._buffers}
            for leaf, tensor in held.items():
                if tensor is not None:
                    name = f"{path}.{leaf}" if path else leaf
                    self._names[name] = first.setdefault(tensor, name)

    def filled(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """By place; `values` are by the first name."""
        return {place: values[name] for place, name in self._names.items()}


def _described(traced: Trace, flat, updated, inputs: int, numbers) -> TrainingTrace:
    """The arguments and results of a trace. What a step leaves alone (the
    buffers of most models) is no result."""
    graph = traced.graph.graph
    placeholders = traced.placeholders
    results, nodes = [], []
    for name, node in zip(updated, traced.outputs, strict=True):
        if node not in placeholders:
            results.append(name)
            nodes.append(node)
    graph.output_node().args = (tuple(nodes),)
    traced.graph.recompile()
    with torch.random.fork_rng(devices=[]):  # examples, which the program's numbers do not see
        values = [*flat, *traced.constants, *(draw() for draw in traced.draws)]
    arguments = [
        Argument(
            name,
            init.from_example(to_numpy(value), seed=i + 1),
            results.index(name) if name in results else None,
        )
        for i, (name, value) in enumerate(zip(traced.names, values, strict=True))
    ]
    first = len(flat) - inputs - len(numbers)
    drawn = len(flat) + len(traced.constants)
    return TrainingTrace(
        traced.graph,
        arguments,
        results,
        held={name: i for i, name in enumerate(traced.names[:first])},
        inputs=list(range(first, first + inputs)),
        numbers={key: first + inputs + i for i, key in enumerate(numbers)},
        constants={len(flat) + i: value for i, value in enumerate(traced.constants)},
        draws={drawn + i: draw for i, draw in enumerate(traced.draws)},
        tables=traced.tables(),
        loss_dtype=nodes[0].meta["val"].dtype,
    )


def _with_gradient(run: Callable, state: State, inputs: list[torch.Tensor]) -> set[str]:
    """The trained parameters that the loss depends on: PyTorch leaves the others,
    and their momentum, alone. Nothing is computed for it but shapes."""
    names = state.trained
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, lowerable_operations():
        fakes = {n: mode.from_tensor(p.detach()) for n, p in state.parameters.items()}
        for name in names:
            fakes[name].requires_grad_()
        buffers = {n: mode.from_tensor(b.detach()) for n, b in state.buffers.items()}
        try:
            with torch.enable_grad():
                value = run(fakes, buffers, [mode.from_tensor(x.detach()) for x in inputs])
            if not value.requires_grad:
                raise ImportFailure("the loss depends on no parameter that the optimizer has")
            gradients = torch.autograd.grad(value, [fakes[n] for n in names], allow_unused=True)
        except DATA_DEPENDENT:
            return set(names)  # the trace will say where, and what else is wrong
    return {name for name, gradient in zip(names, gradients, strict=True) if gradient is not None}


def _input_names(
    model: torch.nn.Module, structure: Any, tensors: list[int], with_target: bool
) -> list[str]:
    """`tokens`, `target`: the parameters of `forward` that inputs are for."""
    positions = pytree.tree_unflatten(list(range(structure.num_leaves)), structure)
    inputs, kwargs, target = positions
    declared = list(inspect.signature(model.forward).parameters.values())
    named = []
    for i, value in enumerate(inputs):
        variadic = i >= len(declared) or declared[i].kind is inspect.Parameter.VAR_POSITIONAL
        named.append((f"inputs{i}" if variadic else declared[i].name, value))
    named += kwargs.items()
    if with_target:
        named.append(("target", target))
    found = {}
    for name, value in named:
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            inner = "/".join(re.findall(r"\w+", pytree.keystr(path)))
            found[leaf] = f"{name}/{inner}" if inner else name
    return [found[i] for i in tensors]
