# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoder-only Transformers: the published sizes and smaller ones."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    hidden: int
    heads: int
    layers: int
    sequence: int
    batch: int
    vocabulary: int
    optimizer: str = "sgd"
    learning_rate: float = 0.05
    dropout: float = 0.0  # of the embedding and of what every block adds


PRESETS = {
    "tiny": Config(hidden=16, heads=2, layers=2, sequence=8, batch=2, vocabulary=20),
    "small": Config(hidden=256, heads=4, layers=4, sequence=128, batch=8, vocabulary=1000),
    # The base model of Vaswani et al., 2017, with Adam.
    "paper": Config(
        hidden=512, heads=8, layers=6, sequence=50, batch=64, vocabulary=30000,
        optimizer="adam", learning_rate=1e-4, dropout=0.1,
    ),
    # GPT-2 medium (Radford et al., 2019).
    "large": Config(
        hidden=1024, heads=16, layers=24, sequence=1024, batch=4, vocabulary=50257,
        optimizer="adam", learning_rate=1e-4, dropout=0.1,
    ),
}  # fmt: skip
