# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch training steps in pieces, compared with eager PyTorch."""

import pytest

from torch_support import F, Pair, nn, torch


@pytest.mark.parametrize("splits", ["any", "canonical:2", "forced:3"])
def test_a_training_step_in_pieces(splits):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 10),
    )
    pair = Pair(model, lambda p: torch.optim.AdamW(p, 1e-2), F.cross_entropy, splits=splits)
    pair.train(4, torch.randn(12, 2, 8, 8), torch.randint(0, 10, (12,)))
    pair.assert_same_state(rtol=2e-3)
