# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.compile_step`: a whole PyTorch training step on several devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from baechi.checking.options import Check, CheckOptions, Tolerance
from baechi.common import progress, users
from baechi.common.launch import warn_of_whole
from baechi.compiling import compiler
from baechi.compiling.options import limited, replan_of
from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch import linalg
from baechi.steps.launched_step import check_ranks
from baechi.steps.program import CompileOptions
from baechi.torch import gpu, left_behind, modes, surroundings
from baechi.torch.gradients import Consumed, GradientOptions
from baechi.torch.inputs import Inputs
from baechi.torch.launched import RankSteps
from baechi.torch.state import State
from baechi.torch.step_check import StepCheck
from baechi.torch.step_program import StepProgram
from baechi.torch.step_trace import trace_step, used_parameters
from baechi.torch.training_trace import Phase, Recipe, TrainingTrace
from baechi.torch.turns import CompiledOfTorch

_MOST_SURROUNDINGS = 32  # programs for one step whose Python values change


def compile_step(
    model: torch.nn.Module,
    loss: Callable[[Any, Any], Any] | None,
    optimizer: torch.optim.Optimizer,
    *,
    clip_grad_norm: float | Mapping[str, Any] | None = None,
    clip_grad_value: float | None = None,
    accumulate: int = 1,
    scaler: torch.amp.GradScaler | None = None,
    outputs: Callable[[Any], Any] | None = None,
    machine: str = "host:2",
    placer: str = "msct",
    budget: str = "auto",
    expert: Mapping[str, str] | str | os.PathLike | None = None,
    pin: Mapping[str, str] | None = None,
    placement: str | os.PathLike | None = None,
    profile: str | os.PathLike | None = None,
    costs: str = "measured",
    measure: str = "auto",
    cuda_math: str = "fp32",
    cuda_convolutions: str = "measured",
    splits: str = "auto",
    split: Mapping[str, tuple[int, int] | str] | None = None,
    replicas: int = 1,
    exchange: str | None = None,
    slice_bytes: int | None = None,
    factors: str = "none",
    replan: str | None = None,
    transfers: str = "lend",
    fit_memory: str = "auto",
    unroll: str = "auto",
    memory: str | int | None = None,
    spill_to: str | None = None,
    verbose: bool | None = None,
    check: Check = None,
    check_tolerance: Tolerance = None,
    ranks: str | None = None,
) -> TrainingStep:
    """Compiles forward pass, loss, gradients and update for the devices of `machine`.

    The result is called as `step(*inputs, target, **kwargs)`: it computes
    `loss(model(*inputs, **kwargs), target)`, updates parameters, buffers and the
    optimizer's state, and returns the loss. With `loss=None`, all arguments are
    the model's and what it returns is the loss, or has it as `.loss` or `["loss"]`.

    loss: may return a tuple, `(loss, further)`: so does the step then; `further` are
        tensors in any containers.
    optimizer: SGD, Adam, AdamW, Adagrad, Adadelta, Adamax, NAdam, RAdam, RMSprop, Rprop,
        ASGD, Adafactor or Muon of torch.optim, over the model's parameters.
    clip_grad_norm: the largest norm of the gradients that are updated by, or the
        arguments of `torch.nn.utils.clip_grad_norm_` by name (`max_norm`, `norm_type`,
        `error_if_nonfinite`). `step.grad_norm` is the norm before.
    clip_grad_value: the largest absolute value, as `clip_grad_value_`; before the norm.
    accumulate: that many calls add up their gradients in `.grad`, the last one updates.
    scaler: its scale multiplies the loss, steps whose gradients are not finite are left
        out, and its `update()` is done.
    outputs: from what the model returns to what is returned beside the loss.
    machine, placer, budget, expert, pin, placement, profile, costs, measure, cuda_math,
        cuda_convolutions, splits, split, replicas, exchange, slice_bytes, factors, replan,
        transfers, fit_memory, unroll, memory, spill_to, verbose: as for `baechi.jit`; names are
        `layers.0.fc1.weight` for parameters and buffers, `layers.0.fc1/mm` and
        `backward/layers.0.fc1/mm` for operators.
    check: `"first"`, each program's first call, or N, that call and every Nth after it, is
        compared with the same step of eager PyTorch (docs/checking.md).
    check_tolerance: what may differ, as for `baechi.jit`.
    ranks: "launcher", the devices are divided among the processes that mpirun, torchrun or srun
        has started on this machine. All of them make the same calls with the same arguments and
        the same state, and get the same results (docs/jit.md#several-processes). None: this
        process has all devices.

    The first call with other shapes, types or modes (`model.train()`, `eval()`, autocast)
    compiles. Raises UnsupportedOptimizer at once; the calls raise ImportFailure
    (all operations that cannot be imported, with module and source line), TypeError (an
    argument by name), IndexError (an index or a class out of range), ValueError (a
    machine that is none), CompileError (no placement fits), StepError and CheckError (a
    checked call that is not PyTorch's, with the first operation that differs; nothing has
    changed then).
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer is {optimizer!r}: give one of torch.optim over the model's parameters"
        )
    _check_model(model)
    for name, function in (("loss", loss), ("outputs", outputs)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} is {function!r}: give a function of what the model returns")
    options = CompileOptions(
        machine=limited(machine, memory, spill_to),
        placer=placer,
        budget=budget,
        expert=expert,
        pin=pin,
        placement=placement,
        profile=profile,
        costs=costs,
        measure=measure,
        cuda_math=cuda_math,
        cuda_convolutions=cuda_convolutions,
        splits=splits,
        split=split,
        transfers=transfers,
        fit_memory=fit_memory,
        unroll=unroll,
        verbose=verbose,
        replicas=replicas,
        exchange=exchange,
        slice_bytes=slice_bytes,
        factors=factors,
        replan=replan_of(replan),
    ).replicated()
    check_ranks(ranks, {"check": check is not None})
    if ranks is None:
        warn_of_whole(
            replicas,
            "give ranks='launcher', and they share its devices, or let DistributedDataParallel "
            "exchange the gradients of steps of torch.compile(model, backend='baechi')",
        )
    gradients = GradientOptions.checked(clip_grad_norm, clip_grad_value, accumulate, scaler)
    checks = CheckOptions(check, check_tolerance, cuda_math)
    recipe = Recipe(loss, outputs, gradients)
    shared = None if ranks is None else RankSteps(type(model).__name__, options)
    return TrainingStep(model, optimizer, recipe, options, checks, shared)


def _check_model(model: torch.nn.Module) -> None:
    """Raises TypeError for what is no module of Python that runs as one."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"the model is a {type(model).__name__}: give a torch.nn.Module (of a function "
            "without parameters, torch.compile(function, backend='baechi'))"
        )
    for name, module in model.named_modules():
        what = f"the model's '{name}'" if name else "the model"
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            # Its process group exchanges gradients that a step would have used by then.
            raise TypeError(
                f"{what} is a DistributedDataParallel, which exchanges gradients between "
                "processes: give its .module, with replicas=N and the batch of all ranks, in one "
                "process (docs/replicas.md)"
            )
        if isinstance(module, torch.nn.DataParallel):
            raise TypeError(
                f"{what} is a DataParallel, which cuts the batch itself: give its .module, with "
                "replicas=N (docs/replicas.md)"
            )
        if isinstance(module, torch.jit.ScriptModule):
            # The values that its code reads are none of Python's, which a step looks at.
            raise TypeError(
                f"{what} is scripted or traced by torch.jit: give the module that it was made of"
            )


class TrainingStep(CompiledOfTorch[StepProgram]):
    """A training step that runs on several devices; see `compile_step`.

    The model's and the optimizer's own tensors are its state: every call reads them,
    and writes what is new into their memory.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        recipe: Recipe,
        options: CompileOptions,
        checks: CheckOptions | None = None,
        ranks: RankSteps | None = None,
    ):
        super().__init__()
        self._ranks = ranks
        self._checks = checks or CheckOptions()
        self._model, self._optimizer = model, optimizer
        self._recipe, self._options = recipe, options
        self._used: dict[Any, tuple[list[str], list[str], left_behind.Journal]] = {}
        self._read: dict[Any, list[surroundings.Snapshot]] = {}  # by keys without it
        self._surroundings = surroundings.Surroundings()
        self._traces: dict[Any, TrainingTrace] = {}
        self._programs: dict[Any, StepProgram] = {}
        self._accumulated = 0  # calls since the last update
        self.grad_norm: torch.Tensor | None = None
        state = State(model, optimizer)  # says at once what no step can have
        if recipe.gradients.clip_norm is not None:
            _tell_of_unclipped(state)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One step; the loss before the update, a tensor of one number. Or that and what
        is returned beside it."""
        if self._ranks is not None and self._ranks.are_there():
            with self._whole_call(lambda: False), self._ranks.calling():
                return self._run(self._compiled(_Call(self, args, kwargs)))
        call: _Call | None = None

        def is_compiled() -> bool:
            nonlocal call
            found = _Call(self, args, kwargs)
            program = self._programs.get(found.key)
            call = None if program is None or program.is_measured() else found
            return call is not None

        with self._whole_call(is_compiled):
            # What is not compiled waited for its turn to be: another call may have come first.
            return self._run(call or self._compiled(_Call(self, args, kwargs)))

    def _compiled(self, call: _Call) -> _Call:
        name = type(self._model).__name__
        with progress.shown(self._options.verbose, name):
            if (program := self._programs.get(call.key)) is not None:
                if program.is_measured():
                    self._programs[call.key] = program.replanned(name)
                return call
            progress.phase("import")
            compiler.preload()
            traced = self._trace(call)
            if call.key not in self._programs:  # tracing finds it
                module = self._lowered(traced)
                if self._ranks is not None and self._ranks.are_there():
                    made: StepProgram = self._ranks.program(module, traced, call.state.device)
                else:
                    made = StepProgram(module, self._options, traced)
                self._programs[call.key] = made
                if traced.draws and call.state.device.type != "cpu":
                    gpu.tell_of_draws(call.state.device)
        return call

    def _run(self, call: _Call) -> Any:
        program = self._latest = self._programs[call.key]
        given = call.state, call.inputs, call.phase
        if self._checks.is_due(program.calls):
            checked = StepCheck(program, *given, self._recipe, self._checks, self._options)
            loss, further, norm = checked.run()
        else:
            loss, further, norm = program.run(*given, self._recipe.gradients)
        if call.phase.cohorts:
            self._accumulated, self.grad_norm = 0, norm
            self._optimizer._opt_called = True  # which learning rate schedulers ask
        else:
            self._accumulated += 1
        return loss if program.traced.outputs is None else (loss, further)

    def __repr__(self) -> str:
        count = len(self._programs)
        compiled = f"{count} program{'s' * (count != 1)} compiled" if count else "not compiled yet"
        names = f"{type(self._model).__name__} with {type(self._optimizer).__name__}"
        return f"<baechi training step of {names} on {self._options.machine}: {compiled}>"

    def state_dict(self) -> dict[str, Any]:
        """`{"model": …, "optimizer": …}`, as both give it, and `"scaler"` if there is one."""
        with self._turn:
            state = {"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict()}
            scaler = self._recipe.gradients.scaler
            return state if scaler is None else state | {"scaler": scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        with self._turn:
            self._model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
            if self._recipe.gradients.scaler is not None:
                self._recipe.gradients.scaler.load_state_dict(state["scaler"])

    def lower(self, *args: Any, **kwargs: Any) -> str:
        """The imported module as MLIR text, for these arguments."""
        with self._whole_call(lambda: False):
            return self._lowered(self._trace(_Call(self, args, kwargs)))

    def _lowered(self, traced: TrainingTrace) -> str:
        name = type(self._model).__name__
        name = name if name.isidentifier() else "step"
        return linalg.lower(traced.graph, name, traced.arguments, traced.results)[0]

    def _trace(self, call: _Call) -> TrainingTrace:
        if call.key not in self._traces:
            empty = [x for x in call.inputs.tensors if x.numel() == 0]
            attributes = left_behind.attributes_of(self._model)
            try:
                traced = self._traced(call)
                left_behind.guard_computed(self._model)
            except ImportFailure:
                left_behind.put_back(attributes)
                self._forget(call)
                raise
            except ZeroDivisionError as error:  # the mean over no elements
                if not empty:
                    raise
                raise ImportFailure(
                    f"a batch has a tensor of shape {tuple(empty[0].shape)}: there is nothing "
                    "to train by; leave such batches out"
                ) from error
            self._traces[call.key] = traced
        return self._traces[call.key]

    def _traced(self, call: _Call) -> TrainingTrace:
        once = call.read
        with left_behind.without_draws(call.objects):
            if call.first_key not in self._used:
                call.inputs.check_signature()
                self._note(call)
                self._used[call.first_key] = used_parameters(call.state, self._recipe, call.inputs)
                call.find_phase(self)
                once = call.look(self)[0]
            traced = trace_step(call.state, self._recipe, call.inputs, call.phase)
        left_behind.check_unchanged(call.read, once, call.look(self)[0])
        journal = self._used[call.first_key][2]
        journal.check_repeated(traced.journal, call.read, once)
        return traced

    def _note(self, call: _Call) -> None:
        """Says what a step is compiled once more for, where it is a Python value."""
        before = self._read.setdefault(call.plain_key, [])
        if before:
            changed = surroundings.difference(before[-1], call.read)
            mend = "give what changes to the step as a tensor: an argument, or a buffer"
            if len(before) == _MOST_SURROUNDINGS:
                raise ImportFailure(
                    f"the step was compiled {len(before)} times, as Python values that it reads "
                    f"change: {changed}; {mend}"
                )
            if len(before) == 1:
                users.warn(f"the step is compiled again: {changed}; {mend}")
        before.append(call.read)

    def _forget(self, call: _Call) -> None:
        """What was found before a refusal: the next call is as the first one."""
        self._used.pop(call.first_key, None)
        noted = self._read.get(call.plain_key, [])
        if call.read in noted:
            noted.remove(call.read)


def _tell_of_unclipped(state: State) -> None:
    """In a loop, `clip_grad_norm_(model.parameters())` has these in the norm, too."""
    ours = {id(p) for group in state.optimizer.param_groups for p in group["params"]}
    others = [n for n, p in state.parameters.items() if p.requires_grad and id(p) not in ours]
    if others:
        users.warn(
            f"clip_grad_norm= is of the optimizer's parameters: '{others[0]}' "
            + (f"and {len(others) - 1} others " if others[1:] else "")
            + "of the model are not among them, and add nothing to the norm"
        )


class _Call:
    """The state, the arguments and the modes that a step is called with.

    key: of the program, which is not known before it has been found what the loss
    depends on; then it is one that no program has.
    """

    def __init__(self, step: TrainingStep, args: tuple, kwargs: dict):
        if torch.is_inference_mode_enabled():
            raise RuntimeError("a training step was called under torch.inference_mode()")
        loss = step._recipe.loss
        self.state = State(step._model, step._optimizer)
        gpu.refuse_autocast(self.state.device)
        if step._checks.check is not None:
            gpu.refuse_checks(self.state.device)
        self.inputs = Inputs(step._model, loss is not None, args, kwargs, self.state.device)
        within = loss.modules() if isinstance(loss, torch.nn.Module) else ()
        modules = tuple(module.training for module in within)
        self.plain_key = self.inputs.key, self.state.key(), modes.key(), modules
        self.read, self.objects = self.look(step)
        self.first_key = self.plain_key, tuple(self.read.items())
        self.phase = Phase([], [], [], [])
        self.key: Any = None
        self.find_phase(step)

    def look(self, step: TrainingStep) -> tuple[surroundings.Snapshot, surroundings.Objects]:
        recipe = step._recipe
        functions = {"loss": recipe.loss, "outputs": recipe.outputs}
        return step._surroundings.look(step._model, functions)

    def find_phase(self, step: TrainingStep) -> None:
        if self.first_key not in step._used:
            return
        used, others, _ = step._used[self.first_key]
        state, calls = self.state, step._recipe.gradients.accumulate
        accumulated = []
        if calls > 1:
            gradients = {name: state.parameters[name].grad for name in state.trained}
            accumulated = [
                name
                for name, gradient in gradients.items()
                if gradient is not None and not isinstance(gradient, Consumed)
            ]
            if not accumulated:  # at the beginning, or after zero_grad()
                step._accumulated = 0
        updates = step._accumulated + 1 >= calls
        cohorts = state.cohorts([*used, *accumulated]) if updates else []
        self.phase = Phase(used, others, accumulated, cohorts)
        self.key = self.first_key, self.phase.key()
