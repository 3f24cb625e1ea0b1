# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a model and its optimizer: what a step keeps on the devices.

Between steps PyTorch's own tensors are its copy on the host. They are written
when somebody asks, and read when somebody has changed them, which their version
counters tell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from baechi.torch.optimizers import Rule, UnsupportedOptimizer, fixed_settings, rule_for


@dataclasses.dataclass
class Slot:
    """One tensor of the state. `get` is None as long as the optimizer has not
    made it: it is zero then."""

    name: str
    like: torch.Tensor  # a tensor of its shape and type
    get: Callable[[], torch.Tensor | None]
    put: Callable[[torch.Tensor], None]

    def value(self) -> torch.Tensor:
        value = self.get()
        return torch.zeros_like(self.like) if value is None else value


@dataclasses.dataclass
class Group:
    """Parameters that the optimizer treats alike."""

    settings: dict  # the optimizer's own; a scheduler changes it
    rule: Rule
    parameters: list[str]


class State:
    """The parameters, buffers and optimizer state of a model, by name.

    Names are the model's own (`layers.0.weight`); the optimizer's state has its
    parameter's name before its own: `layers.0.weight/exp_avg`.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self.model, self.optimizer = model, optimizer
        self._build()

    def is_current(self) -> bool:
        """Whether the optimizer still treats what it trains as the groups say."""
        return self._layout == self._optimizers_layout()

    def rebuild(self) -> None:
        """Takes the optimizer's groups and settings as they are now. Raises
        UnsupportedOptimizer, and stays as it was, for what has no rule."""
        new = State(self.model, self.optimizer)
        new._check_joined(set(new.trained) - set(self.trained))
        self.__dict__ = new.__dict__

    def _build(self) -> None:
        self.parameters = dict(self.model.named_parameters())
        self.buffers = dict(self.model.named_buffers())
        self._check_devices()
        self.groups = self._groups()
        # Identities are those of objects that the groups hold.
        self._layout = self._optimizers_layout()
        self.slots: dict[str, Slot] = {}
        for name in [*self.parameters, *self.buffers]:
            self.slots[name] = self._tensor_slot(name)
        for group in self.groups:
            for name in group.parameters:
                for kind in group.rule.state:
                    self.slots[f"{name}/{kind}"] = self._optimizer_slot(name, kind)

    @property
    def trained(self) -> list[str]:
        """Parameters that the optimizer updates."""
        return [name for group in self.groups for name in group.parameters]

    def key(self) -> tuple:
        """What a compiled step depends on besides its inputs."""
        modes = tuple(module.training for module in self.model.modules())
        groups = tuple(
            (tuple(group.parameters), fixed_settings(group.settings)) for group in self.groups
        )
        return modes, tuple(self.parameters), tuple(self.buffers), groups

    def steps_done(self, group: Group) -> int:
        """Updates that the host's state of a group has seen."""
        states = [self.optimizer.state.get(self.parameters[name], {}) for name in group.parameters]
        counts = {int(state["step"]) for state in states if "step" in state}
        if len(counts) > 1:
            raise UnsupportedOptimizer(
                f"parameters of one group have seen {min(counts)} to {max(counts)} updates; "
                "give those that differ a group of their own"
            )
        if counts:
            return counts.pop()
        return int(any(state.get("momentum_buffer") is not None for state in states))

    def set_steps_done(self, group: Group, count: int) -> None:
        for name in group.parameters:
            state = self.optimizer.state.get(self.parameters[name], {})
            if state.get("exp_avg") is not None:
                state["step"] = torch.tensor(float(count), dtype=torch.float32)

    def counters(self) -> list[torch.Tensor]:
        """The optimizer's counts of updates."""
        states = [self.optimizer.state.get(self.parameters[name], {}) for name in self.trained]
        return [state["step"] for state in states if "step" in state]

    def _optimizers_layout(self) -> list[tuple]:
        return [
            (id(settings), fixed_settings(settings), [(id(p), p.requires_grad) for p in params])
            for settings in self.optimizer.param_groups
            for params in [settings["params"]]
        ]

    def _check_joined(self, joined: set[str]) -> None:
        """What begins to be trained later has seen fewer updates than its group."""
        for group in self.groups:
            numbers, count = group.rule.numbers, self.steps_done(group)
            if numbers(group.settings, 1) == numbers(group.settings, count + 1):
                continue
            for name in group.parameters:
                if name in joined and not self.optimizer.state.get(self.parameters[name]):
                    raise UnsupportedOptimizer(
                        f"'{name}' joins parameters that have seen {count} updates; give it a "
                        "group of its own (optimizer.add_param_group)"
                    )

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
            trained = [names[id(p)] for p in settings["params"] if p.requires_grad]
            groups.append(Group(settings, rule_for(self.optimizer, settings), trained))
        for name, module in self.model.named_modules():
            if getattr(module, "sparse", False) is True:
                raise UnsupportedOptimizer(
                    f"'{name}' has sparse gradients; use {type(module).__name__}(sparse=False), "
                    "whose gradient is computed from the rows alone here too"
                )
        return groups

    def _check_devices(self) -> None:
        for name, tensor in [*self.parameters.items(), *self.buffers.items()]:
            if tensor.device.type != "cpu":
                raise ValueError(
                    f"'{name}' is on {tensor.device}; keep the model on the CPU, as the step "
                    "has its own copy on the machine's devices"
                )

    def _tensor_slot(self, name: str) -> Slot:
        owner, _, leaf = name.rpartition(".")
        module = self.model.get_submodule(owner)

        def put(value):
            with torch.no_grad():
                getattr(module, leaf).copy_(value)

        return Slot(name, getattr(module, leaf), lambda: getattr(module, leaf), put)

    def _optimizer_slot(self, name: str, kind: str) -> Slot:
        # Loading a state replaces the optimizer's dictionary.
        parameter, optimizer = self.parameters[name], self.optimizer

        def get():
            return optimizer.state.get(parameter, {}).get(kind)

        def put(value):
            held = get()
            if held is None:
                optimizer.state[parameter][kind] = value.clone()
            else:
                held.copy_(value)

        return Slot(f"{name}/{kind}", parameter, get, put)
