# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The updates of torch.optim's optimizers, as functions of values.

Each is the `_single_tensor_*` of its file in torch/optim, without mutations. All that
changes from step to step (rates, momentum, decay, corrections) is a number of the
step's, computed on the host in double precision as PyTorch does: a schedule needs no
other program. What decides which operations there are is in the rule's `form`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

Tensors = Mapping[str, torch.Tensor]
Settings = Mapping[str, Any]
Numbers = dict[str, float]


def zeros(param: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(param, memory_format=torch.preserve_format)


@dataclasses.dataclass(frozen=True)
class Rule:
    """One optimizer's update of one parameter.

    form: what the operations depend on; equal forms are one program.
    tensors: what it keeps of a parameter, with the first value of each.
    counters: what it keeps as one number on the host (`step`), with the first values.
    numbers: from settings and counters, as they were after the last update, and whether
        `tensors` are there yet, to what `update` gets besides tensors, and the counters
        after this update.
    update: (parameter, gradient, tensors, numbers) to the parameter's next value and
        those of the tensors.
    kinds: which of `tensors` it keeps of a parameter; None: all.
    """

    form: tuple
    tensors: Mapping[str, Callable[[torch.Tensor], torch.Tensor]]
    counters: Numbers
    numbers: Callable[[Settings, Numbers, bool], tuple[Numbers, Numbers]]
    update: Callable[[torch.Tensor, torch.Tensor, Tensors, Tensors], tuple[torch.Tensor, Tensors]]
    kinds: Callable[[torch.Tensor], Collection[str]] | None = None

    def kinds_of(self, param: torch.Tensor) -> Collection[str]:
        return self.tensors if self.kinds is None else self.kinds(param)


def _regularized(group: Settings) -> Callable[..., torch.Tensor]:
    """The gradient as `maximize` and `weight_decay` make it."""
    maximize, decay = group["maximize"], group["weight_decay"] != 0

    def regularized(grad, param, numbers):
        grad = -grad if maximize else grad
        return grad + numbers["weight_decay"] * param if decay else grad

    return regularized


def _plain(group: Settings, *names: str) -> Numbers:
    """Settings that are numbers of the step as they are."""
    return {name: float(group[name]) for name in names}


def _decay(group: Settings) -> Numbers:
    return _plain(group, "weight_decay") if group["weight_decay"] != 0 else {}


def _form(group: Settings, *further: Any) -> tuple:
    return (bool(group["maximize"]), group["weight_decay"] != 0, *further)


def sgd(group: Settings) -> Rule:
    with_momentum, nesterov = group["momentum"] != 0, bool(group["nesterov"])
    damped = with_momentum and group["dampening"] != 0
    regularized = _regularized(group)

    def numbers(group, counters, begun):
        values = _plain(group, "lr") | _decay(group)
        if with_momentum:
            values |= _plain(group, "momentum")
        if damped:  # the first momentum is the whole gradient
            values["gradient_weight"] = 1.0 - group["dampening"] if begun else 1.0
        return values, {}

    def update(param, grad, state, numbers):
        grad = regularized(grad, param, numbers)
        if not with_momentum:
            return param - numbers["lr"] * grad, {}
        added = grad * numbers["gradient_weight"] if damped else grad
        buffer = numbers["momentum"] * state["momentum_buffer"] + added
        grad = grad + numbers["momentum"] * buffer if nesterov else buffer
        return param - numbers["lr"] * grad, {"momentum_buffer": buffer}

    tensors = {"momentum_buffer": zeros} if with_momentum else {}
    form = _form(group, with_momentum, nesterov, damped)
    return Rule(form, tensors, {}, numbers, update)


def _moments(grad: torch.Tensor, state: Tensors, numbers: Tensors) -> tuple[Any, Any]:
    """The running means of the gradient and of its square."""
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean = mean + numbers["mean_weight"] * (grad - mean)
    return mean, numbers["beta2"] * square + numbers["square_weight"] * (grad * grad)


def _moment_numbers(group: Settings) -> Numbers:
    beta1, beta2 = map(float, group["betas"])
    return {
        "mean_weight": 1 - beta1,
        "beta2": beta2,
        "square_weight": 1 - beta2,
        "eps": float(group["eps"]),
    }


def _decayed(group: Settings) -> tuple[Callable[..., tuple], Callable[[Settings], Numbers], tuple]:
    """Weight decay that acts on the parameter itself (AdamW) or on the gradient."""
    decay = group["weight_decay"] != 0
    decoupled = decay and bool(group.get("decoupled_weight_decay", False))
    maximize = bool(group["maximize"])

    def decayed(param, grad, numbers):
        grad = -grad if maximize else grad
        if decoupled:
            return param * numbers["keep"], grad
        return param, grad + numbers["weight_decay"] * param if decay else grad

    def numbers(group):
        if decoupled:
            return {"keep": 1 - float(group["lr"]) * float(group["weight_decay"])}
        return _decay(group)

    return decayed, numbers, _form(group, decoupled)


def adam(group: Settings) -> Rule:
    """Adam and AdamW, whose groups say `decoupled_weight_decay`."""
    amsgrad = bool(group["amsgrad"])
    decayed, decay_numbers, form = _decayed(group)

    def numbers(group, counters, _):
        beta1, beta2 = map(float, group["betas"])
        step = counters["step"] + 1
        values = _moment_numbers(group) | decay_numbers(group)
        values["step_size"] = float(group["lr"]) / (1 - beta1**step)
        values["correction"] = (1 - beta2**step) ** 0.5
        return values, {"step": step}

    def update(param, grad, state, numbers):
        param, grad = decayed(param, grad, numbers)
        mean, square = _moments(grad, state, numbers)
        new = {"exp_avg": mean, "exp_avg_sq": square}
        largest = square
        if amsgrad:
            largest = new["max_exp_avg_sq"] = torch.maximum(state["max_exp_avg_sq"], square)
        divisor = largest.sqrt() / numbers["correction"] + numbers["eps"]
        return param - numbers["step_size"] * (mean / divisor), new

    names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else []))
    return Rule((*form, amsgrad), dict.fromkeys(names, zeros), {"step": 0.0}, numbers, update)


def nadam(group: Settings) -> Rule:
    decayed, decay_numbers, form = _decayed(group)

    def numbers(group, counters, _):
        beta1, beta2 = map(float, group["betas"])
        rate, step = float(group["lr"]), counters["step"] + 1
        mu, following = (
            beta1 * (1.0 - 0.5 * 0.96 ** (count * group["momentum_decay"]))
            for count in (step, step + 1)
        )
        # PyTorch keeps the product as a tensor, in its precision.
        product = (torch.tensor(counters["mu_product"]) * mu).item()
        values = _moment_numbers(group) | decay_numbers(group)
        values["correction"] = 1 - beta2**step
        values["gradient_size"] = rate * (1.0 - mu) / (1.0 - product)
        values["mean_size"] = rate * following / (1.0 - product * following)
        return values, {"step": step, "mu_product": product}

    def update(param, grad, state, numbers):
        param, grad = decayed(param, grad, numbers)
        mean, square = _moments(grad, state, numbers)
        divisor = (square / numbers["correction"]).sqrt() + numbers["eps"]
        param = param - numbers["gradient_size"] * (grad / divisor)
        param = param - numbers["mean_size"] * (mean / divisor)
        return param, {"exp_avg": mean, "exp_avg_sq": square}

    tensors = dict.fromkeys(("exp_avg", "exp_avg_sq"), zeros)
    return Rule(form, tensors, {"step": 0.0, "mu_product": 1.0}, numbers, update)


def radam(group: Settings) -> Rule:
    decayed, decay_numbers, form = _decayed(group)

    def numbers(group, counters, _):
        beta1, beta2 = map(float, group["betas"])
        step = counters["step"] + 1
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction
        values = _moment_numbers(group) | decay_numbers(group)
        values["step_size"] = float(group["lr"]) / (1 - beta1**step)
        # Nothing is rectified before there is enough to do it by.
        values["rectified"] = float(length > 5.0)
        values["rectification"] = 1.0
        if length > 5.0:
            above = (length - 4) * (length - 2) * longest
            below = (longest - 4) * (longest - 2) * length
            values["rectification"] = (above / below) ** 0.5 * correction**0.5
        return values, {"step": step}

    def update(param, grad, state, numbers):
        param, grad = decayed(param, grad, numbers)
        mean, square = _moments(grad, state, numbers)
        rectified = numbers["rectification"] / (square.sqrt() + numbers["eps"])
        factor = torch.where(numbers["rectified"] > 0, rectified, torch.ones_like(rectified))
        new = {"exp_avg": mean, "exp_avg_sq": square}
        return param - numbers["step_size"] * mean * factor, new

    tensors = dict.fromkeys(("exp_avg", "exp_avg_sq"), zeros)
    return Rule(form, tensors, {"step": 0.0}, numbers, update)


def adamax(group: Settings) -> Rule:
    regularized = _regularized(group)

    def numbers(group, counters, _):
        beta1, beta2 = map(float, group["betas"])
        step = counters["step"] + 1
        values = {"mean_weight": 1 - beta1, "beta2": beta2} | _plain(group, "eps") | _decay(group)
        values["step_size"] = float(group["lr"]) / (1 - beta1**step)
        return values, {"step": step}

    def update(param, grad, state, numbers):
        grad = regularized(grad, param, numbers)
        mean = state["exp_avg"] + numbers["mean_weight"] * (grad - state["exp_avg"])
        largest = torch.maximum(state["exp_inf"] * numbers["beta2"], grad.abs() + numbers["eps"])
        new = {"exp_avg": mean, "exp_inf": largest}
        return param - numbers["step_size"] * (mean / largest), new

    tensors = dict.fromkeys(("exp_avg", "exp_inf"), zeros)
    return Rule(_form(group), tensors, {"step": 0.0}, numbers, update)


def adagrad(group: Settings) -> Rule:
    regularized, initial = _regularized(group), group["initial_accumulator_value"]

    def numbers(group, counters, _):
        step = counters["step"] + 1
        rate = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        return {"step_size": rate} | _plain(group, "eps") | _decay(group), {"step": step}

    def update(param, grad, state, numbers):
        grad = regularized(grad, param, numbers)
        total = state["sum"] + grad * grad
        return param - numbers["step_size"] * (grad / (total.sqrt() + numbers["eps"])), {
            "sum": total
        }

    tensors = {"sum": lambda param: torch.full_like(param, initial)}
    return Rule(_form(group), tensors, {"step": 0.0}, numbers, update)


def adadelta(group: Settings) -> Rule:
    regularized = _regularized(group)

    def numbers(group, counters, _):
        values = _plain(group, "lr", "rho", "eps") | _decay(group)
        values["new_weight"] = 1 - values["rho"]
        return values, {"step": counters["step"] + 1}

    def update(param, grad, state, numbers):
        grad = regularized(grad, param, numbers)
        rho, weight, eps = (numbers[name] for name in ("rho", "new_weight", "eps"))
        square = rho * state["square_avg"] + weight * (grad * grad)
        delta = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * grad
        new = {
            "square_avg": square,
            "acc_delta": rho * state["acc_delta"] + weight * (delta * delta),
        }
        return param - numbers["lr"] * delta, new

    tensors = dict.fromkeys(("square_avg", "acc_delta"), zeros)
    return Rule(_form(group), tensors, {"step": 0.0}, numbers, update)


def rmsprop(group: Settings) -> Rule:
    regularized, centered = _regularized(group), bool(group["centered"])
    with_momentum = group["momentum"] > 0

    def numbers(group, counters, _):
        values = _plain(group, "lr", "alpha", "eps") | _decay(group)
        values["new_weight"] = 1 - values["alpha"]
        if with_momentum:
            values |= _plain(group, "momentum")
        return values, {"step": counters["step"] + 1}

    def update(param, grad, state, numbers):
        grad = regularized(grad, param, numbers)
        weight = numbers["new_weight"]
        square = numbers["alpha"] * state["square_avg"] + weight * (grad * grad)
        new, spread = {"square_avg": square}, square
        if centered:
            mean = state["grad_avg"] + weight * (grad - state["grad_avg"])
            new["grad_avg"], spread = mean, square - mean * mean
        change = grad / (spread.sqrt() + numbers["eps"])
        if with_momentum:
            change = numbers["momentum"] * state["momentum_buffer"] + change
            new["momentum_buffer"] = change
        return param - numbers["lr"] * change, new

    names = ["square_avg"]
    names += ["momentum_buffer"] if with_momentum else []
    names += ["grad_avg"] if centered else []
    form = _form(group, with_momentum, centered)
    return Rule(form, dict.fromkeys(names, zeros), {"step": 0.0}, numbers, update)


def rprop(group: Settings) -> Rule:
    maximize, rate = bool(group["maximize"]), float(group["lr"])

    def numbers(group, counters, _):
        names = ("etaminus", "etaplus", "smallest", "largest")
        values = map(float, (*group["etas"], *group["step_sizes"]))
        return dict(zip(names, values, strict=True)), {"step": counters["step"] + 1}

    def update(param, grad, state, numbers):
        grad = -grad if maximize else grad
        sign = (grad * state["prev"]).sign()
        factor = torch.where(sign == 0, torch.ones_like(sign), sign)  # of NaN it is NaN
        factor = torch.where(sign > 0, numbers["etaplus"], factor)
        factor = torch.where(sign < 0, numbers["etaminus"], factor)
        size = torch.maximum(state["step_size"] * factor, numbers["smallest"])
        size = torch.minimum(size, numbers["largest"])
        grad = torch.where(sign < 0, torch.zeros_like(grad), grad)
        return param - grad.sign() * size, {"prev": grad, "step_size": size}

    tensors = {"prev": zeros, "step_size": lambda param: torch.full_like(param, rate)}
    return Rule((maximize,), tensors, {"step": 0.0}, numbers, update)


def _stored(number: float) -> float:
    """As optimizers keep it in a tensor of their own, whatever the parameters' type is."""
    kept = torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32
    return torch.tensor(number, dtype=kept).item()


def asgd(group: Settings) -> Rule:
    regularized = _regularized(group)

    def numbers(group, counters, _):
        rate, lambd, step = float(group["lr"]), group["lambd"], counters["step"] + 1
        eta, mu = counters["eta"], counters["mu"]
        values = {"keep": 1 - lambd * eta, "eta": eta, "mu": mu} | _decay(group)
        following = {
            "step": step,
            "eta": _stored(rate / (1 + lambd * rate * step) ** group["alpha"]),
            "mu": _stored(1 / max(1, step - group["t0"])),
        }
        return values, following

    def update(param, grad, state, numbers):
        grad = regularized(grad, param, numbers)
        param = param * numbers["keep"] - numbers["eta"] * grad
        mean = state["ax"] + (param - state["ax"]) * numbers["mu"]
        return param, {"ax": torch.where(numbers["mu"] == 1, param, mean)}

    counters = {"step": 0.0, "eta": _stored(float(group["lr"])), "mu": 1.0}
    return Rule(_form(group), {"ax": zeros}, counters, numbers, update)
