# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.compile_step`: a whole PyTorch training step on several devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from baechi.compiled import Compiled, as_key
from baechi.importer import torch_linalg
from baechi.importer.errors import ImportFailure
from baechi.program import CompileOptions, Program
from baechi.torch.arrays import Stamp, check_indices, to_numpy, to_torch
from baechi.torch.state import State
from baechi.torch.step_trace import TrainingTrace, trace_step


def compile_step(
    model: torch.nn.Module,
    loss: Callable[[Any, Any], torch.Tensor] | None,
    optimizer: torch.optim.Optimizer,
    *,
    machine: str = "host:2",
    placer: str = "msct",
    budget: str = "auto",
    pin: Mapping[str, str] | None = None,
    placement: str | os.PathLike | None = None,
    profile: str | os.PathLike | None = None,
    costs: str = "measured",
    cuda_math: str = "fp32",
) -> TrainingStep:
    """Compiles forward pass, loss, gradients and update for the devices of `machine`.

    The result is called as `step(*inputs, target, **kwargs)`: it computes
    `loss(model(*inputs, **kwargs), target)`, updates parameters, buffers and the
    optimizer's state, and returns the loss. With `loss=None`, all arguments are
    the model's and what it returns is the loss.

    optimizer: torch.optim.SGD, Adam or AdamW over the model's parameters.
    machine, placer, budget, pin, placement, profile, costs, cuda_math: as for `baechi.jit`;
        names are `layers.0.fc1.weight` for parameters and buffers,
        `layers.0.fc1/mm` and `backward/layers.0.fc1/mm` for operators.

    The first call with other shapes, types or modes (`model.train()`, `eval()`)
    compiles. Raises UnsupportedOptimizer at once; the calls raise ImportFailure
    (all operations that cannot be imported, with module and source line),
    CompileError (no placement fits, a bad option) and StepError.
    """
    options = CompileOptions(machine, placer, budget, pin, placement, profile, costs, cuda_math)
    return TrainingStep(model, loss, optimizer, options)


class TrainingStep(Compiled["_StepProgram"]):
    """A training step that runs on several devices; see `compile_step`.

    The state lives on the devices. The model and the optimizer are brought up
    to date by `sync()`, and by themselves when the model or a module in it is called,
    when either is asked for its `state_dict()`, and before `optimizer.step()`. What is
    changed in them (`load_state_dict`, an assignment) reaches the devices with
    the next step.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Callable | None,
        optimizer: torch.optim.Optimizer,
        options: CompileOptions,
    ):
        super().__init__()
        self._state = State(model, optimizer)
        self._loss, self._options = loss, options
        self._traces: dict[Any, TrainingTrace] = {}
        self._programs: dict[Any, _StepProgram] = {}
        # Whose devices have the newest state; None: the host.
        self._newest: _StepProgram | None = None
        self._behind = False  # whether the host lacks what those devices have
        self._steps = [self._state.steps_done(group) for group in self._state.groups]
        self._stamp()
        self._quiet = False
        self._watch(model, optimizer)

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """One step; the loss before the update, a tensor of one number."""
        with self._whole_call(lambda: self._is_compiled(args, kwargs)):
            return self._run(args, kwargs)

    def _run(self, args: tuple, kwargs: dict) -> torch.Tensor:
        self._follow_optimizer()
        leaves, key, structure = self._flatten(args, kwargs)
        program = self._programs.get(key)
        if program is None:
            self.sync()  # what was trained so far is where this program begins
            traced = self._trace(leaves, key, structure)
            name = _identifier(type(self._state.model).__name__)
            text, _ = torch_linalg.lower(traced.graph, name, traced.arguments, traced.results)
            program = self._programs[key] = _StepProgram(text, self._options, traced)
        self._upload(program)
        self._newest = self._latest = program
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        groups = enumerate(self._state.groups)
        numbers = [group.rule.numbers(group.settings, self._steps[g] + 1) for g, group in groups]
        try:
            loss = program.run(tensors, numbers)
        except BaseException:
            self._newest = None  # the host's state is the last that is known to be whole
            raise
        self._behind = True
        self._steps = [count + 1 for count in self._steps]
        self._state.optimizer._opt_called = True  # which learning rate schedulers ask
        return loss

    def sync(self) -> None:
        """Copies the newest state from the devices into the model and the optimizer,
        but for what was changed there since."""
        with self._turn:
            if self._behind and self._newest is not None and not self._quiet:
                self._bring_to_host()

    def _bring_to_host(self) -> None:
        program, self._newest = self._newest, None
        state, changed, counted = self._state, self._changed(), self._counters_changed()
        stamps, counters = self._stamps, self._counters
        for name, index in program.traced.held.items():
            if program.traced.arguments[index].updated_by is not None and name not in changed:
                slot = state.slots[name]
                slot.put(to_torch(program.library.argument(index), slot.like.dtype))
        if not counted:
            for group, count in zip(state.groups, self._steps, strict=True):
                state.set_steps_done(group, count)
        self._stamp()
        # What was changed has not reached the devices yet.
        self._stamps |= {name: stamps[name] for name in changed}
        if counted:
            self._counters = counters
        self._newest, self._behind = program, False

    def _follow_optimizer(self) -> None:
        """Other settings or parameters of the optimizer: the state goes on with them."""
        if self._state.is_current():
            return
        self.sync()
        self._state.rebuild()
        self._newest = None  # the next program takes the host's state whole
        self._steps = [self._state.steps_done(group) for group in self._state.groups]
        self._stamp()

    def _changed(self) -> list[str]:
        """What the host's state has that the devices have not seen."""
        slots = self._state.slots
        return [n for n, stamp in self._stamps.items() if not stamp.fits(slots[n].get())]

    def _counters_changed(self) -> bool:
        known, counters = self._counters, self._state.counters()
        return len(counters) != len(known) or not all(map(Stamp.fits, known, counters))

    def state_dict(self) -> dict[str, Any]:
        """`{"model": …, "optimizer": …}`, as both give it, after a `sync()`."""
        with self._turn:
            self.sync()
            return {
                "model": self._state.model.state_dict(),
                "optimizer": self._state.optimizer.state_dict(),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        with self._turn:
            self._state.model.load_state_dict(state["model"])
            self._state.optimizer.load_state_dict(state["optimizer"])

    def lower(self, *args: Any, **kwargs: Any) -> str:
        """The imported module as MLIR text, for these arguments."""
        with self._whole_call(lambda: False):
            self._follow_optimizer()
            traced = self._trace(*self._flatten(args, kwargs))
        name = _identifier(type(self._state.model).__name__)
        return torch_linalg.lower(traced.graph, name, traced.arguments, traced.results)[0]

    def _is_compiled(self, args: tuple, kwargs: dict) -> bool:
        self._follow_optimizer()
        return self._flatten(args, kwargs)[1] in self._programs

    def _flatten(self, args: tuple, kwargs: dict) -> tuple[list[Any], Any, Any]:
        target = None
        if self._loss is not None:
            if len(args) < 2:
                raise TypeError("call the step with the model's inputs and the target, in order")
            *inputs, target = args
            args = tuple(inputs)
        leaves, structure = pytree.tree_flatten((args, kwargs, target))
        kinds = tuple(
            (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else as_key(leaf)
            for leaf in leaves
        )
        return leaves, (structure, kinds, self._state.key()), structure

    def _trace(self, leaves: list[Any], key: Any, structure: Any) -> TrainingTrace:
        if key not in self._traces:
            self._quiet = True
            try:
                self._traces[key] = trace_step(self._state, self._loss, leaves, structure)
            except ZeroDivisionError as error:  # the mean over no elements
                empty = [x for x in leaves if isinstance(x, torch.Tensor) and x.numel() == 0]
                if not empty:
                    raise
                raise ImportFailure(
                    f"a batch has a tensor of shape {tuple(empty[0].shape)}: there is nothing "
                    "to train by; leave such batches out"
                ) from error
            finally:
                self._quiet = False
        return self._traces[key]

    def _upload(self, program: _StepProgram) -> None:
        """Brings the host's state to the program's devices where it is newer."""
        slots = self._state.slots
        changed = self._changed()
        if self._counters_changed():
            self._steps = [self._state.steps_done(group) for group in self._state.groups]
        if self._newest is not program:
            # The host's state goes there whole: the newest, and what was changed in it.
            self.sync()
            changed = list(program.traced.held)
        for name in changed:
            if name in program.traced.held:
                index = program.traced.held[name]
                program.library.set_argument(index, to_numpy(slots[name].value()))
        self._stamp()

    def _stamp(self) -> None:
        self._stamps = {name: Stamp(slot.get()) for name, slot in self._state.slots.items()}
        self._counters = [Stamp(counter) for counter in self._state.counters()]

    def _watch(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Whoever looks at the model or the optimizer sees the newest state."""
        look, look_within = _Look(self), _LookWithin(self)
        model.register_forward_pre_hook(look)
        for module in model.modules():
            if module is not model and _has_state(module):
                module.register_forward_pre_hook(look_within)
        model.register_state_dict_pre_hook(look)
        optimizer.register_step_pre_hook(look)
        optimizer.register_state_dict_pre_hook(look)


class _Look:
    """A hook that brings the newest state. A copy of the model, or a file with it, has
    no step: there it does nothing."""

    def __init__(self, step: TrainingStep | None):
        self._step = step

    @torch.compiler.disable
    def __call__(self, *_: Any, **__: Any) -> None:
        if self._step is not None:
            self._step.sync()

    def __reduce__(self) -> tuple:
        return _Look, (None,)


class _LookWithin(_Look):
    """The hook of a module in the model. A graph of torch.compile must not break at it:
    the model's own hook has brought the state before."""

    def __call__(self, *_: Any, **__: Any) -> None:
        if not torch.compiler.is_compiling():
            super().__call__()

    def __reduce__(self) -> tuple:
        return _LookWithin, (None,)


def _has_state(module: torch.nn.Module) -> bool:
    return any(True for held in (module.parameters(), module.buffers()) for _ in held)


class _StepProgram(Program):
    """The step for one set of shapes, types, modes and settings."""

    def __init__(self, text: str, options: CompileOptions, traced: TrainingTrace):
        super().__init__(text, options)
        self.traced = traced
        for index, value in traced.constants.items():
            self.library.set_argument(index, to_numpy(value))

    def run(self, tensors: list[torch.Tensor], numbers: list[dict[str, float]]) -> torch.Tensor:
        for index, tensor in zip(self.traced.inputs, tensors, strict=True):
            if index in self.traced.tables:
                name = self.traced.arguments[index].name
                check_indices(name, tensor, self.traced.tables[index])
            self.library.set_argument(index, to_numpy(tensor))
        for (group, name), index in self.traced.numbers.items():
            value = torch.tensor(numbers[group][name])
            self.library.set_argument(index, to_numpy(value))
        for index, draw in self.traced.draws.items():
            self.library.set_argument(index, to_numpy(draw()))
        self.step()
        dtype = self.traced.loss_dtype
        return to_torch(self.library.result(self.traced.results.index("loss")), dtype)


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "step"
