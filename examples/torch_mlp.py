# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains an MLP on two host devices: .venv/bin/python examples/torch_mlp.py"""

import torch

import baechi.torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
step = baechi.torch.compile_step(model, torch.nn.functional.mse_loss, optimizer, machine="host:2")
x, y = torch.randn(256, 64), torch.randn(256, 8)
for i in range(50):
    loss = step(x, y)
print(f"step {i}: loss {loss.item():.4f}", step.report(), sep="\n")
with torch.no_grad():  # the trained model, for inference on the same devices
    print(torch.compile(model, backend="baechi", options={"machine": "host:2"})(x).shape)
