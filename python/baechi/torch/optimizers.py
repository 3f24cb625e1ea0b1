# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The updates of PyTorch's optimizers, as functions of values.

What changes from step to step without depending on data (learning rates of
schedulers, Adam's corrections) is computed on the host, in double precision as
PyTorch does, and handed to the step as numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

Tensors = Mapping[str, torch.Tensor]


class UnsupportedOptimizer(ValueError):
    """The optimizer cannot be compiled into a step; the message says why."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """One optimizer's update of one parameter, for fixed settings.

    state: names of the tensors of a parameter's shape that it keeps.
    numbers: from the group's settings and the step's number (from 1) to what
        `update` gets besides tensors.
    update: (parameter, gradient, state, numbers) to the parameter's next value
        and the next state.
    """

    state: tuple[str, ...]
    numbers: Callable[[Mapping[str, Any], int], dict[str, float]]
    update: Callable[[torch.Tensor, torch.Tensor, Tensors, Tensors], tuple[torch.Tensor, Tensors]]


def rule_for(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> Rule:
    """The rule of a group of parameters. Raises UnsupportedOptimizer."""
    make = _RULES.get(type(optimizer))
    if make is None:
        known = ", ".join(kind.__name__ for kind in _RULES)
        raise UnsupportedOptimizer(
            f"the optimizer {type(optimizer).__name__} cannot be compiled into a step; "
            f"known: {known}"
        )
    for flag in ("differentiable", "capturable"):
        if group.get(flag):
            raise UnsupportedOptimizer(
                f"{type(optimizer).__name__}({flag}=True) cannot be compiled into a step"
            )
    return make(group)


def fixed_settings(group: Mapping[str, Any]) -> tuple:
    """The settings that a compiled step has in its code: another value is
    another program. The learning rate is not among them."""
    skipped = {"params", "lr", "initial_lr", "foreach", "fused", "param_names"}
    return tuple(sorted((key, repr(value)) for key, value in group.items() if key not in skipped))


def _sgd(group: Mapping[str, Any]) -> Rule:
    """torch.optim.SGD: momentum, dampening, Nesterov, weight decay."""
    momentum, nesterov = group["momentum"], group["nesterov"]
    decay, maximize = group["weight_decay"], group["maximize"]
    damped = momentum != 0 and group["dampening"] != 0

    def numbers(group, step):
        values = {"lr": float(group["lr"])}
        if damped:  # PyTorch's first momentum is the whole gradient
            values["gradient_weight"] = 1.0 if step == 1 else 1.0 - group["dampening"]
        return values

    def update(param, grad, state, numbers):
        grad = -grad if maximize else grad
        if decay:
            grad = grad + decay * param
        if momentum == 0:
            return param - numbers["lr"] * grad, {}
        added = grad * numbers["gradient_weight"] if damped else grad
        buffer = momentum * state["momentum_buffer"] + added
        grad = grad + momentum * buffer if nesterov else buffer
        return param - numbers["lr"] * grad, {"momentum_buffer": buffer}

    return Rule(("momentum_buffer",) if momentum else (), numbers, update)


def _adam(group: Mapping[str, Any]) -> Rule:
    """torch.optim.Adam and AdamW."""
    beta1, beta2 = map(float, group["betas"])
    epsilon, decay = group["eps"], group["weight_decay"]
    amsgrad, maximize = group["amsgrad"], group["maximize"]
    decoupled = bool(decay) and group.get("decoupled_weight_decay", False)

    def numbers(group, step):
        rate = float(group["lr"])
        values = {
            "step_size": rate / (1 - beta1**step),
            "correction": (1 - beta2**step) ** 0.5,
        }
        if decoupled:
            values["keep"] = 1 - rate * decay
        return values

    def update(param, grad, state, numbers):
        grad = -grad if maximize else grad
        if decoupled:
            param = param * numbers["keep"]
        elif decay:
            grad = grad + decay * param
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean = mean + (1 - beta1) * (grad - mean)
        square = beta2 * square + (1 - beta2) * (grad * grad)
        new = {"exp_avg": mean, "exp_avg_sq": square}
        largest = square
        if amsgrad:
            largest = new["max_exp_avg_sq"] = torch.maximum(state["max_exp_avg_sq"], square)
        divisor = largest.sqrt() / numbers["correction"] + epsilon
        return param - numbers["step_size"] * (mean / divisor), new

    names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else []))
    return Rule(names, numbers, update)


# AdamW is Adam whose groups say `decoupled_weight_decay`.
_RULES = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.AdamW: _adam}
