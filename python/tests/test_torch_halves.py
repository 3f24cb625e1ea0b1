# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on float16 and bfloat16 give what PyTorch's give."""

import pytest

import torch_support as support
from torch_support import F, torch

pytestmark = support.needs_tools

SAME = {
    "product": lambda x, y: x * 1.7 + y,
    "quotient": lambda x, y: x / 1.7,
    "scalar": lambda x, y: x * torch.tensor(1.7),
    "powers": lambda x, y: torch.cat([x.abs() ** p for p in (2, 3, -2, 0.5, 2.5)]),
    "rounded exponents": lambda x, y: torch.cat([x.clamp(-1.01, -0.97) ** 257, x.abs() ** 2.005]),
    "sigmoid": lambda x, y: x.sigmoid(),
    "silu": lambda x, y: F.silu(x),
    "softplus": lambda x, y: F.softplus(x),
    "tanh": lambda x, y: x.tanh(),
    "selu": lambda x, y: F.selu(x),
    "expm1": lambda x, y: x.expm1(),
    "log1p": lambda x, y: x.abs().log1p(),
    "type": lambda x, y: x.sum(0, dtype=torch.float32).round(),
}
# Rounded once, but of sums in another order.
NEAR = {
    "softmax": lambda x, y: x.softmax(0),
    "sum": lambda x, y: x.abs().sum(0),
    "bias": lambda x, y: torch.func.grad(lambda b: ((x + b) * y.abs()).sum())(y[0]),
    "running": lambda x, y: x.abs().cumsum(0),
    "norm": lambda x, y: x.norm(dim=0),
    "gelu": lambda x, y: F.gelu(x),
    "lgamma": lambda x, y: (x.abs() + 3).lgamma(),
}


def test_halves_of_two_kinds_meet_in_singles():
    torch.manual_seed(0)
    half = torch.randn(40, 4).half()
    other = half.bfloat16()

    def all_of_them(x, y):
        compared = [x > y, x < y, x >= y, x <= y, x == y, x != y, y > x]
        return [*compared, torch.maximum(x, y), torch.minimum(y, x), x - y]

    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
    ours = torch.compile(all_of_them, backend="baechi", options=options)(half, other)
    expected = all_of_them(half, other)
    assert 0 < expected[0].sum() < expected[0].numel()
    for found, right in zip(ours, expected, strict=True):
        assert found.dtype == right.dtype
        assert torch.equal(found, right)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_pytorchs(dtype):
    torch.manual_seed(0)
    x, y = torch.randn(600, 2).to(dtype), torch.randn(600, 2).to(dtype)

    def all_of_them(x, y):
        return [f(x, y) for f in (*SAME.values(), *NEAR.values())]

    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
    ours = torch.compile(all_of_them, backend="baechi", options=options)(x, y)
    for name, found, expected in zip((*SAME, *NEAR), ours, all_of_them(x, y), strict=True):
        assert found.dtype == expected.dtype, name
        rtol = 0 if name in SAME else 2 * torch.finfo(dtype).eps
        assert torch.allclose(found.float(), expected.float(), rtol=rtol, atol=0), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mixed", [False, True])
def test_group_normalization(dtype, mixed):
    torch.manual_seed(0)
    norm = torch.nn.GroupNorm(2, 4)
    torch.nn.init.normal_(norm.weight)
    norm = norm if mixed else norm.to(dtype)
    x = torch.randn(3, 4, 5).to(dtype).requires_grad_()

    def step(x):
        return norm(x).float().square().sum(), norm(x)

    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
    found, expected = torch.compile(step, backend="baechi", options=options)(x), step(x)
    assert found[1].dtype == dtype
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(found[1], expected[1], rtol=eps, atol=eps)
    ours, theirs = (torch.autograd.grad(made[0], [x, norm.weight]) for made in (found, expected))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a.float(), b.float(), rtol=4 * eps, atol=16 * eps)


def test_normalization_under_autocast():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Flatten(),
        torch.nn.Linear(64, 2),
    )  # fmt: skip
    x = torch.randn(2, 3, 6, 6)

    def step(x):
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
    found = torch.compile(step, backend="baechi", options=options)(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, step(x), rtol=2**-6, atol=2**-6)
