# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step as PyTorch itself computes it, on the same tensors, and its undoing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from baechi.torch import modes
from baechi.torch.arrays import to_numpy
from baechi.torch.gradients import Consumed
from baechi.torch.inputs import Inputs
from baechi.torch.short_types import SHORT
from baechi.torch.state import State
from baechi.torch.step_trace import loss_of
from baechi.torch.training_trace import LOSS, Phase, Recipe


class Snapshot:
    """All that a training step may change: tensors, the optimizer's and the scaler's
    state, and the random generator's."""

    def __init__(self, state: State, recipe: Recipe, others: Iterable[torch.Tensor]):
        """others: tensors outside of the model that a step changes."""
        optimizer = state.optimizer
        self._optimizer, self._scaler = optimizer, recipe.gradients.scaler
        self._gradients = [(p, p.grad) for p in state.parameters.values()]
        self._entries = {p: dict(held) for p, held in optimizer.state.items()}
        tensors = [*state.parameters.values(), *state.buffers.values(), *others]
        tensors += [gradient for _, gradient in self._gradients if _is_plain(gradient)]
        for held in self._entries.values():
            tensors += [value for value in held.values() if isinstance(value, torch.Tensor)]
        self._values = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._buffers = [(m, dict(m._buffers)) for m in state.model.modules()]
        self._scale = None if self._scaler is None else self._scaler.state_dict()
        self._random = torch.get_rng_state()

    def restore(self) -> None:
        """Puts everything back. Tensors stay where they are."""
        with torch.no_grad():
            for tensor, value in self._values:
                tensor.detach().copy_(value)
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        self._optimizer.state.clear()
        for parameter, held in self._entries.items():
            self._optimizer.state[parameter] = dict(held)
        for module, buffers in self._buffers:
            module._buffers.update(buffers)  # one may have been replaced
        if self._scaler is not None and self._scale:
            self._scaler.load_state_dict(self._scale)
        torch.set_rng_state(self._random)

    def disturb(self, inputs: Iterable[torch.Tensor], seed: int) -> list[torch.Tensor]:
        """Changes every floating-point number by one part of its precision, or not at all;
        gives changed copies of the inputs."""
        self.restore()
        draws = np.random.default_rng(seed)
        with torch.no_grad():
            for tensor, value in self._values:
                tensor.detach().copy_(disturbed(value, draws))
        return [disturbed(tensor, draws) for tensor in inputs]


def disturbed(tensor: torch.Tensor, draws: np.random.Generator) -> torch.Tensor:
    """A tensor whose floating-point numbers are changed by one part of their precision, or not
    at all; those of short types are what they are (`short_types`)."""
    if not tensor.is_floating_point() or tensor.dtype in SHORT:
        return tensor
    sign = torch.from_numpy(draws.integers(-1, 2, tuple(tensor.shape)))
    factor = 1 + sign * torch.finfo(tensor.dtype).eps
    return (tensor.detach() * factor.to(tensor.dtype)).to(tensor.dtype)


def run_eagerly(
    state: State, recipe: Recipe, inputs: Inputs, phase: Phase, given: Iterable[torch.Tensor]
) -> tuple[torch.Tensor, Any, torch.Tensor | None]:
    """One step by PyTorch, with these tensors for the inputs': the loss, what is returned
    beside it, and the gradients' norm. It changes what such a step changes."""
    options = recipe.gradients
    for name, parameter in state.parameters.items():
        if name not in phase.accumulated:
            parameter.grad = None
    args, kwargs, target = inputs.filled(given)
    mode = modes.autocast_key()
    with torch.enable_grad():
        with modes.autocast(mode):
            value, further = loss_of(recipe, state.model(*args, **kwargs), target)
        # Outside of autocast, as PyTorch's pages say.
        with modes.autocast(None), _Gradients(value, state):
            numbers = options.numbers()
            (value * numbers["scale"] if numbers else value).backward()
    norm, trained = None, [state.parameters[name] for name in state.trained]
    if phase.cohorts:
        norm = _update(state, recipe, [p for p in trained if p.grad is not None])
    # What is returned may lie in a tensor that is put back.
    return value.detach().clone(), pytree.tree_map_only(torch.Tensor, _copied, further), norm


def _update(state: State, recipe: Recipe, parameters: list[torch.Tensor]) -> torch.Tensor | None:
    options, norm, overflow = recipe.gradients, None, False
    with modes.autocast(None):
        if options.scaler is not None:
            gradients = [p.grad for p in parameters if p.grad is not None]
            overflow = not all(bool(gradient.isfinite().all()) for gradient in gradients)
            numbers = options.numbers()
            for gradient in gradients:
                gradient.mul_(numbers["unscale"]).mul_(numbers["unscale_rest"])
        if options.clip_value is not None:
            torch.nn.utils.clip_grad_value_(parameters, options.clip_value)
        if options.clip_norm is not None:
            clip = dict(options.clip_norm) | {"error_if_nonfinite": False}
            norm = torch.nn.utils.clip_grad_norm_(parameters, **clip)
        if not overflow:
            # The class's own: schedulers count the calls of the optimizer's.
            type(state.optimizer).step(state.optimizer)
    return norm


class _Gradients:
    """Leaves the gradients of tensors outside of the model alone."""

    def __init__(self, value: torch.Tensor, state: State):
        mine = {id(parameter) for parameter in state.parameters.values()}
        self._others = [x for x in _leaves(value) if id(x) not in mine]

    def __enter__(self) -> None:
        self._before = [x.grad for x in self._others]
        for tensor in self._others:
            tensor.grad = None

    def __exit__(self, *_: object) -> None:
        for tensor, gradient in zip(self._others, self._before, strict=True):
            tensor.grad = gradient


def _leaves(value: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that a backward pass gives gradients to."""
    found, seen, waiting = [], set(), [value.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (variable := getattr(node, "variable", None)) is not None:
            found.append(variable)
        waiting += [following for following, _ in node.next_functions]
    return found


def values_of(
    state: State,
    phase: Phase,
    result: tuple[torch.Tensor, Any, torch.Tensor | None],
    others: Iterable[torch.Tensor],
) -> dict[str, np.ndarray]:
    """All that a step has made, by name: what it returned, and the state after it.
    others: tensors outside of the model that it changes."""
    loss, further, norm = result
    found: dict[str, Any] = {LOSS: loss}
    returned = [x for x in pytree.tree_flatten(further)[0] if isinstance(x, torch.Tensor)]
    found |= {f"output/{i}": tensor for i, tensor in enumerate(returned)}
    if norm is not None:
        found["gradient_norm"] = norm
    if not phase.cohorts:
        for name in state.trained:
            gradient = state.parameters[name].grad
            if gradient is not None and not isinstance(gradient, Consumed):
                found[f"{name}/grad"] = gradient
    for name, parameter in state.parameters.items():
        found |= {
            f"{name}/{kind}": value
            for kind, value in state.optimizer.state.get(parameter, {}).items()
            if isinstance(value, torch.Tensor)
        }
    found |= {**state.parameters, **dict(state.model.named_buffers())}
    found |= {f"constant/{i}": tensor for i, tensor in enumerate(others)}
    return {name: to_numpy(tensor).copy() for name, tensor in found.items()}


def _is_plain(gradient: torch.Tensor | None) -> bool:
    return gradient is not None and not isinstance(gradient, Consumed)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()
