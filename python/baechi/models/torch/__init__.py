# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of the collection written in PyTorch, as one writes them there.

A model is a module with `Config` (a frozen dataclass), `PRESETS` (name to
`Config`; the sizes of the JAX models of the same names) and `training(config)`,
which makes a `Training`. They use PyTorch's own layers and its own initial
values (`torch.manual_seed`), so their numbers are not the JAX models'.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

import torch

NAMES = ("mlp", "resnet", "transformer")


@dataclasses.dataclass
class Training:
    """What a training step is made of."""

    model: torch.nn.Module
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: torch.optim.Optimizer
    batch: tuple[torch.Tensor, ...]  # the inputs and the target

    def eager_step(self) -> torch.Tensor:
        """One step of PyTorch itself; the loss before the update."""
        *inputs, target = self.batch
        loss = self.loss(self.model(*inputs), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def load(name: str):
    """The module of a model. Raises KeyError."""
    if name not in NAMES:
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name}")


def make_optimizer(name: str, model: torch.nn.Module, learning_rate: float):
    if name not in _OPTIMIZERS:
        raise ValueError(f"unknown optimizer '{name}'; known: {', '.join(_OPTIMIZERS)}")
    return _OPTIMIZERS[name](model.parameters(), lr=learning_rate)


_OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
