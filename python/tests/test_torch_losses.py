# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of targets that are ignored and of classes that are ruled out, against PyTorch."""

import itertools

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import baechi.torch  # noqa: E402
import needs  # noqa: E402
from baechi.importer.torch import functions  # noqa: E402

TARGETS = {
    "some": (-100, [0, 1, -100, 4]),
    "all": (-100, [-100] * 4),
    "none": (-100, [0, 1, 2, 3]),
    "a class": (2, [2, 1, 2, 4]),
    "only that class": (2, [2] * 4),
}
LOSSES = itertools.product(("mean", "sum"), (False, True), TARGETS, ("all", "ruled out", "smooth"))


@pytest.mark.parametrize(("reduction", "weighted", "ignored", "classes"), LOSSES)
def test_cross_entropy(reduction, weighted, ignored, classes):
    ignore_index, target = TARGETS[ignored]
    never = torch.tensor([[False] * 5] * 3 + [[True, False, False, False, False]])

    def loss(logits, target):
        if classes == "ruled out":  # their logarithm is minus infinity
            logits = logits.masked_fill(never, float("-inf"))
        return F.cross_entropy(
            logits,
            target,
            weight=torch.tensor([1.0, 0.5, 2.0, 0.3, 1.0]) if weighted else None,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=0.1 if classes == "smooth" else 0.0,
        )

    x, target = torch.randn(4, 3, generator=torch.manual_seed(0)), torch.tensor(target)
    found = []
    for compiled in (False, True):
        torch.manual_seed(1)
        model = torch.nn.Linear(3, 5)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        if compiled:
            value = baechi.torch.compile_step(
                model, loss, optimizer, machine="host:2", costs="roofline"
            )(x, target)
        else:
            value = loss(model(x), target)
            value.backward()
            optimizer.step()
        found.append([value.detach(), *(p.detach() for p in model.parameters())])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5, equal_nan=True)
    # Of only ignored targets the mean is no number; nothing is learned from them.
    assert all(torch.isfinite(p).all() for p in found[1][1:])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_what_is_surely_right(reduction):
    """They are small, and not nothing."""
    x = torch.tensor([20.0, 25.0, -3.0, 0.5, 30.0, -60.0], requires_grad=True)
    target = torch.tensor([1.0, 1.0, 1.0, 0.3, 1.0, 0.0])
    weights = {"weight": torch.full((6,), 0.5), "pos_weight": torch.full((6,), 3.0)}

    def loss(x):
        return [
            F.binary_cross_entropy_with_logits(x, target, reduction=reduction, **given).sum()
            if gradient
            else F.binary_cross_entropy_with_logits(x, target, reduction=reduction, **given)
            for given in ({}, weights)
            for gradient in (False, True)
        ]

    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
    compiled = torch.compile(loss, backend="baechi", options=options)
    for found, expected in zip(compiled(x), loss(x), strict=True):
        torch.testing.assert_close(found, expected, atol=0, rtol=1e-5)
    gradients = [
        torch.autograd.grad(made(x)[3], x, retain_graph=True)[0] for made in (compiled, loss)
    ]
    torch.testing.assert_close(*gradients, atol=1e-8, rtol=1e-5)


def ctc_lines():
    """Unlike log_softmax's, whose probabilities add up to 1; of the third no way is possible."""
    log_probs = torch.randn(7, 3, 5, generator=torch.manual_seed(3), dtype=torch.float64)
    targets = torch.tensor([[2, 2, 3], [0, 4, 0], [3, 3, 4]])
    return log_probs.requires_grad_(), targets, torch.tensor([7, 6, 3]), torch.tensor([3, 1, 3])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_connectionist_gradients_of_what_is_not_normalized(reduction, zero_infinity):
    log_probs, *given = ctc_lines()
    found = []
    for function in (functions.ctc_loss, F.ctc_loss):
        loss = function(log_probs, *given, 1, reduction, zero_infinity)
        weights = torch.linspace(0.5, 2, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
        found.append((loss.detach(), *torch.autograd.grad((loss * weights).sum(), log_probs)))
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-12, equal_nan=True)


@needs.tool("baechi-run")
def test_connectionist_gradients_of_a_parameter():
    """What a step of a rate of one takes away."""
    log_probs, targets, *lengths = ctc_lines()

    class Lines(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.log_probs = torch.nn.Parameter(log_probs.detach().clone())

        def forward(self):
            return self.log_probs

    def loss(log_probs, targets):
        return F.ctc_loss(log_probs, targets, *lengths, blank=1, zero_infinity=True)

    model = Lines()
    step = baechi.torch.compile_step(
        model, loss, torch.optim.SGD(model.parameters(), 1.0), machine="host:1", costs="roofline"
    )
    value = loss(log_probs, targets)
    value.backward()
    torch.testing.assert_close(step(targets), value.detach())
    found = log_probs.detach() - model.log_probs.detach()
    torch.testing.assert_close(found, log_probs.grad, atol=1e-9, rtol=1e-7)
