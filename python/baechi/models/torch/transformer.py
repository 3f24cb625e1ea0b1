# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder-only Transformer language model (pre-norm, causal attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from baechi.models.presets.transformer import PRESETS as PRESETS
from baechi.models.presets.transformer import Config
from baechi.models.torch import Training, make_optimizer


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.out = nn.Linear(config.hidden, config.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, sequence, hidden = x.shape
        split = (batch, sequence, self.heads, hidden // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, sequence, hidden))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.hidden)
        self.attention = Attention(config)
        self.norm2 = nn.LayerNorm(config.hidden)
        self.up = nn.Linear(config.hidden, 4 * config.hidden)
        self.down = nn.Linear(4 * config.hidden, config.hidden)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop(self.attention(self.norm1(x)))
        h = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.drop(self.down(h))


class Transformer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        if config.hidden % config.heads:
            raise ValueError(f"hidden={config.hidden} is not a multiple of heads={config.heads}")
        self.tokens = nn.Embedding(config.vocabulary, config.hidden)
        self.positions = nn.Parameter(0.02 * torch.randn(config.sequence, config.hidden))
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.tokens(tokens) + self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def training(config: Config) -> Training:
    model = Transformer(config)
    shape = (config.batch, config.sequence)
    batch = tuple(torch.randint(0, config.vocabulary, shape) for _ in range(2))
    optimizer = make_optimizer(config.optimizer, model, config.learning_rate)
    return Training(model, loss, optimizer, batch)
