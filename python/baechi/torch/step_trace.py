# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One whole training step as a graph: loss, gradients, buffers, update."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.func import functional_call
from torch.utils import _pytree as pytree

from baechi.common import collector
from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch.names import Recorder
from baechi.importer.torch.refusals import DATA_DEPENDENT, line_of
from baechi.importer.torch.trace import Trace, lowerable_operations, trace
from baechi.torch import modes
from baechi.torch.gpu import mend_of, stand_in
from baechi.torch.guard import Guarded
from baechi.torch.inputs import Inputs
from baechi.torch.left_behind import Journal
from baechi.torch.state import Cohort, State
from baechi.torch.training_trace import LOSS, Described, Outputs, Phase, Recipe, TrainingTrace

# What models and losses raise of arguments that do not fit.
_OF_ARGUMENTS = (
    AssertionError,
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
)
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def used_parameters(
    state: State, recipe: Recipe, inputs: Inputs
) -> tuple[list[str], list[str], Journal]:
    """The parameters that the loss depends on, trained and not: PyTorch leaves the
    rest, and their momentum, alone. Nothing is computed for it but shapes. And what
    model and loss asked for."""
    trained = set(state.trained)
    names = [n for n, p in state.parameters.items() if p.requires_grad]
    run = _Forward(state, recipe, inputs, Recorder(state.model))
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with collector.paused(), fake as mode, lowerable_operations():
        fakes = {n: mode.from_tensor(stand_in(p.detach())) for n, p in state.parameters.items()}
        for name in names:
            fakes[name].requires_grad_()
        buffers = {n: mode.from_tensor(stand_in(b.detach())) for n, b in state.buffers.items()}
        given = [mode.from_tensor(stand_in(x.detach())) for x in inputs.tensors]
        place = ""
        try:
            with torch.enable_grad(), _quiet():
                value = run(fakes, buffers, given)[0]
                place = "in the backward pass"
            if not value.requires_grad or not trained:
                raise ImportFailure("the loss depends on no parameter that the optimizer has")
            gradients = torch.autograd.grad(value, [fakes[n] for n in names], allow_unused=True)
        except DATA_DEPENDENT:
            # The trace will say where, and what else is wrong.
            return state.trained, [], run.journal
        except _OF_ARGUMENTS as error:
            raise ImportFailure(
                f"{line_of(error, place or run.place)}: {str(error).strip().splitlines()[0]}; the "
                f"step was called with {inputs.described()}{mend_of(error, state.device)}"
            ) from error
    reached = {
        name for name, gradient in zip(names, gradients, strict=True) if gradient is not None
    }
    used = [name for name in state.trained if name in reached]
    if not used:
        raise ImportFailure("the loss depends on no parameter that the optimizer has")
    return used, [name for name in names if name in reached - trained], run.journal


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch logs the traceback of an error that is raised, and told, anyway."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def trace_step(state: State, recipe: Recipe, inputs: Inputs, phase: Phase) -> TrainingTrace:
    """Traces a step whose arguments are the tensors among `inputs`. Raises ImportFailure."""
    recorder = Recorder(state.model)
    run = _Forward(state, recipe, inputs, recorder)
    numbers = {
        (cohort.label, name): value
        for cohort in phase.cohorts
        for name, value in state.numbers(cohort)[0].items()
    }
    numbers |= {("scaler", name): x for name, x in recipe.gradients.numbers().items()}
    doubles = any(state.parameters[name].dtype == torch.float64 for name in phase.used)
    kept = {name: x for cohort in phase.cohorts for name, x in state.kept(cohort).items()}
    parts = {
        "parameters": {n: p.detach() for n, p in state.parameters.items()},
        "buffers": {n: b.detach() for n, b in state.buffers.items()},
        "kept": kept,
        "gradients": {n: state.parameters[n].detach() for n in phase.accumulated},
        "inputs": [x.detach() for x in inputs.tensors],
        "numbers": {
            key: torch.tensor(value, dtype=torch.float64 if doubles else torch.float32)
            for key, value in numbers.items()
        },
    }
    flat, tree = pytree.tree_flatten(parts)
    updated: list[str] = []  # names of the results, as the trace finds them
    told: list[str] = []

    def step(*values):
        parts = pytree.tree_unflatten(list(values), tree)
        others = {n: p for n, p in parts["parameters"].items() if n not in phase.used}
        scaler = _of("scaler", parts["numbers"])

        with torch.enable_grad():
            leaves = {n: parts["parameters"][n].detach().requires_grad_() for n in phase.used}
            # Cloned, as what is changed in place are not the arguments but the next values.
            buffers = {name: buffer.clone() for name, buffer in parts["buffers"].items()}
            value, further, buffers = run({**others, **leaves}, buffers, parts["inputs"])
            objective = value * scaler["scale"] if scaler else value
            found = torch.autograd.grad(objective, leaves.values(), materialize_grads=True)
        gradients = dict(zip(leaves, found, strict=True))
        for name in phase.accumulated:
            before = parts["gradients"][name]
            gradients[name] = before + gradients[name] if name in gradients else before
        updated[:], told[:] = [], [LOSS]
        results, new = [value.detach()], []
        if phase.cohorts:
            with recorder.scope("gradients"):
                gradients, beside = recipe.gradients.applied(gradients, scaler)
            told.extend(beside)
            results += beside.values()
            for cohort in phase.cohorts:
                given = _of(cohort.label, parts["numbers"])
                for name in cohort.parameters:
                    kinds = cohort.group.rule.kinds_of(state.parameters[name])
                    old = {kind: parts["kept"][f"{name}/{kind}"] for kind in kinds}
                    with recorder.scope(f"update/{name}"):
                        next_value, state_of = _updated(
                            cohort, parts["parameters"][name], gradients[name], old, given
                        )
                    updated.extend([name, *(f"{name}/{kind}" for kind in old)])
                    new += [next_value, *(state_of[kind] for kind in old)]
        else:
            updated.extend(f"{name}/grad" for name in gradients)
            new += gradients.values()
        updated.extend(buffers)
        told.extend(f"output/{i}" for i in range(len(further)))
        return [*results, *(x.detach() for x in further), *new, *buffers.values()]

    names = inputs.names()
    argument_names = [
        *parts["parameters"],
        *parts["buffers"],
        *parts["kept"],
        *(f"{name}/grad" for name in phase.accumulated),
        *(names[i] for i in inputs.positions),
        *(f"{o}/{n}" if o == "scaler" else f"optimizer/{o}/{n}" for o, n in numbers),
    ]
    # Gradients and updates are computed outside of autocast, as PyTorch does.
    with torch.no_grad(), modes.autocast(None):
        traced = trace(step, list(map(stand_in, flat)), argument_names, recorder)
    _check_captured(traced, state)
    first = len(flat) - len(parts["inputs"]) - len(numbers)
    described = Described(traced, flat, told, updated, state)
    return described.trace(first, len(parts["inputs"]), list(numbers), run.outputs, run.journal)


def _of(owner: str, numbers: Mapping[tuple[str, str], torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value for (whose, name), value in numbers.items() if whose == owner}


def _updated(cohort: Cohort, param, gradient, kept, numbers):
    """The rule's update; of numbers of 16 bits it is computed in 32."""
    wide = _WIDER.get(param.dtype)
    if not param.dim():
        # Python's numbers in PyTorch: they change no type, also not that of a scalar.
        numbers = {name: x.to(wide or param.dtype) for name, x in numbers.items()}
    if wide is None:
        return cohort.group.rule.update(param, gradient, kept, numbers)
    new, state = cohort.group.rule.update(
        param.to(wide), gradient.to(wide), {k: x.to(wide) for k, x in kept.items()}, numbers
    )
    return new.to(param.dtype), {kind: x.to(kept[kind].dtype) for kind, x in state.items()}


class _Whole(torch.nn.Module):
    """A model within which its loss is called, too, so that both see the same parameters."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, call: Callable[[], Any]) -> Any:
        return call()


class _Forward:
    """Model and loss as a function of their tensors."""

    def __init__(self, state: State, recipe: Recipe, inputs: Inputs, recorder: Recorder):
        self._model, self._recipe, self._inputs = state.model, recipe, inputs
        self._whole = _Whole(state.model)
        self._recorder, self._autocast = recorder, modes.autocast_key()
        # Where the model holds each tensor of its state, by its first name.
        # `functional_call` can find those of tied weights itself, but of a module that
        # is part of two others it would put back the wrong tensors.
        first: dict[torch.Tensor, str] = {}
        self._places: dict[str, str] = {}
        for path, module in state.model.named_modules():
            held = {**module._parameters, **module._buffers}
            for leaf, tensor in held.items():
                if tensor is not None:
                    name = f"{path}.{leaf}" if path else leaf
                    self._places[name] = first.setdefault(tensor, name)
        self.outputs: Outputs | None = None  # of the last call
        self.journal = Journal()  # of the last call
        self.place = ""  # where the last call is

    def __call__(
        self, parameters: Mapping[str, torch.Tensor], buffers: Mapping[str, torch.Tensor], given
    ) -> tuple[torch.Tensor, list[torch.Tensor], dict[str, torch.Tensor]]:
        """The loss, the tensors that are returned beside it, and the buffers' next values."""
        inputs, kwargs, target = self._inputs.filled(given)
        values = {**parameters, **buffers}
        held = {f"model.{place}": values[name] for place, name in self._places.items()}

        self.journal, self.place = Journal(), "in the forward pass"

        def call():
            with modes.autocast(self._autocast), Guarded(self.journal):
                output = self._model(*inputs, **kwargs)
                self.place = "in the loss"
                with self._recorder.scope(LOSS):
                    value, further = loss_of(self._recipe, output, target)
            self._check_parameters(values)
            return value, further, self._buffers_after(buffers)

        # What `torch.compile` has made of parts of them would run here, or be traced again.
        with _same_modules(self._model), torch.compiler.set_stance("force_eager"):
            value, further, after = functional_call(self._whole, held, (call,), tie_weights=False)
        paths, structure = pytree.tree_flatten_with_path(further)
        leaves = [leaf for _, leaf in paths]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        for path, leaf in paths:
            if not (leaf is None or isinstance(leaf, torch.Tensor | bool | int | float | str)):
                raise ImportFailure(
                    f"beside the loss a {type(leaf).__name__} is returned"
                    f"{' at ' + pytree.keystr(path) if path else ''}: return tensors, numbers, "
                    "strings and containers of them"
                )
        places = iter(range(len(tensors)))
        leaves = [
            Outputs.Result(next(places)) if isinstance(x, torch.Tensor) else x for x in leaves
        ]
        self.outputs = None if further is None else Outputs(leaves, structure, len(tensors))
        return value, tensors, after

    def _check_parameters(self, given: Mapping[str, torch.Tensor]) -> None:
        for place, name in self._places.items():
            owner, _, leaf = place.rpartition(".")
            held = self._model.get_submodule(owner)._parameters
            if leaf in held and held[leaf] is not given[name]:
                raise ImportFailure(
                    f"forward or the loss replaces the parameter '{place}', which a compiled step "
                    "does not see: write into it (x.copy_(value) under torch.no_grad())"
                )

    def _buffers_after(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Their tensors now: changed in place, or replaced (`self.count = self.count + 1`)."""
        after = dict(given)
        for place, name in self._places.items():
            if name not in given:
                continue
            owner, _, leaf = place.rpartition(".")
            now = self._model.get_submodule(owner)._buffers.get(leaf)
            if now is given[name]:
                continue
            before = given[name]
            if now is None or now.shape != before.shape or now.dtype != before.dtype:
                kind = "nothing" if now is None else f"{now.dtype} {list(now.shape)}"
                raise ImportFailure(
                    f"the model replaces its buffer '{place}' ({before.dtype} "
                    f"{list(before.shape)}) by {kind}: a step must leave its type and shape"
                )
            after[name] = now.detach()
        return after


@contextlib.contextmanager
def _same_modules(model: torch.nn.Module) -> Iterator[None]:
    """Puts back the modules that forward replaces, and raises ImportFailure for them."""
    before = [(path, module, dict(module._modules)) for path, module in model.named_modules()]
    replaced = ""
    try:
        yield
    finally:
        for path, module, held in before:
            if module._modules != held:
                changed = {n for n, _ in module._modules.items() ^ held.items()}
                replaced = replaced or f"{path}.{min(changed)}".lstrip(".")
                module._modules.clear()
                module._modules.update(held)
    if replaced:
        raise ImportFailure(
            f"forward or the loss replaces the module '{replaced}', which a compiled step does "
            "not see: make it once, and write into its parameters (load_state_dict, or "
            "x.copy_(value) under torch.no_grad())"
        )


def loss_of(recipe: Recipe, output: Any, target: Any) -> tuple[torch.Tensor, Any]:
    """The loss, and what is returned beside it or None."""
    further = None if recipe.outputs is None else recipe.outputs(output)
    value = output if recipe.loss is None else recipe.loss(output, target)
    if isinstance(value, Mapping) and "loss" in value:
        value = value["loss"]
    elif not isinstance(value, torch.Tensor) and hasattr(value, "loss"):
        value = value.loss
    elif isinstance(value, tuple) and value:
        if further is not None:
            raise ImportFailure("give outputs= or return them with the loss, not both")
        value, *rest = value
        further = rest[0] if len(rest) == 1 else tuple(rest)
    if not isinstance(value, torch.Tensor) or value.dim() != 0:
        kind = f"shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
        raise ImportFailure(f"the loss must be a tensor of one number, not of {kind}")
    return value, further


def _check_captured(traced: Trace, state: State) -> None:
    """A parameter that is read as a tensor of its own would have no gradient there."""
    trained = {state.parameters[name].data_ptr(): name for name in state.trained}
    for constant in traced.constants:
        name = trained.get(constant.data_ptr()) if constant.numel() else None
        if name is not None:
            raise ImportFailure(
                f"the loss or the model reads the parameter '{name}' from a variable outside of "
                "the model, where it would get no gradient: read it from the model "
                "(model.parameters(), model.layer.weight) inside the loss"
            )
