# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step that is compiled: one call of it on PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from baechi.common.bytecode import Bytecode
from baechi.steps.library import TYPES
from baechi.steps.program import CompileOptions, Program
from baechi.torch import arrays
from baechi.torch.arrays import as_argument, check_flags, check_indices, give, to_numpy, write
from baechi.torch.gpu import begin_step, refuse_hosts
from baechi.torch.gradients import Consumed, GradientOptions
from baechi.torch.inputs import Inputs
from baechi.torch.state import State, check_apart
from baechi.torch.training_trace import LOSS, Outputs, Phase, TrainingTrace
from baechi.torch.update_rules import Numbers


class StepProgram(Program):
    """The step for one set of shapes, types, modes and parts of the state."""

    def __init__(
        self,
        module: str | Bytecode,
        options: CompileOptions,
        traced: TrainingTrace,
        library: Any = None,
    ):
        """library: of a program that is not compiled here."""
        super().__init__(module, options, library)
        self.traced = traced
        self._addresses: list[int] = []
        self._device = torch.device("cpu")  # of the last call's model
        self.calls = 0
        # Of the call at work: what results were copied to, and which of it was given to somebody.
        self._made: dict[int, torch.Tensor] = {}
        self._used: set[int] = set()

    def _again(self, options: CompileOptions) -> StepProgram:
        assert self.module is not None
        made = StepProgram(self.module, options, self.traced)
        made.calls = self.calls
        return made

    def run(
        self, state: State, inputs: Inputs, phase: Phase, options: GradientOptions
    ) -> tuple[torch.Tensor, Any, torch.Tensor | None]:
        """One step: the loss, what is returned beside it, and the gradients' norm.

        Until all is known to be right nothing of PyTorch's is changed."""
        refuse_hosts(state.device, self.library.program["devices"])
        kept = {name: x for cohort in phase.cohorts for name, x in state.kept(cohort).items()}
        held = self._held(state, phase, kept)
        numbers = [state.numbers(cohort) for cohort in phase.cohorts]
        self._check(held, inputs.tensors)
        given = self._given(held, inputs, phase, numbers, options)
        self.calls += 1
        self._device = state.device
        self._made = self._rooms()
        try:
            if self._made:
                arguments = {i: as_argument(value, self.library, i) for i, value in given.items()}
                begin_step(self, self._device, arguments, self._made)
            elif self._device.type == "cpu":
                # All are given in every call.
                arrays_given = {i: to_numpy(value) for i, value in given.items()}
                self.step(arrays_given, lent=arrays_given.keys())
            else:
                for index, value in given.items():
                    give(value, self.library, index)
                self.step()
            return self._finish(state, given, phase, options, kept, held, numbers)
        finally:
            self._made, self._used = {}, set()

    def _rooms(self) -> dict[int, torch.Tensor]:
        """Memory for the results that lie on a GPU, where the model is there."""
        made = {
            i: arrays.room(self.library, i, dtype, self._device)
            for i, dtype in self.traced.dtypes.items()
        }
        return {i: tensor for i, tensor in made.items() if tensor is not None}

    def _finish(
        self,
        state: State,
        given: dict[int, torch.Tensor],
        phase: Phase,
        options: GradientOptions,
        kept: dict[str, torch.Tensor],
        held: dict[str, torch.Tensor],
        numbers: Sequence[tuple[Numbers, Numbers]],
    ) -> tuple[torch.Tensor, Any, torch.Tensor | None]:
        """What the step has made goes where it belongs."""
        told = {name: self._result(i) for name, i in self.traced.told.items()}
        if "flags" in told:
            check_flags(told["flags"].tolist(), self.traced.checks)
        norm = told.get("gradient_norm")
        overflow = "overflow" in told and bool(told["overflow"])
        if norm is not None and not overflow:
            options.check_norm(norm)
        further = self._outputs(self.traced.outputs, given)
        # What an overflow leaves alone is the optimizer's.
        own = {*kept, *state.trained} if overflow else set()
        written = set(held) - own
        changed = {i: held[name] for name, i in self.traced.held.items() if name in written}
        self._write(changed | self.traced.constants)
        if phase.cohorts:
            if not overflow:
                for cohort, (_, counters) in zip(phase.cohorts, numbers, strict=True):
                    state.put(cohort, kept, counters)
            options.after_update(overflow)
            for name in state.trained:
                _consume(state.parameters[name])
        else:
            self._accumulate(state, phase)
        for name in phase.others:  # another optimizer's, whose gradients are not computed
            _consume(state.parameters[name])
        return told[LOSS], further, norm

    def _write(self, tensors: dict[int, torch.Tensor]) -> None:
        """The next values of arguments into the tensors that they came from."""
        there, values = [], []
        for index, tensor in tensors.items():
            update = self.traced.arguments[index].updated_by
            if update is None:
                continue
            if update in self._made:
                there.append(tensor.detach())
                values.append(self._made[update])
                arrays.mark_changed(tensor)
            else:
                write(tensor, self.library, index)
        if there:
            with torch.no_grad():
                torch._foreach_copy_(there, values)  # in few launches, which nobody waits for

    def given(
        self, state: State, inputs: Inputs, phase: Phase, options: GradientOptions
    ) -> list[torch.Tensor]:
        """What a step would compute with: the program's arguments, in order. Draws random
        numbers."""
        kept = {name: x for cohort in phase.cohorts for name, x in state.kept(cohort).items()}
        numbers = [state.numbers(cohort) for cohort in phase.cohorts]
        held = self._held(state, phase, kept)
        values = self._given(held, inputs, phase, numbers, options)
        return [values[i].detach().clone() for i in range(len(self.traced.arguments))]

    def _held(
        self, state: State, phase: Phase, kept: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        held = {**state.parameters, **state.buffers, **kept}
        return held | {f"{name}/grad": state.parameters[name].grad for name in phase.accumulated}

    def _given(
        self,
        held: dict[str, torch.Tensor],
        inputs: Inputs,
        phase: Phase,
        numbers: Sequence[tuple[Numbers, Numbers]],
        options: GradientOptions,
    ) -> dict[int, torch.Tensor]:
        """The program's arguments by position."""
        traced = self.traced
        values = {index: held[name] for name, index in traced.held.items()}
        values |= zip(traced.inputs, inputs.tensors, strict=True)
        values |= traced.constants
        given = {cohort.label: x for cohort, (x, _) in zip(phase.cohorts, numbers, strict=True)}
        given["scaler"] = options.numbers()
        for (owner, name), index in traced.numbers.items():
            kind = np.dtype(self._type(index))
            values[index] = torch.from_numpy(np.asarray(given[owner][name], kind))
        return values | {index: draw() for index, draw in traced.draws.items()}

    def _check(self, held: dict[str, torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
        traced = self.traced
        addresses = [tensor.data_ptr() for tensor in held.values()]
        if addresses != self._addresses:
            arguments = traced.arguments
            changing = [n for n, i in traced.held.items() if arguments[i].updated_by is not None]
            check_apart(held, changing)
            self._addresses = addresses
        values = [(index, held[name]) for name, index in traced.held.items()]
        values += zip(traced.inputs, tensors, strict=True)
        values += traced.constants.items()
        for index, tensor in values:
            if index in traced.tables:
                check_indices(traced.arguments[index].name, tensor, traced.tables[index])

    def _accumulate(self, state: State, phase: Phase) -> None:
        """Gives the parameters their first gradients; those that have some got theirs."""
        for name in phase.used:
            if name not in phase.accumulated:
                index = self.traced.results.index(f"{name}/grad")
                state.parameters[name].grad = self._result(index)
        for name in state.trained:
            if isinstance(state.parameters[name].grad, Consumed):
                state.parameters[name].grad = None

    def _outputs(self, outputs: Outputs | None, given: dict[int, torch.Tensor]) -> Any:
        if outputs is None:
            return None

        def value(leaf):
            if isinstance(leaf, Outputs.Result):
                return self._result(leaf.index)
            if isinstance(leaf, Outputs.Given):
                return given[leaf.index].detach().clone()
            return leaf

        return pytree.tree_unflatten(list(map(value, outputs.leaves)), outputs.structure)

    def _result(self, index: int) -> torch.Tensor:
        if (made := self._made.get(index)) is not None:
            # Who changes one does not change another.
            made = made.clone() if index in self._used else made
            self._used.add(index)
            return made
        return arrays.result(self.library, index, self.traced.dtypes[index], self._device)

    def _type(self, index: int) -> Any:
        return TYPES[self.library.program["arguments"][index]["type"]]


def _consume(parameter: torch.Tensor) -> None:
    if not isinstance(parameter.grad, Consumed):
        parameter.grad = Consumed(parameter)
