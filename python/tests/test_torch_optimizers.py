# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All of torch.optim's dense optimizers within compiled steps, against PyTorch's own."""

import pytest

import torch_support as support
from baechi.torch import UnsupportedOptimizer
from torch_support import F, Pair, seeded, torch  # noqa: F401

pytestmark = support.needs_tools
optim = torch.optim


def matrices(parameters):
    """What Muon takes; it leaves the biases alone."""
    return [parameter for parameter in parameters if parameter.dim() == 2]


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01),
    "sgd_damped": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, foreach=True),
    "adam_maximize": lambda p: optim.Adam(p, lr=1e-3, maximize=True, fused=True),
    "adam_decoupled": lambda p: optim.Adam(
        p, lr=1e-3, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.05, lr_decay=0.1, initial_accumulator_value=0.1),
    "adadelta": lambda p: optim.Adadelta(p, lr=1.0, weight_decay=0.01),
    "adamax": lambda p: optim.Adamax(p, lr=1e-2, weight_decay=0.01),
    "nadam": lambda p: optim.NAdam(p, lr=1e-2, weight_decay=0.1),
    "nadam_decoupled": lambda p: optim.NAdam(p, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda p: optim.RAdam(p, lr=1e-2, betas=(0.9, 0.99)),
    "rmsprop": lambda p: optim.RMSprop(p, lr=1e-3),
    "rmsprop_centered": lambda p: optim.RMSprop(p, lr=1e-3, momentum=0.9, centered=True),
    "rprop": lambda p: optim.Rprop(p, lr=1e-3),
    "asgd": lambda p: optim.ASGD(p, lr=0.05, t0=2, weight_decay=0.01),
    "adafactor": lambda p: optim.Adafactor(p, foreach=True),
    "adafactor_decayed": lambda p: optim.Adafactor(
        p, lr=0.05, beta2_decay=-0.6, eps=(1e-6, 1e-2), d=2.0, weight_decay=0.1, maximize=True
    ),
    "muon": lambda p: optim.Muon(matrices(p), lr=0.02),
    "muon_plain": lambda p: optim.Muon(
        matrices(p), momentum=0.8, nesterov=False, ns_steps=4, adjust_lr_fn="match_rms_adamw"
    ),
}


def many_vectors():
    return torch.randn(96, 16), torch.randint(0, 8, (96,))


def assert_equal_optimizers(pair, rtol=1e-3, atol=1e-5):
    ours, theirs = (o.state_dict()["state"] for o in (pair.optimizer, pair.eager_optimizer))
    assert ours.keys() == theirs.keys()
    for index, expected in theirs.items():
        kept = {key: x for key, x in expected.items() if x is not None}
        torch.testing.assert_close(ours[index], kept, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_and_states_are_pytorchs(name):
    pair = Pair(support.Mlp(), OPTIMIZERS[name], machine="host:1")
    # Rprop goes by signs, which rounding decides where a gradient is almost zero. Muon makes
    # directions of a matrix alike, also those that examples leave to rounding.
    batch, steps = (many_vectors(), 2) if "muon" in name else (support.vectors(), 7)
    pair.train(steps, *batch)
    assert len(pair.step._programs) == 1
    torch.testing.assert_close(
        pair.model.state_dict(), pair.eager.state_dict(), rtol=1e-3, atol=1e-4
    )
    assert_equal_optimizers(pair)
    # Either can go on with the other's state.
    pair.eager_optimizer.load_state_dict(pair.optimizer.state_dict())
    pair.eager.load_state_dict(pair.model.state_dict())
    pair.train(1, *batch)


SCHEDULES = {
    "cosine_adafactor": (
        OPTIMIZERS["adafactor"],
        lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 9),
    ),
    "exponential_muon": (OPTIMIZERS["muon"], lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5)),
    "one_cycle": (support.sgd, lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9)),
    "one_cycle_adam": (
        support.adam,
        lambda o: optim.lr_scheduler.OneCycleLR(o, 0.01, total_steps=9),
    ),
    "cyclic": (
        support.sgd,
        lambda o: optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=2, cycle_momentum=True),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_compiled_once(name):
    make, schedule = SCHEDULES[name]
    pair = Pair(support.Mlp(), make, machine="host:1")
    schedules = [schedule(each) for each in (pair.optimizer, pair.eager_optimizer)]
    for number in range(7):
        pair.train(1, *support.vectors())
        for each in schedules:
            each.step()
        for optimizer in (pair.optimizer, pair.eager_optimizer):
            optimizer.param_groups[0]["weight_decay"] = 0.01 * (number + 1)
    assert len(pair.step._programs) <= 2  # without decay, and with it
    pair.assert_same_state(rtol=1e-3)


@pytest.mark.parametrize("make", [support.adam, support.sgd, OPTIMIZERS["nadam"]])
def test_gradual_unfreezing_within_one_group(make):
    """Updates are counted by parameter, as PyTorch does."""
    model = support.Mlp()
    model.first.requires_grad_(False)
    model.second.requires_grad_(False)
    pair, batch = Pair(model, make), support.vectors()
    for thawed in ("second", "first", None):
        pair.train(2, *batch)
        if thawed:
            getattr(pair.model, thawed).requires_grad_(True)
            getattr(pair.eager, thawed).requires_grad_(True)
    pair.model.head.bias.requires_grad_(False)
    pair.eager.head.bias.requires_grad_(False)
    pair.train(2, *batch)
    pair.assert_same_state(rtol=1e-3)
    assert_equal_optimizers(pair)


def test_groups_of_settings():
    def make(model):
        return optim.RMSprop(
            [
                {"params": model.first.parameters(), "lr": 1e-3, "momentum": 0.9},
                {"params": [*model.second.parameters(), *model.head.parameters()]},
            ],
            lr=1e-2,
        )

    model = support.Mlp()
    pair = Pair(model, lambda p: support.sgd(p))
    pair.optimizer, pair.eager_optimizer = make(pair.model), make(pair.eager)
    pair.step = support.compile_step(pair.model, F.cross_entropy, pair.optimizer)
    pair.train(4, *support.vectors())
    pair.assert_same_state(rtol=1e-3)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_scalars_beside_wider_parameters(name):
    """A scalar keeps its type, whatever type the other's hyperparameters have."""

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(0.7))
            self.short = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.bfloat16))
            self.shift = torch.nn.Parameter(torch.ones(16, dtype=torch.float64))

        def forward(self, x):
            return x * self.scale * self.short + self.shift

    makers = {"sgd": lambda p: optim.SGD(p, 0.1, momentum=0.9), "adamw": optim.AdamW}
    pair = Pair(Scaled(), makers[name])
    pair.train(4, *support.vectors(), rtol=1e-2)
    pair.assert_same_state(rtol=1e-2)
    assert [p.dtype for p in pair.model.parameters()] == [p.dtype for p in pair.eager.parameters()]


@pytest.mark.parametrize(
    "make, told",
    [
        (
            lambda p: optim.LBFGS(p),
            "LBFGS .* several times.*own: optimizer.step.closure",
        ),
        (lambda p: optim.SparseAdam(list(p)), "SparseAdam .* gradients are dense here: use Adam"),
        (lambda p: optim.SGD(p, lr=0.1, differentiable=True), "differentiable=True"),
        (lambda p: optim.Adam(p, capturable=True), "capturable=True"),
    ],
)
def test_other_optimizers_are_refused_by_name(make, told):
    model = support.Mlp()
    with pytest.raises(UnsupportedOptimizer, match=told):
        support.compile_step(model, F.cross_entropy, make(model.parameters()))


def test_what_a_refusal_advises_works():
    """LBFGS asks the compiled model for the loss several times in a step."""
    losses = []
    for compiled in (True, False):
        torch.manual_seed(0)
        model = support.Mlp()
        optimizer = optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
        (x, y), run = support.vectors(), model
        if compiled:
            options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
            run = torch.compile(model, backend="baechi", options=options)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(run(x), y)
            loss.backward()
            return loss

        losses.append([optimizer.step(closure).item() for _ in range(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_what_is_no_optimizer_is_named():
    with pytest.raises(TypeError, match=r"optimizer is None: give one of torch\.optim"):
        support.compile_step(support.Mlp(), F.cross_entropy, None)
