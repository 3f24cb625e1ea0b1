# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A multilayer perceptron: the published sizes and smaller ones."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    inputs: int
    hidden: int
    layers: int  # hidden layers
    classes: int
    batch: int
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    dropout: float = 0.0  # of every hidden layer's outputs


PRESETS = {
    "tiny": Config(inputs=16, hidden=32, layers=2, classes=10, batch=8, learning_rate=1e-2),
    "small": Config(inputs=784, hidden=1024, layers=4, classes=10, batch=256, learning_rate=1e-4),
    "paper": Config(inputs=784, hidden=2048, layers=3, classes=10, batch=128, dropout=0.5),
    "large": Config(
        inputs=1024, hidden=4096, layers=8, classes=1000, batch=512, learning_rate=1e-4
    ),
}
