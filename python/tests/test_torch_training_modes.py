# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's modes, views and second derivatives are to a compiled model in training."""

import pytest

import torch_support as support
from torch_support import F, baechi, nn, seeded, torch  # noqa: F401
from training_loops import assert_equal_loops, batches, compiled, mlp, plainly, sgd

pytestmark = support.needs_tools


def test_inputs_with_gradients_layouts_and_views():
    def loop(wrap, model):
        net = wrap(model)
        for make in (
            lambda: torch.randn(6, 5).t(),
            lambda: torch.randn(10, 6)[::2],
            lambda: torch.randn(1, 6).expand(5, 6),
            lambda: torch.randn(0, 6),
        ):
            x = make().detach().requires_grad_()
            net(x).sin().sum().backward()
            yield x.grad
        yield [p.grad for p in model.parameters()]

    assert_equal_loops(loop, nn.Sequential(nn.Linear(6, 3), nn.Tanh()))


def test_changes_in_place_views_and_shared_memory():
    def function(x, y, w):
        x.mul_(2)
        x[0] = w.sum()
        y += 1
        return x[:, 1:], x.t(), w.clone(), w.view(-1), w.detach(), y, (x * w), w

    def loop(wrap):
        net = wrap(function)
        for _ in range(2):
            x, y, w = torch.randn(3, 3), torch.ones(3, dtype=torch.int64), torch.randn(3, 3)
            found = net(x, y, w)
            found[0].add_(1)  # seen in x, and in x.t()
            found[2].zero_()  # not in w
            found[3].mul_(3)  # in w
            yield x, y, w, *found
        x = torch.randn(3, 3)
        yield net(x, torch.ones(3, dtype=torch.int64), x)  # one tensor as two inputs
        w = torch.randn(3, 3, requires_grad=True)
        found = net(torch.randn(3, 3), torch.ones(3, dtype=torch.int64), w)
        (found[0].sum() + found[6].sin().sum() + found[3].sum()).backward()
        yield w.grad

    assert_equal_loops(loop)


def test_autocast_is_what_it_is_at_the_call():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            x = self.first(x)
            with torch.autocast("cpu", enabled=False):
                return self.second(x.float())

    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model)
        for i, (x, y) in enumerate(batches(4)):
            with torch.autocast("cpu", torch.bfloat16, enabled=i % 2 == 0):
                scores = net(x)
                yield scores.dtype == torch.bfloat16
                loss = F.cross_entropy(scores, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    assert_equal_loops(loop, Mixed(), rtol=1e-3, atol=1e-4)


def test_modes_without_gradients():
    def loop(wrap, model):
        net = wrap(model.eval())
        x = torch.randn(5, 6)
        with torch.no_grad():
            yield net(x), net(x).requires_grad
        with torch.inference_mode():
            yield net(x).clone()
        out = net(x)
        yield out.requires_grad
        out.sum().backward()
        yield [p.grad for p in model.parameters()]

    assert_equal_loops(loop, mlp())


def test_graph_breaks():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            x = self.first(x)
            if x.sum() > 0:
                x = x * 2
            return self.second(x)

    assert_equal_loops(plainly(4), Broken())


def test_the_backward_pass_tells_of_itself():
    torch._dynamo.reset()
    model = mlp()
    net = compiled(model, pin={"3*": "host1"})
    x, y = next(batches(1))
    F.cross_entropy(net(x), y).backward()
    graph = baechi.torch.graphs()[-1]
    assert graph.placement["3.weight"] == graph.placement["3/mm"] == "host1"
    assert "predicted" in graph.backward.report()
    assert any(name.startswith("backward/3/") for name in graph.backward.placement)
    with torch.no_grad():
        net(x)
    assert baechi.torch.graphs()[-1].backward is None


def test_gradient_penalty():
    def penalty(critic, real, fake):
        mixed = (0.3 * real + 0.7 * fake).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        return critic(fake).mean() - critic(real).mean() + (gradient.norm(2, 1) - 1).square().mean()

    def loop(wrap, critic):
        loss, optimizer = wrap(penalty), sgd(critic)
        for x, _ in batches(3):
            value = loss(critic, x, x.flip(0) * 2)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            yield value.item()

    with torch._dynamo.config.patch(trace_autograd_ops=True):
        critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        assert_equal_loops(loop, critic)


def test_a_second_derivative_of_a_compiled_model_is_refused():
    torch._dynamo.reset()
    critic = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(4, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(compiled(critic)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.square().sum().backward()
