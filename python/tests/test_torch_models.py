# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collection's PyTorch models train on the devices as they do in PyTorch itself."""

import dataclasses
import os
import pathlib
import subprocess
import sys

import pytest

import torch_support as support
from baechi.commands.run_torch_model import main
from baechi.compiling import tools
from baechi.models import torch as models
from torch_support import seeded, torch  # noqa: F401

pytestmark = support.needs_tools
MACHINES = ["host:1", "host:2", "host:4"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def trainings(name, preset, count, **settings):
    """The same training some times over."""
    module = models.load(name)
    for _ in range(count):
        torch.manual_seed(0)
        yield module.training(dataclasses.replace(module.PRESETS[preset], **settings))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", models.NAMES)
def test_fifty_losses_equal_pytorch(name, machine):
    ours, eager = trainings(name, "tiny", 2)
    step = support.compile_step(ours.model, ours.loss, ours.optimizer, machine=machine)
    for number in range(50):
        # A loss near zero is the logarithm of a number near one, known to 1e-7 or so.
        expected = pytest.approx(eager.eager_step().item(), rel=1e-4, abs=1e-6)
        assert step(*ours.batch).item() == expected, f"step {number}"


# At larger rates the side of ReLU's corner that a sum is rounded to decides (docs/torch.md).
SMALL_RATES = {"mlp": 1e-5, "resnet": 4e-6}


@pytest.mark.torch_large
@pytest.mark.parametrize("name", models.NAMES)
def test_losses_of_small_models(name):
    settings = {"learning_rate": SMALL_RATES[name]} if name in SMALL_RATES else {}
    *ours, eager = trainings(name, "small", len(MACHINES) + 1, **settings)
    steps = [
        support.compile_step(made.model, made.loss, made.optimizer, machine=machine)
        for made, machine in zip(ours, MACHINES, strict=True)
    ]
    for number in range(50):
        expected = pytest.approx(eager.eager_step().item(), rel=1e-4)
        for step, made in zip(steps, ours, strict=True):
            assert step(*made.batch).item() == expected, f"step {number}"


def test_a_limit_that_one_device_cannot_hold():
    ours, eager = trainings("transformer", "tiny", 2)
    with pytest.raises(tools.CompileError, match="no placement can fit"):
        support.compile_step(ours.model, ours.loss, ours.optimizer, machine="host:1@32KiB")(
            *ours.batch
        )
    step = support.compile_step(ours.model, ours.loss, ours.optimizer, machine="host:4@32KiB")
    for _ in range(3):
        assert step(*ours.batch).item() == pytest.approx(eager.eager_step().item(), rel=1e-4)


def test_the_example_runs(tmp_path):
    paths = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "torch_mlp.py"],
        capture_output=True,
        text=True,
        env={**os.environ, **paths},
    )
    assert done.returncode == 0, done.stderr
    assert "step 49: loss 0." in done.stdout and "measured" in done.stdout
    assert "torch.Size([256, 8])" in done.stdout


def test_the_command_places_runs_and_checks(capsys):
    words = ["--steps=3", "--costs=roofline", "--budget=0", "--check-torch", "--set", "layers=2"]
    assert main(["mlp", *words]) == 0
    told = capsys.readouterr().out
    assert "host1" in told and "at step 2" in told
    assert "losses of 3 steps equal PyTorch's" in told


def test_the_command_says_where_losses_differ(capsys, monkeypatch):
    wrong = models.Training.eager_step
    monkeypatch.setattr(models.Training, "eager_step", lambda self: wrong(self) * 1.001)
    assert main(["mlp", "--steps=2", "--costs=roofline", "--budget=0", "--check-torch"]) == 1
    assert "error: step 0: the loss is " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, expected",
    [
        (["mlp", "--machine=hots:3"], "unknown kind 'hots'"),
        (["mlp", "--preset=huge"], "mlp has no preset 'huge'; known: tiny"),
        (["mlp", "--set", "depth=3"], "mlp has only inputs, "),
        (["transformer", "--set", "heads=3"], "hidden=16 is not a multiple of heads=3"),
    ],
)
def test_the_command_refuses(capsys, words, expected):
    assert main(words) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ") and expected in told
