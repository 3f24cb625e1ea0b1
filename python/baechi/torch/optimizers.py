# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which optimizers a step can update by, and what of them it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from baechi.torch import matrix_rules, update_rules
from baechi.torch.update_rules import Rule


class UnsupportedOptimizer(ValueError):
    """The optimizer cannot be compiled into a step; the message says why."""


_RULES = {
    torch.optim.SGD: update_rules.sgd,
    torch.optim.Adam: update_rules.adam,
    torch.optim.AdamW: update_rules.adam,
    torch.optim.Adagrad: update_rules.adagrad,
    torch.optim.Adadelta: update_rules.adadelta,
    torch.optim.Adamax: update_rules.adamax,
    torch.optim.NAdam: update_rules.nadam,
    torch.optim.RAdam: update_rules.radam,
    torch.optim.RMSprop: update_rules.rmsprop,
    torch.optim.Rprop: update_rules.rprop,
    torch.optim.ASGD: update_rules.asgd,
    torch.optim.Adafactor: matrix_rules.adafactor,
    torch.optim.Muon: matrix_rules.muon,
}
# Why not, and what to do instead.
_OWN_LOOP = 'torch.compile(model, backend="baechi") and a loop of your own'
_REASONS = {
    "LBFGS": (
        ", as it computes the loss several times in a step",
        f"train with {_OWN_LOOP}: optimizer.step(closure) calls the compiled model",
    ),
    "SparseAdam": (
        ", as gradients are dense here",
        "use Adam, whose update of rows without a gradient decays their averages, with "
        "nn.Embedding(sparse=False); or leave the embedding to PyTorch, compile the rest with "
        'torch.compile(module, backend="baechi"), and keep SparseAdam in a loop of your own',
    ),
}


def rule_for(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> Rule:
    """The rule of a group of parameters. Raises UnsupportedOptimizer."""
    name = type(optimizer).__name__
    make = _RULES.get(type(optimizer))
    if make is None:
        known = ", ".join(kind.__name__ for kind in _RULES)
        reason, mend = _REASONS.get(name, ("", f"train with {_OWN_LOOP}"))
        raise UnsupportedOptimizer(
            f"the optimizer {name} cannot be compiled into a step{reason}: {mend}; known: {known}"
        )
    for flag in ("differentiable", "capturable"):
        if group.get(flag):
            raise UnsupportedOptimizer(f"{name}({flag}=True) cannot be compiled into a step")
    return make(group)


def _check_step(optimizer: torch.optim.Optimizer) -> None:
    # Schedulers replace `step` by one that counts its calls and does the same.
    own = vars(optimizer).get("step")
    if own is not None and not getattr(own, "_wrapped_by_lr_sched", False):
        raise UnsupportedOptimizer(
            f"the `step` of the optimizer {type(optimizer).__name__} was replaced, which a "
            "compiled step would not call; do what it does before or after the call, or train "
            'with torch.compile(model, backend="baechi") and a loop of your own'
        )


def check_hooks(optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.Tensor]) -> None:
    """Refuses what PyTorch would call within `backward()` and `optimizer.step()`, which
    a step does not call. Raises UnsupportedOptimizer."""
    _check_step(optimizer)
    for name, parameter in parameters.items():
        for attribute, register, mend in (
            ("_backward_hooks", "register_hook", "clip_grad_norm=, clip_grad_value= of it"),
            ("_post_accumulate_grad_hooks", "register_post_accumulate_grad_hook", "accumulate="),
        ):
            if getattr(parameter, attribute, None):
                raise UnsupportedOptimizer(
                    f"'{name}' has a hook ({register}), which a compiled step would not call; "
                    f"remove it (compile_step has {mend}), or train with "
                    'torch.compile(model, backend="baechi") and a loop of your own'
                )
    for hooks, register in (
        (optimizer._optimizer_step_pre_hooks, "register_step_pre_hook"),
        (optimizer._optimizer_step_post_hooks, "register_step_post_hook"),
        (_global_optimizer_pre_hooks, "register_optimizer_step_pre_hook"),
        (_global_optimizer_post_hooks, "register_optimizer_step_post_hook"),
    ):
        if hooks:
            raise UnsupportedOptimizer(
                f"the optimizer {type(optimizer).__name__} has a hook ({register}), which a "
                "compiled step would not call; remove it, and do what it does before or after "
                "step(...)"
            )
