# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of a collection's PyTorch model: the step on devices and PyTorch in single
precision against PyTorch in double precision (docs/torch.md).

  .venv/bin/python benchmarks/execution/torch_curves.py mlp
  .venv/bin/python benchmarks/execution/torch_curves.py mlp --rate=1e-5
  .venv/bin/python benchmarks/execution/torch_curves.py mlp --smooth

needs scripts/torch-env and a build; --smooth puts GELU in the place of ReLU.
"""

import argparse
import dataclasses

import torch

import baechi.torch
from baechi.models import torch as models


def made(arguments, double=False):
    module = models.load(arguments.model)
    config = module.PRESETS[arguments.preset]
    if arguments.rate:
        config = dataclasses.replace(config, learning_rate=arguments.rate)
    torch.manual_seed(0)
    training = module.training(config)
    if double:
        training.model.double()
        training.batch = tuple(x.double() if x.is_floating_point() else x for x in training.batch)
    return training


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=models.NAMES)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rate", type=float, help="another learning rate")
    parser.add_argument("--machine", default="host:2")
    parser.add_argument("--smooth", action="store_true", help="GELU in place of ReLU")
    arguments = parser.parse_args()
    if arguments.smooth:
        torch.Tensor.relu = lambda x: torch.nn.functional.gelu(x)
    single, double, ours = made(arguments), made(arguments, double=True), made(arguments)
    options = {"machine": arguments.machine, "costs": "roofline", "budget": "0"}
    step = baechi.torch.compile_step(ours.model, ours.loss, ours.optimizer, **options)
    print("step  loss in double  PyTorch's error  ours     ours to PyTorch's")
    for number in range(1, arguments.steps + 1):
        exact, theirs = double.eager_step().item(), single.eager_step().item()
        found = step(*ours.batch).item()
        errors = theirs - exact, found - exact, found - theirs
        theirs_off, ours_off, apart = (abs(error / exact) for error in errors)
        print(f"{number:4d}  {exact:14.6f}  {theirs_off:15.1e}  {ours_off:.1e}  {apart:.1e}")


if __name__ == "__main__":
    main()
