# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own tensors are the state of compiled steps: what ordinary loops read and write
between steps is what they read and write eagerly."""

import copy

import pytest

import torch_support as support
from torch_support import F, Pair, nn, seeded, torch  # noqa: F401

# isort: split
from baechi.torch import UnsupportedOptimizer

pytestmark = support.needs_tools


def assert_equal_states(ours, theirs):
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-4, atol=1e-5)


def eager_step(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _clamp_data(model):
    for parameter in model.parameters():
        parameter.data.clamp_(-0.05, 0.05)  # bumps no version


def _clamp(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.clamp_(-0.05, 0.05)


def _replace_data(model):
    model.first.weight.data = model.first.weight.data * 0.5


def _write_through_numpy(model):
    model.first.bias.detach().numpy()[:] = 0.25


def _transposed(model):
    """Memory that is not contiguous."""
    model.second.weight.data = (model.second.weight.data * 2).T.contiguous().T


def _new_parameter(model):
    """Another object, which the optimizer does not have: it is not trained any more."""
    model.head.bias.requires_grad_(False)
    model.head.bias.data.zero_()


WRITES = (_clamp_data, _clamp, _replace_data, _write_through_numpy, _transposed, _new_parameter)


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_between_steps(write):
    pair, batch = Pair(support.Mlp(), support.adam), support.vectors()
    for _ in range(3):
        pair.train(1, *batch)
        write(pair.model)
        write(pair.eager)
    pair.train(1, *batch)
    assert_equal_states(pair.model, pair.eager)


def test_whoever_reads_sees_the_newest():
    """Views of numpy, norms, averages, without asking the step."""
    pair, batch = Pair(support.Mlp(), support.sgd), support.vectors()
    held = pair.model.first.weight.detach().numpy(), pair.model.second.weight.data
    momentum = None
    for _ in range(3):
        pair.train(1, *batch)
        torch.testing.assert_close(torch.from_numpy(held[0]), pair.eager.first.weight.detach())
        torch.testing.assert_close(held[1], pair.eager.second.weight.detach())
        norms = (sum(p.norm() for p in m.parameters()) for m in (pair.model, pair.eager))
        assert next(norms).item() == pytest.approx(next(norms).item(), rel=1e-5)
        if momentum is None:
            momentum = pair.optimizer.state[pair.model.head.weight]["momentum_buffer"]
        expected = pair.eager_optimizer.state[pair.eager.head.weight]["momentum_buffer"]
        torch.testing.assert_close(momentum, expected, rtol=1e-3, atol=1e-6)


def test_autograd_sees_that_a_step_has_changed_what_it_saved():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    loss = model(x).square().mean()
    step(x, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("kind", ["ema", "swa"])
def test_averaged_models(kind):
    function = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9) if kind == "ema" else None
    pair, batch = Pair(support.Mlp(), support.adam), support.vectors()
    averages = [
        torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=function)
        for model in (pair.model, pair.eager)
    ]
    for _ in range(4):
        pair.train(1, *batch)
        for average, model in zip(averages, (pair.model, pair.eager)):
            average.update_parameters(model)
    assert_equal_states(*averages)


def test_a_teacher_in_the_loss_that_follows_the_model():
    """A tensor that the loss has of elsewhere is read anew at every step."""
    model = support.Mlp()
    eager = copy.deepcopy(model)
    x, y = support.vectors()

    def parts(model):
        teacher = copy.deepcopy(model).requires_grad_(False)
        weight = torch.tensor(0.5)

        def loss(logits, batch):
            x, y = batch
            return F.cross_entropy(logits, y) + weight * F.mse_loss(logits, teacher(x))

        def follow():
            with torch.no_grad():
                for ours, theirs in zip(teacher.parameters(), model.parameters()):
                    ours.lerp_(theirs, 0.3)
                weight.mul_(1.5)

        return loss, follow, torch.optim.SGD(model.parameters(), lr=0.1)

    loss, follow, optimizer = parts(model)
    step = support.compile_step(model, loss, optimizer)
    eager_loss, eager_follow, eager_optimizer = parts(eager)
    for _ in range(4):
        found = step(x, (x, y))
        expected = eager_loss(eager(x), (x, y))
        eager_step(expected, eager_optimizer)
        follow()
        eager_follow()
        assert found.item() == pytest.approx(expected.item(), rel=1e-4)
    assert_equal_states(model, eager)


def critic():
    layers = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 1)
    return nn.Sequential(*layers).double()


def generator():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)).double()


def _real(scores):
    return F.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))


def _fake(scores):
    return F.binary_cross_entropy_with_logits(scores, torch.zeros_like(scores))


def test_a_gan_whose_steps_share_modules():
    """The critic is a model of one step and within the loss of the other, with statistics
    that both change."""
    ours = generator(), critic()
    theirs = copy.deepcopy(ours)

    def optimizers(g, d):
        return (
            torch.optim.Adam(g.parameters(), lr=1e-2, betas=(0.5, 0.9)),
            torch.optim.Adam(d.parameters(), lr=1e-2, betas=(0.5, 0.9)),
        )

    (g, d), (for_g, for_d) = ours, optimizers(*ours)
    half = 8
    step_d = support.compile_step(
        d, lambda scores, _: _real(scores[:half]) + _fake(scores[half:]), for_d
    )
    step_g = support.compile_step(g, lambda made, _: _real(d(made)), for_g)
    (eg, ed), (eager_for_g, eager_for_d) = theirs, optimizers(*theirs)
    for seed in range(6):
        torch.manual_seed(seed)
        real, noise = torch.randn(half, 4).double() + 1, torch.randn(half, 3).double()
        with torch.no_grad():
            made = g(noise)
        found = step_d(torch.cat([real, made]), None).item(), step_g(noise, None).item()
        scores = ed(torch.cat([real, eg(noise).detach()]))
        loss_d = _real(scores[:half]) + _fake(scores[half:])
        eager_step(loss_d, eager_for_d)
        loss_g = _real(ed(eg(noise)))
        eager_step(loss_g, eager_for_g)
        assert found == pytest.approx((loss_d.item(), loss_g.item()), rel=1e-9), seed
    for mine, eager in zip(ours, theirs):
        torch.testing.assert_close(mine.state_dict(), eager.state_dict(), rtol=1e-6, atol=1e-9)


def test_two_losses_and_one_optimizer_over_one_model():
    model = support.Mlp()
    eager, optimizer = copy.deepcopy(model), support.adam(model.parameters())
    eager_optimizer = support.adam(eager.parameters())
    losses = F.cross_entropy, lambda logits, _: logits.square().mean()
    steps = [support.compile_step(model, loss, optimizer) for loss in losses]
    x, y = support.vectors()
    for _ in range(3):
        for step, loss in zip(steps, losses):
            expected = loss(eager(x), y)
            eager_step(expected, eager_optimizer)
            assert step(x, y).item() == pytest.approx(expected.item(), rel=1e-4)
    assert_equal_states(model, eager)


def test_a_penalty_on_parameters_within_the_loss():
    model = support.Mlp()
    eager = copy.deepcopy(model)

    def penalized(model):
        return lambda logits, y: (
            F.cross_entropy(logits, y) + 0.1 * sum(p.square().sum() for p in model.parameters())
        )

    step = support.compile_step(model, penalized(model), support.sgd(model.parameters()))
    optimizer, (x, y) = support.sgd(eager.parameters()), support.vectors()
    for _ in range(3):
        expected = penalized(eager)(eager(x), y)
        eager_step(expected, optimizer)
        assert step(x, y).item() == pytest.approx(expected.item(), rel=1e-4)
    assert_equal_states(model, eager)


def test_parameters_that_are_read_elsewhere_are_refused():
    model = support.Mlp()
    held = list(model.parameters())

    def loss(logits, y):
        return F.cross_entropy(logits, y) + sum(p.square().sum() for p in held)

    step = support.compile_step(model, loss, support.sgd(model.parameters()))
    with pytest.raises(support.baechi.torch.ImportFailure, match="'first.weight' from a variable"):
        step(*support.vectors())


def test_a_buffer_that_is_replaced():
    class Counting(support.Mlp):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(16))

        def forward(self, x):
            self.count = self.count + 1
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            return super().forward(x - self.mean)

    pair = Pair(Counting(), support.sgd)
    pair.train(3, *support.vectors())
    assert pair.model.count.item() == 3
    assert_equal_states(pair.model, pair.eager)


def test_parameters_in_the_same_memory_are_refused():
    model = support.Mlp()
    model.second.bias = nn.Parameter(model.first.bias.data)
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    with pytest.raises(ValueError, match="'first.bias' and 'second.bias' lie in the same memory"):
        step(*support.vectors())


def test_models_on_other_devices_are_refused():
    model = support.Mlp().to("meta")
    with pytest.raises(ValueError, match="is on meta; keep the model on the CPU"):
        support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))


def test_a_step_that_fails_leaves_the_state_as_it_was():
    class Looked(support.Mlp):
        def forward(self, x, at):
            return super().forward(x)[torch.arange(8), at + 1].mean()

    model = Looked()
    optimizer = support.adam(model.parameters())
    step = support.compile_step(model, None, optimizer)
    x = torch.randn(8, 16)
    step(x, torch.zeros(8, dtype=torch.int64))
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    with pytest.raises(IndexError, match="out of range"):
        step(x, torch.full((8,), 9))
    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()), before, rtol=0, atol=0)


@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}])
def test_a_converted_model_wants_its_optimizers_state_converted(options):
    def make(parameters):
        return torch.optim.SGD(parameters, lr=0.1, **options)

    pair, (x, y) = Pair(support.Mlp(), make), support.vectors()
    pair.train(2, x, y)
    pair.model.double(), pair.eager.double()
    before = copy.deepcopy(pair.optimizer.state_dict())
    with pytest.raises(UnsupportedOptimizer, match=r"is float32.*float64 since"):
        pair.step(x.double(), y)
    torch.testing.assert_close(pair.optimizer.state_dict(), before, rtol=0, atol=0)
    for optimizer in (pair.optimizer, pair.eager_optimizer):
        optimizer.load_state_dict(optimizer.state_dict())
    pair.train(2, x.double(), y, rtol=1e-6)
    assert_equal_states(pair.model, pair.eager)


def test_types_of_the_model_may_change():
    pair, (x, y) = Pair(support.Mlp(), support.sgd), support.vectors()
    pair.train(2, x, y)
    pair.model.double(), pair.eager.double()
    pair.optimizer.state.clear(), pair.eager_optimizer.state.clear()
    pair.train(2, x.double(), y, rtol=1e-6)
    assert pair.model.head.bias.dtype == torch.float64
    assert_equal_states(pair.model, pair.eager)


def test_another_optimizers_gradients_are_no_silent_nothing():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Linear(2, 2))
    unused = nn.Linear(2, 2)
    model.unused = unused
    model.forward = lambda x: model[2](model[1](model[0](x)))
    first = torch.optim.SGD(model[0].parameters(), lr=0.1)
    second = torch.optim.Adam(model[2].parameters(), lr=0.1)
    step = support.compile_step(model, F.mse_loss, first, machine="host:1")
    assert "not compiled yet" in repr(step)
    step(torch.randn(5, 3), torch.randn(5, 2))
    assert repr(step).startswith("<baechi training step of Sequential with SGD on host:1: 1 prog")
    with pytest.raises(RuntimeError, match="a second optimizer needs a step of its own"):
        second.step()
    model.zero_grad()  # drops what cannot be used
    F.mse_loss(model(torch.randn(5, 3)), torch.randn(5, 2)).backward()
    second.step()
    assert unused.weight.grad is None
