# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of targets that are ignored and of classes that are ruled out, against PyTorch."""

import itertools

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import baechi.torch  # noqa: E402

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
