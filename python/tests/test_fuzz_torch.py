# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fuzzer of PyTorch programs (docs/fuzzing.md): a slice of them, and that it finds
what is wrong."""

import dataclasses

import pytest

import torch_support as support
from frameworks.of_torch import batch, generate, report, tools
from frameworks.of_torch.idioms import IDIOMS, MORE_OPTIMIZERS, OPTIMIZERS
from frameworks.verdict import Verdict
from torch_support import torch


@support.needs_tools
@pytest.mark.parametrize("seed", [1000, 1004, 1005, 1008])
def test_programs_are_as_eager_ones(seed):
    (verdict,) = batch.run([generate.generate(seed)], 0)
    assert verdict.kind in ("equal", "rounding"), verdict


def _eagerly(monkeypatch, change):
    """Baechi's part by PyTorch, with `change` for what a loop notes."""

    class Wrong(tools.Eager):
        def __init__(self, machine):
            super().__init__()

        def note(self, value):
            super().note(change(value))

    monkeypatch.setattr(batch, "Ours", Wrong)


def test_programs_are_valid_and_the_same_every_time(monkeypatch):
    _eagerly(monkeypatch, lambda value: value)
    verdicts = [batch.run([generate.generate(seed)], 0)[0].kind for seed in range(100, 112)]
    assert verdicts.count("equal") > 9 and set(verdicts) <= {"equal", "invalid"}
    assert generate.generate(7).source == generate.generate(7).source


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: idiom.name)
def test_every_idiom_is_valid(monkeypatch, idiom):
    _eagerly(monkeypatch, lambda value: value)
    start = generate.generate(100)
    given = dataclasses.replace(start, idioms=(idiom,), own=not idiom.step, steps=5)
    assert batch.run([given], 0) == [Verdict("equal")]


def test_every_optimizer_is_valid(monkeypatch):
    _eagerly(monkeypatch, lambda value: value)
    for optimizer in OPTIMIZERS + MORE_OPTIMIZERS:
        given = dataclasses.replace(generate.generate(100), optimizer=optimizer)
        assert batch.run([given], 0) == [Verdict("equal")], optimizer


def test_wrong_results_are_found_and_made_small(monkeypatch):
    """A loop whose second step computes with old weights."""
    _eagerly(monkeypatch, lambda value: value * 1.001 if value.dim() == 0 else value)
    whole = next(p for p in map(generate.generate, range(100)) if len(p.idioms) > 1)
    (verdict,) = batch.run([whole], 0)
    assert verdict.kind == "wrong"
    small = report.smallest(whole, verdict, 0, seconds=20)
    assert not small.idioms and len(small.layers) == 1 and small.steps == 1
    compile(report.reproduction(small, verdict, 0), "reproduction", "exec")


def test_rounding_is_told_from_errors():
    """Of a tensor whose values cancel, more may be off than of its last digits."""
    whole = generate.generate(100)
    noted = batch._noted(whole, tools.Eager())
    off = [value * (1 + 1e-6) if value.dtype == "float32" else value for value in noted]
    assert batch._judged(whole, off, noted).kind in ("equal", "rounding")
    off = [value * 1.001 if value.dtype == "float32" else value for value in noted]
    assert batch._judged(whole, off, noted).kind == "wrong"


def test_the_loop_of_a_step_is_what_compile_step_says():
    """Clipping and accumulation of the eager side, by their definition."""
    model = torch.nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.detach().clone()
    step = tools.Eager().step(
        model, lambda out, y: (out * y).sum(), optimizer, clip_grad_norm=1.0, accumulate=2
    )
    x = torch.tensor([[3.0, 4.0]])
    for _ in range(2):
        step(x, torch.ones(1, 1))
    torch.testing.assert_close(model.weight, before - x / 5)  # of 2 * x, whose norm is 10
