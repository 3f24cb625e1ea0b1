# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Function transforms (`torch.func`, forward-mode derivatives), and indices that are tensors of
one number, within a model: both front ends train as eager PyTorch does."""

import copy

import pytest

import torch_support as support
from torch_support import F, baechi, nn, seeded, torch  # noqa: F401

forward_ad = pytest.importorskip("torch.autograd.forward_ad")
pytestmark = support.needs_tools
func = torch.func
OPTIONS = {"costs": "roofline", "budget": "0", "machine": "host:1"}


class Net(nn.Module):
    """forward(x) is `function(net, x)`, where the net gives [rows, 1] of [rows, 3]."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.first, self.head = nn.Linear(3, 4), nn.Linear(4, 1)

    def net(self, x):
        return self.head(torch.tanh(self.first(x)))

    def forward(self, x):
        return self.function(self, x)


def value_of(net):
    return lambda row: net.net(row).sum()


def dual(net, x):
    with forward_ad.dual_level():
        value, tangent = forward_ad.unpack_dual(net.net(forward_ad.make_dual(x, x.cos())))
        return value + tangent


FORMS = {
    "jvp": lambda net, x: sum(func.jvp(net.net, (x,), (x.cos(),))),
    "vjp": lambda net, x: func.vjp(net.net, x)[1](torch.ones(len(x), 1))[0].sum(1, keepdim=True),
    "gradients of rows": lambda net, x: func.vmap(func.grad(value_of(net)))(x)[:, :1],
    "jacrev": lambda net, x: func.vmap(func.jacrev(net.net))(x)[:, 0, :1],
    "jacfwd": lambda net, x: func.vmap(func.jacfwd(net.net))(x)[:, 0, :1],
    "hessian": lambda net, x: func.vmap(func.hessian(value_of(net)))(x)[:, 0, :1],
    # PyTorch's gives no gradients to the parameters.
    "linearize": lambda net, x: net.net(x) + func.linearize(net.net, x)[1](x.cos()),
    "forward mode": dual,
}


def losses(model, x, y, kind, steps=2):
    torch._dynamo.reset()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if kind == "compile_step":
        step = baechi.torch.compile_step(model, F.mse_loss, optimizer, **OPTIONS)
        return [step(x, y).item() for _ in range(steps)]
    compiled = kind == "torch.compile"
    net = torch.compile(model, backend="baechi", options=OPTIONS) if compiled else model
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def check(model, x, y, kind):
    eager = copy.deepcopy(model)
    expected = losses(eager, x, y, "eager")
    assert losses(model, x, y, kind) == pytest.approx(expected, rel=1e-4)
    for ours, theirs in zip(model.state_dict().values(), eager.state_dict().values()):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["compile_step", "torch.compile"])
@pytest.mark.parametrize("name", FORMS)
def test_function_transforms(name, kind):
    check(Net(FORMS[name]), torch.randn(5, 3), torch.randn(5, 1), kind)


def energy(x):
    return torch.tanh(x).pow(3).sum()


@pytest.mark.parametrize("form", [func.hessian, func.jacfwd, func.jacrev, func.grad])
def test_function_transforms_of_what_is_compiled(form):
    torch._dynamo.reset()
    x = torch.randn(3)
    compiled = torch.compile(energy, backend="baechi", options=OPTIONS)
    torch.testing.assert_close(form(compiled)(x), form(energy)(x))


@pytest.mark.parametrize("form", ["hessian", "vhp"])
def test_gradients_of_gradients_outside_are_refused(form):
    """PyTorch's own backends give zeros."""
    torch._dynamo.reset()
    compiled = torch.compile(energy, backend="baechi", options=OPTIONS)
    x = torch.randn(3)
    further = (x,) if form == "vhp" else ()
    with pytest.raises(baechi.torch.ImportFailure, match="create_graph=True.*ask for both within"):
        getattr(torch.autograd.functional, form)(compiled, x, *further)
    within = torch.compile(func.hessian(energy), backend="baechi", options=OPTIONS)
    torch.testing.assert_close(within(x), torch.autograd.functional.hessian(energy, x))


class Places(nn.Module):
    """Reads and writes where tensors of one number say."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.register_buffer("place", torch.tensor(-1))
        self.register_buffer("cache", torch.zeros(2, 6, 4))

    def forward(self, x):
        y = self.inner(x)
        self.place += 1
        self.cache[:, self.place] = y.detach().mean(0)
        self.cache[1, self.place, 1:3] = self.cache[0, self.place, -1]
        last = self.place - 6
        best = y.detach().sum(1).argmax()
        picked = [
            y[self.place],
            y[..., last + 4],
            y[best, None].sum(0),
            y[self.place, torch.tensor([0, 2])],
            y[1:, self.place],
            self.cache[1, last],
        ]
        return torch.cat(picked)


@pytest.mark.parametrize("kind", ["compile_step", "torch.compile"])
def test_indices_that_are_tensors_of_one_number(kind):
    x = torch.randn(5, 3)
    check(Places(), x, torch.randn(Places()(x).shape), kind)


def test_an_index_of_one_number_is_checked():
    def pick(x, place):
        return x[place] * 2

    compiled = torch.compile(pick, backend="baechi", options=OPTIONS)
    x = torch.randn(4, 3)
    assert torch.equal(compiled(x, torch.tensor(-4)), x[0] * 2)
    for wrong in (4, -5):
        # PyTorch's own, where torch.compile looks at the number.
        with pytest.raises((IndexError, RuntimeError), match="elements -4 to 3|out of bounds"):
            compiled(x, torch.tensor(wrong))


def test_a_branch_on_values_is_told_with_its_line():
    def cut(x, count):
        return x[: count.max()] * 2  # here

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(cut, backend="baechi", options=OPTIONS)
        with pytest.raises(baechi.torch.ImportFailure, match=rf"{__file__}:\d+: .*fixed shapes"):
            compiled(torch.randn(4, 3), torch.tensor([2]))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, 0.05),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.05, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_within_what_is_compiled(name):
    """The graph holds its tensors, and changes them; what is written there counts."""
    found = []
    for backend in ("eager", "baechi"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, x = nn.Linear(3, 2), torch.randn(4, 3)
        optimizer = OPTIMIZERS[name](model.parameters())

        def train(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        options = {"options": OPTIONS} if backend == "baechi" else {}
        step = torch.compile(train, backend=backend, **options)
        for i in range(3):
            found.append(step(x).detach())
            if i == 1:
                model.weight.data.mul_(0.5)
                for held in optimizer.state.values():
                    for value in held.values():
                        if value is not None and value.dim():
                            value.mul_(0.5)
        found.extend(x.detach() for x in model.parameters())
    half = len(found) // 2
    torch.testing.assert_close(found[half:], found[:half], rtol=1e-4, atol=1e-6)


def clipped(model, x):
    optimizer = torch.optim.SGD(model.parameters(), 0.5)

    def train():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return loss.detach(), norm

    return train


def test_clipped_gradients_within_what_is_compiled():
    x, model = torch.randn(4, 3), nn.Linear(3, 2)
    eager = copy.deepcopy(model)
    torch._dynamo.reset()
    step = torch.compile(clipped(model, x), backend="baechi", options=OPTIONS)
    expected = clipped(eager, x)
    for _ in range(3):
        torch.testing.assert_close(step(), expected())
    torch.testing.assert_close(list(model.parameters()), list(eager.parameters()))


def lists(xs, ys):
    found = torch._foreach_add(xs, ys, alpha=2)
    found = torch._foreach_addcdiv(found, xs, torch._foreach_exp(ys), 0.5)
    torch._foreach_mul_(found, [1.5, 2.0])
    found = torch._foreach_maximum(torch._foreach_lerp(found, xs, 0.3), 0.1)
    torch._foreach_sub_(found, ys)
    torch._foreach_copy_(xs, found)
    torch._foreach_zero_(ys)
    return [*found, *torch._foreach_norm(found, 1), *torch._foreach_max(found)]


def test_operators_on_lists():
    torch._dynamo.reset()
    compiled = torch.compile(lists, backend="baechi", options=OPTIONS)
    given = [[torch.randn(3), torch.randn(2, 2)] for _ in range(2)]
    expected = copy.deepcopy(given)
    torch.testing.assert_close(compiled(*given), lists(*expected))
    torch.testing.assert_close(given, expected)
