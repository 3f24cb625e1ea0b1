# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models, optimizers and state that change between steps or are looked at by others."""

import copy
import io
from concurrent.futures import ThreadPoolExecutor

import pytest

import torch_support as support
from torch_support import F, Pair, baechi, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools


def test_steps_from_several_threads_take_turns():
    """With a learning rate of nothing, each loss is that of its own batch."""
    model = support.Mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = support.compile_step(model, F.cross_entropy, optimizer)
    batches = [support.vectors() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        losses = list(threads.map(lambda batch: step(*batch).item(), batches * 10))
    expected = [F.cross_entropy(model(x), y).item() for x, y in batches] * 10
    assert losses == pytest.approx(expected, rel=1e-5)
    assert len(step._programs) == 1


def _begin_momentum(optimizer, model):
    optimizer.param_groups[0]["momentum"] = 0.5


def _more_momentum(optimizer, model):
    optimizer.param_groups[0].update(momentum=0.7, weight_decay=0.1)


def _other_betas(optimizer, model):
    optimizer.param_groups[0].update(betas=(0.5, 0.9), weight_decay=0.1)


def _freeze(optimizer, model):
    model.second.weight.requires_grad_(False)


def _load(optimizer, model):
    """A state whose settings differ: the optimizer's groups are others then."""
    state = optimizer.state_dict()
    state["param_groups"][0]["lr"] = 0.2
    optimizer.load_state_dict(state)


def _replace_the_group(optimizer, model):
    """What follows sees the groups that were loaded."""
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.param_groups[0]["lr"] = 0.3


CHANGES = {
    "begin_momentum": (lambda p: torch.optim.SGD(p, lr=0.1), _begin_momentum),
    "more_momentum": (support.sgd, _more_momentum),
    "other_betas": (support.adam, _other_betas),
    "freeze": (support.adam, _freeze),
    "load": (support.sgd, _load),
    "replace": (support.sgd, _replace_the_group),
}


@pytest.mark.parametrize("name", CHANGES)
def test_settings_that_change_between_steps(name):
    make, change = CHANGES[name]
    pair = Pair(support.Mlp(), make)
    batch = support.vectors()
    pair.train(3, *batch)
    change(pair.optimizer, pair.model)
    change(pair.eager_optimizer, pair.eager)
    pair.train(3, *batch)
    pair.assert_same_state(rtol=1e-3)


def test_a_schedule_of_momentum():
    pair = Pair(support.Mlp(), support.sgd)
    schedules = [
        torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=8)
        for optimizer in (pair.optimizer, pair.eager_optimizer)
    ]
    for _ in range(3):
        pair.train(1, *support.vectors())
        for schedule in schedules:
            schedule.step()
    pair.assert_same_state()


def test_parameters_that_join_later():
    def head_of(model):
        return {"params": model.head.parameters(), "lr": 1e-2}

    model, eager = support.Mlp(), support.Mlp()
    eager.load_state_dict(model.state_dict())

    def make(model):
        parts = [*model.first.parameters(), *model.second.parameters()]
        return torch.optim.Adam(parts, lr=1e-3)

    ours, theirs = make(model), make(eager)
    step = support.compile_step(model, F.cross_entropy, ours)
    x, y = support.vectors()
    for number in range(5):
        if number == 2:
            ours.add_param_group(head_of(model))
            theirs.add_param_group(head_of(eager))
        loss = F.cross_entropy(eager(x), y)
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert step(x, y).item() == pytest.approx(loss.item(), rel=1e-4), number
    torch.testing.assert_close(step.state_dict()["model"], eager.state_dict(), rtol=1e-3, atol=1e-5)


def test_modules_in_the_model_see_the_newest_state():
    pair = support.Pair(nn.Sequential(support.Mlp(), nn.BatchNorm1d(10)), support.sgd)
    h, x = torch.randn(4, 10), torch.randn(4, 16)
    for look in (lambda m: m[0].first(x), lambda m: m[0](x), lambda m: m[1](h)):
        pair.train(1, *support.vectors())
        # Each look is the first one after its step. BatchNorm's uses its running statistics.
        ours, theirs = (look(each) for each in (pair.model.eval(), pair.eager.eval()))
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        pair.model.train(), pair.eager.train()


def test_what_was_changed_survives_a_look_at_the_model():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    step(x, y)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    assert model(x).abs().max() == 0
    assert step(x[:4], y[:4]).item() == pytest.approx(torch.log(torch.tensor(10.0)).item())


def test_a_model_with_a_step_is_saved_and_copied_whole():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    step(x, y)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    copies = torch.load(file, weights_only=False), copy.deepcopy(model)
    expected = model(x)
    step(x, y)
    for other in copies:
        torch.testing.assert_close(other(x), expected)
        torch.testing.assert_close(other.state_dict()["head.bias"], other.head.bias.detach())
    assert not torch.equal(model(x), expected)


def test_a_compiled_look_at_the_model_sees_the_newest_state():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="eager")
    for _ in range(2):
        step(x, y)
        torch.testing.assert_close(compiled(x), model(x))
        assert torch.equal(model.head.bias, step.state_dict()["model"]["head.bias"])
