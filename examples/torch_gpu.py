# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains an MLP on a GPU, where its parameters, batches and losses are: .venv/bin/python
examples/torch_gpu.py"""

import torch

import baechi.torch

if not torch.cuda.is_available():
    raise SystemExit("PyTorch has no GPU here: run this on a machine with one")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 8))
model = model.to("cuda")
optimizer = torch.optim.Adam(model.parameters())
step = baechi.torch.compile_step(
    model, torch.nn.functional.mse_loss, optimizer, machine="cuda:1@2GiB"
)
x, y = torch.randn(256, 64, device="cuda"), torch.randn(256, 8, device="cuda")
for i in range(50):
    loss = step(x, y)
print(f"step {i}: loss {loss.item():.4f} on {loss.device}", step.report(), sep="\n")
