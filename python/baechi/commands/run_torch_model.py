# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `python -m baechi.models.torch`: import, place, run, report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

import baechi.torch
from baechi.compiling import tools
from baechi.importer.common.errors import ImportFailure
from baechi.models import configuration
from baechi.models import torch as models
from baechi.steps.library_file import StepError

# What losses may differ by, relative to PyTorch's; near zero a loss is the logarithm of a
# number near one, which is known to 1e-7 or so (docs/torch.md).
_RELATIVE, _ABSOLUTE = 1e-4, 1e-6


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baechi.models.torch",
        description="Imports a PyTorch model of the collection with its training step, places it "
        "on a machine, runs it and reports.",
        allow_abbrev=False,
    )
    parser.add_argument("model", choices=models.NAMES, help=", ".join(models.NAMES))
    parser.add_argument("--preset", default="tiny", help="a named size (default: %(default)s)")
    configuration.add_set(parser, "changes fields of the preset: layers=8 batch=256")
    parser.add_argument(
        "--machine", default="host:2", help="host:N[@SIZE] or a machine file (default: host:2)"
    )
    configuration.add_placer(parser, "a placer of baechi-run (default: msct)")
    parser.add_argument("--budget", default="auto", help="of the search (default: auto)")
    parser.add_argument("--costs", default="measured", help="measured, or roofline")
    parser.add_argument("--steps", type=_count, default=20, help="(default: %(default)s)")
    parser.add_argument(
        "--torch-seed", type=int, default=0, help="of PyTorch's generator (default: 0)"
    )
    configuration.add_former(parser, "--seed", "torch_seed", type=int)
    parser.add_argument(
        "--check-torch",
        action="store_true",
        help=f"compare the losses of all steps with PyTorch's; {_RELATIVE:g} apart is an error",
    )
    configuration.add_former(parser, "--check", "check_torch", nargs=0, const=True)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of steps: 1 or more")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except (ImportFailure, tools.CompileError, StepError, ValueError, FileNotFoundError) as error:
        print(f"error: {str(error).removeprefix('error: ')}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    tools.find("baechi-run")  # before the work
    changes = configuration.settings(options.set)
    config = configuration.configure(options.model, options.preset, changes, models.load)
    training = _training(options, config)
    step = baechi.torch.compile_step(
        training.model,
        training.loss,
        training.optimizer,
        machine=options.machine,
        placer=options.placer,
        budget=options.budget,
        costs=options.costs,
    )
    torch.manual_seed(options.torch_seed)
    losses = [step(*training.batch).item() for _ in range(options.steps)]
    print(step.report())
    print(f"loss: {losses[0]:.6g} at step 0, {losses[-1]:.6g} at step {options.steps - 1}")
    return (
        _check(losses, _training(options, config), options.torch_seed) if options.check_torch else 0
    )


def _training(options: argparse.Namespace, config: object) -> models.Training:
    torch.manual_seed(options.torch_seed)
    try:
        return models.load(options.model).training(config)
    except ValueError as error:
        raise ImportFailure(f"{options.model}: {error}") from error


def _check(losses: list[float], eager: models.Training, seed: int) -> int:
    """The exit status; says how far the losses are from PyTorch's."""
    torch.manual_seed(seed)
    worst = 0.0
    for number, loss in enumerate(losses):
        expected = eager.eager_step().item()
        difference = abs(loss - expected)
        if not difference <= max(_RELATIVE * abs(expected), _ABSOLUTE):  # a NaN is none
            print(
                f"error: step {number}: the loss is {loss:.7g}, PyTorch's {expected:.7g}",
                file=sys.stderr,
            )
            return 1
        worst = max(worst, difference / max(abs(expected), _ABSOLUTE))
    print(f"losses of {len(losses)} steps equal PyTorch's; largest relative difference {worst:.1e}")
    return 0
