# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in double precision: what PyTorch and torch-mlir make of numbers on the way must
not be singles. Values, gradients and random numbers are PyTorch's within 1e-13."""

import copy

import pytest

import torch_support as support
from torch_support import F, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools
DOUBLE = torch.float64


def bernoulli(w):
    return w * torch.bernoulli(torch.full((8,), 0.5, dtype=DOUBLE))


def normal(w):
    """Of 16 elements and more PyTorch draws in another way."""
    mean, std = torch.zeros(32, dtype=DOUBLE), torch.ones(32, dtype=DOUBLE)
    return w * torch.normal(mean, std)[:8] + torch.normal(w, 2.0) + torch.normal(0.1, w)


def transposed(w):
    """In the order that PyTorch draws them in: of memory, of dimensions, or one by one."""
    p = torch.linspace(0.1, 0.9, 24, dtype=DOUBLE).view(3, 8).t()
    drawn = torch.bernoulli(p) + torch.bernoulli(p, 0.3) + torch.normal(p) + torch.normal(p, p)
    drawn = drawn + torch.randn_like(p) + torch.empty(3, 8, dtype=DOUBLE).t().normal_()
    drawn = drawn + torch.rand_like(p) + torch.empty(3, 8, dtype=DOUBLE).t().bernoulli_(0.4)
    drawn = drawn + torch.empty(3, 8).t().bernoulli_(p) + torch.empty(8, 3).bernoulli_(p.float())
    return w * drawn.sum(1) + F.dropout(p, 0.3).sum(1)


def integers(w):
    drawn = torch.empty(8, dtype=DOUBLE).random_(-3, 2**50) + torch.empty(8).random_(9)
    across = torch.empty(4, 8, dtype=torch.int64).t().random_(0, 9)[:, 1]
    return w * drawn + across


FUNCTIONS = {
    "number first": lambda w: (0.1 - w) ** 2 + (1e10 + 1 - w) + 0.1 / w + 0.7**w,
    "range": lambda w: w + torch.linspace(0, 0.7, 8, dtype=DOUBLE),
    "powers": lambda w: w + torch.logspace(0, 0.7, 8, dtype=DOUBLE),
    "large powers": lambda w: torch.cat([(1 + 1e-3 * w) ** p for p in (17, -40, 1000)]),
    "larger powers": lambda w: (1 - 1e-11 * w) ** (2**33 + 1),
    "grid": lambda w: F.affine_grid(w[:6].view(1, 2, 3), (1, 1, 3, 5), align_corners=False),
    "lgamma": lambda w: torch.lgamma(w - 0.9),
    "adaptive": lambda w: F.adaptive_avg_pool1d(w.view(1, 1, 8) ** 2, 3),
    "area": lambda w: F.interpolate(w.view(1, 1, 8) ** 2, 3, mode="area"),
    "one coordinate": lambda w: torch.cdist(w[:4, None], w[4:, None]),
    "bernoulli": bernoulli,
    "normal": normal,
    "transposed": transposed,
    "integers": integers,
}


class Model(nn.Module):
    def __init__(self, functions):
        super().__init__()
        first = torch.linspace(1, 3.7, 8, dtype=DOUBLE) ** 1.5
        self.functions = functions
        self.weights = nn.ParameterList([first.clone() for _ in functions])

    def forward(self):
        found = [each(w) for each, w in zip(self.functions, self.weights, strict=True)]
        loss = sum((x * torch.arange(1, x.numel() + 1).view(x.shape)).sum() for x in found)
        return loss, (*found, torch.rand(4), torch.empty(3).random_(to=9))


def assert_near(found, right, what):
    assert found.dtype == right.dtype, what
    scale = right.abs().max().clamp_min(1)
    assert (found - right).abs().max() <= 1e-13 * scale, what


def test_numbers_keep_their_digits():
    model = Model(list(FUNCTIONS.values()))
    eager = copy.deepcopy(model)
    optimizers = [torch.optim.SGD(each.parameters(), lr=1e-3) for each in (model, eager)]
    step = support.compile_step(model, None, optimizers[0], machine="host:1")
    for seed in range(2):
        torch.manual_seed(seed)
        _, ours = step()
        following = torch.rand(1)
        torch.manual_seed(seed)
        optimizers[1].zero_grad()
        loss, theirs = eager()
        assert torch.equal(torch.rand(1), following)
        loss.backward()
        optimizers[1].step()
        for name, found, right in zip((*FUNCTIONS, "as drawn", "too"), ours, theirs, strict=True):
            assert_near(found, right.detach(), name)
        for name, found, right in zip(FUNCTIONS, model.weights, eager.weights, strict=True):
            assert_near(found.detach(), right.detach(), f"{name}: parameter")


def test_ranges_have_pytorchs_bits():
    kinds = torch.bfloat16, torch.float16, torch.float32

    class Ranges(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self):
            found = [torch.linspace(0.1, 0.9, 24, dtype=kind) for kind in kinds]
            found += [torch.linspace(-1, 1, 24, dtype=kind) for kind in kinds]
            found += [torch.arange(0, 2.4, 0.1, dtype=kind) for kind in kinds]
            found += [torch.logspace(0, 1, 24, base=2.0), torch.arange(3.0, 9.0)]
            return self.weight.sum(), [x * self.weight.to(x.dtype) for x in found]

    model = Ranges()
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.0))
    for found, right in zip(step()[1], model()[1], strict=True):
        assert torch.equal(found, right)


@pytest.mark.parametrize("rate", [3e-3, 0.1])
def test_averaged_descent_keeps_its_rates_as_singles(rate):
    model = nn.Linear(3, 2).double()
    eager = copy.deepcopy(model)
    first, second = (torch.optim.ASGD(each.parameters(), lr=rate, t0=1) for each in (model, eager))
    step = support.compile_step(model, F.mse_loss, first, machine="host:1")
    x, y = torch.ones(4, 3, dtype=DOUBLE), torch.ones(4, 2, dtype=DOUBLE)
    for _ in range(3):
        step(x, y)
        second.zero_grad()
        F.mse_loss(eager(x), y).backward()
        second.step()
    step.state_dict()
    for found, right in zip(model.parameters(), eager.parameters(), strict=True):
        assert_near(found.detach(), right.detach(), "parameter")
        assert_near(first.state[found]["ax"], second.state[right]["ax"], "average")
        assert torch.equal(first.state[found]["eta"], second.state[right]["eta"])


def test_checked_distributions_say_how_they_are_not():
    class Sampled(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = nn.Parameter(torch.zeros(4))

        def forward(self):
            return torch.distributions.Normal(self.mean, self.mean.exp()).rsample().sum()

    model = Sampled()
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(Exception, match="validate_args=False"):
        step()


def test_averaged_statistics_say_what_to_give():
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=None), nn.Linear(3, 2))
    step = support.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(Exception, match="give momentum a number") as raised:
        step(torch.ones(4, 3), torch.ones(4, 2))
    assert "validate_args" not in str(raised.value)
