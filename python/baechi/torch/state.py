# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a model and its optimizer, which is in PyTorch's own tensors.

These are the one truth. Every step reads them and writes what is new into their
memory: whoever shares them (another step, an average, a view) sees the newest, and
whatever is written there (`.data`, `no_grad`, `load_state_dict`) counts. Nothing is
remembered from step to step but which program fits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from baechi.torch.gpu import home
from baechi.torch.gradients import Consumed
from baechi.torch.optimizers import UnsupportedOptimizer, check_hooks, rule_for
from baechi.torch.update_rules import Numbers, Rule


@dataclasses.dataclass(frozen=True)
class Group:
    """Parameters that the optimizer treats alike."""

    settings: Mapping[str, Any]  # the optimizer's own; a scheduler changes it
    rule: Rule
    parameters: list[str]  # those that are trained


@dataclasses.dataclass(frozen=True)
class Cohort:
    """Parameters of one group that have seen equal updates: their numbers are equal."""

    group: Group
    label: str  # "0", "0.1": how the numbers of the step are named
    parameters: list[str]


class State:
    """The parameters, buffers and optimizer state of a model, by name, as they are now.

    Names are the model's own (`layers.0.weight`); the optimizer's state has its
    parameter's name before its own: `layers.0.weight/exp_avg`.
    Raises UnsupportedOptimizer and ValueError for what no step can have.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self.model, self.optimizer = model, optimizer
        self.parameters = dict(model.named_parameters())
        self.buffers = dict(model.named_buffers())
        self._check_tensors()
        self.device = home({**self.parameters, **self.buffers})
        check_hooks(optimizer, self.parameters)
        self.groups = self._groups()

    @property
    def trained(self) -> list[str]:
        """Parameters that the optimizer updates."""
        return [name for group in self.groups for name in group.parameters]

    def key(self) -> tuple:
        """What a compiled step depends on besides its inputs, and how many updates its
        parameters have seen."""
        modules = tuple((module.training, *_hooks(module)) for module in self.model.modules())
        tensors = tuple(
            (name, tuple(tensor.shape), tensor.dtype, tensor.requires_grad)
            for held in (self.parameters, self.buffers)
            for name, tensor in held.items()
        )
        groups = tuple((tuple(group.parameters), group.rule.form) for group in self.groups)
        return modules, tensors, groups

    def cohorts(self, names: Iterable[str]) -> list[Cohort]:
        """The parameters `names`, divided by the updates that they have seen."""
        wanted, found = set(names), []
        for number, group in enumerate(self.groups):
            parts: dict[tuple, list[str]] = {}
            for name in group.parameters:
                if name in wanted:
                    seen = (*self._counters(group.rule, name).values(), self._begun(group, name))
                    parts.setdefault(seen, []).append(name)
            for i, part in enumerate(parts.values()):
                found.append(Cohort(group, f"{number}.{i}" if i else f"{number}", part))
        return found

    def numbers(self, cohort: Cohort) -> tuple[Numbers, Numbers]:
        """Those of the next update, and the counters after it."""
        group, first = cohort.group, cohort.parameters[0]
        counters = self._counters(group.rule, first)
        return group.rule.numbers(group.settings, counters, self._begun(group, first))

    def kept(self, cohort: Cohort) -> dict[str, torch.Tensor]:
        """The optimizer's tensors for the cohort's parameters, by name; its own where
        it has them, else their first values."""
        found = {}
        for name in cohort.parameters:
            parameter = self.parameters[name]
            held = self.optimizer.state.get(parameter, {})
            for kind in cohort.group.rule.kinds_of(parameter):
                first, tensor = cohort.group.rule.tensors[kind], held.get(kind)
                if tensor is None:
                    tensor = first(parameter.detach())
                elif (
                    tensor.shape != parameter.shape
                    and tensor.shape != first(parameter.detach()).shape
                ):
                    raise UnsupportedOptimizer(
                        f"the optimizer's '{kind}' of '{name}' has the shape "
                        f"{list(tensor.shape)}, the parameter {list(parameter.shape)}: load the "
                        "state of this model"
                    )
                elif not _goes_with(tensor.dtype, parameter.dtype):
                    raise UnsupportedOptimizer(
                        f"the optimizer's '{kind}' of '{name}' is {_word(tensor.dtype)}, the "
                        f"parameter {_word(parameter.dtype)} since the model was converted: make "
                        "a new optimizer, or have this one load its own state_dict(), which "
                        "converts it"
                    )
                found[f"{name}/{kind}"] = tensor
        return found

    def put(
        self, cohort: Cohort, kept: Mapping[str, torch.Tensor], counters: Mapping[str, float]
    ) -> None:
        """After an update: gives the optimizer its tensors and counters."""
        dtype = torch.get_default_dtype()
        dtype = torch.float64 if dtype == torch.float64 else torch.float32  # as PyTorch has it
        rule = cohort.group.rule
        for name in cohort.parameters if rule.tensors or rule.counters else ():
            parameter = self.parameters[name]
            held = self.optimizer.state[parameter]
            for kind, value in counters.items():
                if isinstance(held.get(kind), torch.Tensor):
                    held[kind].fill_(value)
                else:
                    # As PyTorch has it: with its fused updates beside the parameter.
                    where = parameter.device if cohort.group.settings.get("fused") else None
                    held[kind] = torch.tensor(value, dtype=dtype, device=where)
            for kind in rule.kinds_of(parameter):
                held[kind] = kept[f"{name}/{kind}"]

    def _counters(self, rule: Rule, name: str) -> Numbers:
        held = self.optimizer.state.get(self.parameters[name], {})
        return {kind: float(held.get(kind, first)) for kind, first in rule.counters.items()}

    def _begun(self, group: Group, name: str) -> bool:
        parameter = self.parameters[name]
        held = self.optimizer.state.get(parameter, {})
        return all(held.get(kind) is not None for kind in group.rule.kinds_of(parameter))

    def _groups(self) -> list[Group]:
        names = {id(parameter): name for name, parameter in self.parameters.items()}
        groups = []
        for settings in self.optimizer.param_groups:
            strange = sum(id(p) not in names for p in settings["params"])
            if strange:
                raise UnsupportedOptimizer(
                    f"the optimizer has {strange} parameters that the model does not have: "
                    "make it from model.parameters()"
                )
            trained = [names[id(p)] for p in settings["params"] if _is_updated(p)]
            groups.append(Group(settings, rule_for(self.optimizer, settings), trained))
        return groups

    def _check_tensors(self) -> None:
        for name, module in self.model.named_modules():
            if getattr(module, "sparse", False) is True:
                raise UnsupportedOptimizer(
                    f"'{name}' has sparse gradients; use {type(module).__name__}(sparse=False), "
                    "whose gradient is computed from the rows alone here too"
                )
        for name, tensor in [*self.parameters.items(), *self.buffers.items()]:
            if tensor.layout != torch.strided:
                raise ValueError(f"'{name}' is sparse, all is dense here: keep it as .to_dense()")


def _is_updated(parameter: torch.Tensor) -> bool:
    """Frozen ones, too, which have gradients of calls before."""
    gradient = parameter.grad
    left = gradient is not None and not isinstance(gradient, Consumed)
    return parameter.requires_grad or left


def _goes_with(kept: torch.dtype, parameter: torch.dtype) -> bool:
    """Whether a step can keep an optimizer's tensor of one type for a parameter of another:
    an update of 16 bits is computed in 32."""
    return kept == parameter or (kept == torch.float32 and parameter.itemsize == 2)


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _hooks(module: torch.nn.Module) -> list[tuple]:
    """A module's hooks are traced with it."""
    kinds = (
        module._forward_pre_hooks,
        module._forward_hooks,
        module._backward_pre_hooks,
        module._backward_hooks,
    )
    return [tuple(hooks.values()) for hooks in kinds] if any(kinds) else []


def check_apart(tensors: Mapping[str, torch.Tensor], updated: Iterable[str]) -> None:
    """Refuses tensors that lie in the same memory, of which one is updated: PyTorch
    would update the memory twice. Raises ValueError."""
    changing = set(updated)
    places = sorted((*_extent(tensor), name) for name, tensor in tensors.items() if tensor.numel())
    for (_, end, first), (start, _, second) in zip(places, places[1:]):
        if start < end and (first in changing or second in changing):
            raise ValueError(
                f"'{first}' and '{second}' lie in the same memory; make them one parameter "
                "(model.a.weight = model.b.weight), or give each its own (.clone())"
            )


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()
