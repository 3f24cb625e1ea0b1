# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a random training loop calls: eagerly, or by Baechi."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

import baechi.torch

OPTIONS = {"costs": "roofline", "budget": "0"}


class Eager:
    """Notes all that a loop shows. With `moved`, all that it computes is moved by about a
    last digit: the parameters and inputs, and what its modules give."""

    def __init__(self, moved: int = 0):
        self.noted: list[torch.Tensor] = []
        self._moved = moved
        self._draws = torch.Generator().manual_seed(moved)

    def note(self, value: torch.Tensor) -> None:
        self.noted.append(value.detach().clone())

    def floats(self, seed: int, shape: tuple[int, ...]) -> torch.Tensor:
        draws = torch.Generator().manual_seed(seed)
        return self._move(torch.rand(shape, generator=draws) * 3 - 1.5)

    def whole(self, seed: int, shape: tuple[int, ...], below: int) -> torch.Tensor:
        return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(seed))

    def prepared(self, model: nn.Module) -> nn.Module:
        if self._moved:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.copy_(self._move(parameter))
            for module in model.modules():
                module.register_forward_hook(self._move_result)
        return model

    def compiled(self, model: nn.Module) -> Any:
        return model

    def own_step(self, model: nn.Module, loss: Any, optimizer: Any) -> Any:
        """A step of a loop of one's own."""
        net = self.compiled(model)

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            value = loss(net(x), y)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            return value

        return step

    def step(
        self,
        model: nn.Module,
        loss: Any,
        optimizer: Any,
        clip_grad_norm: float | None = None,
        clip_grad_value: float | None = None,
        accumulate: int = 1,
    ) -> Any:
        """What `compile_step` says that it does."""
        calls = 0

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            nonlocal calls
            if calls % accumulate == 0:
                optimizer.zero_grad()
            calls += 1
            value = loss(model(x), y)
            value.backward()
            if calls % accumulate == 0:
                if clip_grad_value is not None:
                    nn.utils.clip_grad_value_(model.parameters(), clip_grad_value)
                if clip_grad_norm is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), clip_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
            return value

        return step

    def _move(self, value: torch.Tensor) -> torch.Tensor:
        if not self._moved or not value.is_floating_point():
            return value
        up = torch.randint(0, 2, value.shape, generator=self._draws) * 2 - 1
        return value * (1 + up * 2.0**-23)

    def _move_result(self, module: nn.Module, inputs: Any, result: Any) -> Any:
        return self._move(result) if isinstance(result, torch.Tensor) else None


class Ours(Eager):
    """By Baechi, on the devices of a machine."""

    def __init__(self, machine: str):
        super().__init__()
        self._options = {"machine": machine, **OPTIONS}

    def compiled(self, model: nn.Module) -> Any:
        return torch.compile(model, backend="baechi", options=dict(self._options))

    def step(self, model: nn.Module, loss: Any, optimizer: Any, **options: Any) -> Any:
        return baechi.torch.compile_step(model, loss, optimizer, **self._options, **options)


NAMES = {"torch": torch, "nn": nn, "F": nn.functional, "copy": copy}
