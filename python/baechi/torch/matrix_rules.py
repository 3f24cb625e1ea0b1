# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The updates of torch.optim's optimizers that look at matrices as a whole; see
update_rules.py."""

from __future__ import annotations

import math

import torch

from baechi.torch.update_rules import Numbers, Rule, Settings, zeros


def adafactor(group: Settings) -> Rule:
    """The mean squares of a matrix's gradient are kept by row and by column."""
    maximize, decay = bool(group["maximize"]), group["weight_decay"] != 0

    def numbers(group: Settings, counters: Numbers, _: bool) -> tuple[Numbers, Numbers]:
        rate, step = float(group["lr"]), counters["step"] + 1
        smallest, least = group["eps"]
        if smallest is None:  # of the type that the parameters have, not that of the update
            smallest = torch.finfo(group["params"][0].dtype).eps
        values = {
            "new_weight": step ** group["beta2_decay"],
            "rate": min(rate, 1 / step**0.5),
            "smallest": smallest,
            "smallest_square": smallest * smallest,
            "least": least,
            "limit": float(group["d"]),
        }
        if decay:
            values["keep"] = 1 - rate * float(group["weight_decay"])
        return values, {"step": step}

    def update(param, grad, state, numbers):
        grad = -grad if maximize else grad
        root = param.numel() ** 0.5
        size = torch.maximum(torch.linalg.vector_norm(param) / root, numbers["least"])
        param = param * numbers["keep"] if decay else param
        weight = numbers["new_weight"]

        def moved(kind, mean):
            return state[kind] + weight * (mean - state[kind])

        if grad.dim() > 1:
            new = {
                "row_var": moved("row_var", _mean_square(grad, -1)),
                "col_var": moved("col_var", _mean_square(grad, -2)),
            }
            whole = new["row_var"].mean(dim=-2, keepdim=True)
            square = new["row_var"] * new["col_var"]
            square = square / torch.maximum(whole, numbers["smallest"])
        else:
            new = {"variance": moved("variance", grad * grad)}
            square = new["variance"]
        change = torch.maximum(square, numbers["smallest_square"]).rsqrt() * grad
        spread = torch.linalg.vector_norm(change) / (root * numbers["limit"])
        divisor = torch.maximum(spread, torch.ones_like(spread))
        return param - size * numbers["rate"] / divisor * change, new

    def kinds(param: torch.Tensor) -> tuple[str, ...]:
        return ("row_var", "col_var") if param.dim() > 1 else ("variance",)

    tensors = {
        "row_var": lambda param: param.new_zeros([*param.shape[:-1], 1]),
        "col_var": lambda param: param.new_zeros([*param.shape[:-2], 1, param.shape[-1]]),
        "variance": zeros,
    }
    return Rule((maximize, decay), tensors, {"step": 0.0}, numbers, update, kinds)


def _mean_square(grad: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.linalg.vector_norm(grad, dim=dim, keepdim=True).square() / grad.shape[dim]


def muon(group: Settings) -> Rule:
    nesterov, adjustment = bool(group["nesterov"]), group["adjust_lr_fn"]
    coefficients = tuple(map(float, group["ns_coefficients"]))
    steps, eps = int(group["ns_steps"]), float(group["eps"])

    def numbers(group: Settings, counters: Numbers, _: bool) -> tuple[Numbers, Numbers]:
        rate = float(group["lr"])
        keep = 1 - rate * float(group["weight_decay"])
        return {"lr": rate, "keep": keep, "new_weight": 1 - float(group["momentum"])}, {}

    def update(param, grad, state, numbers):
        weight = numbers["new_weight"]
        buffer = state["momentum_buffer"] + weight * (grad - state["momentum_buffer"])
        change = buffer - weight * (buffer - grad) if nesterov else buffer
        change = _orthogonal(change, coefficients, steps, eps)
        rows, columns = param.shape
        ratio = math.sqrt(max(1, rows / columns))
        if adjustment == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        new = param * numbers["keep"] - (numbers["lr"] * ratio) * change
        return new, {"momentum_buffer": buffer}

    form = (nesterov, adjustment, coefficients, steps, eps)
    return Rule(form, {"momentum_buffer": zeros}, {}, numbers, update)


def _orthogonal(
    matrix: torch.Tensor, coefficients: tuple[float, ...], steps: int, eps: float
) -> torch.Tensor:
    """Newton-Schulz iterations, as PyTorch's: of bfloat16, whose products are summed in
    single precision and rounded once."""
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    found = _rounded(matrix.T if tall else matrix)
    norm = _rounded(torch.linalg.vector_norm(found))
    found = _rounded(found / norm.clamp(min=eps))
    for _ in range(steps):
        gram = _rounded(found @ found.T)
        change = _rounded(b * gram + c * (gram @ gram))
        found = _rounded(a * found + change @ found)
    return (found.T if tall else found).to(matrix.dtype)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.bfloat16).to(torch.float32)
