# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.compile_step` trains as PyTorch does, and keeps the state on the devices."""

import pytest

import torch_support as support
from baechi.compiling import tools
from torch_support import F, Pair, baechi, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools


@pytest.mark.parametrize("machine", ["host:1", "host:2", "host:4"])
def test_an_mlp_trains_as_eagerly(machine):
    pair = Pair(support.Mlp(), support.sgd, machine=machine)
    pair.train(10, *support.vectors())
    pair.assert_same_state()


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "dampened": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=1e-1, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    pair = Pair(support.Mlp(), OPTIMIZERS[name])
    pair.train(6, *support.vectors())
    pair.assert_same_state()
    ours = pair.optimizer.state_dict()["state"]
    theirs = pair.eager_optimizer.state_dict()["state"]
    for index, expected in theirs.items():
        for key, value in expected.items():
            if value is not None:
                torch.testing.assert_close(ours[index][key], value, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("machine", ["host:1", "host:2", "host:4"])
def test_a_transformer_trains_as_eagerly(machine):
    pair = Pair(support.Words(), support.adam, support.token_loss, machine=machine)
    pair.train(6, *support.tokens())


def test_batch_normalization_keeps_its_statistics():
    pair = Pair(support.Convolutions(), support.sgd)
    pair.train(5, *support.images())
    pair.assert_same_state(rtol=1e-3)
    assert pair.model.norm.num_batches_tracked.item() == 5


def test_lstm():
    pair = Pair(support.Recurrent(), support.adam)
    pair.train(5, torch.randn(4, 5, 6), torch.randint(0, 10, (4,)))


def test_who_looks_at_the_model_sees_the_newest_state():
    pair = Pair(support.Mlp(), support.adam)
    x, y = support.vectors()
    pair.train(3, x, y)
    torch.testing.assert_close(pair.model(x), pair.eager(x), rtol=1e-4, atol=1e-5)
    pair.train(2, x, y)
    # An eager step in between counts.
    for model, optimizer in (
        (pair.model, pair.optimizer),
        (pair.eager, pair.eager_optimizer),
    ):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    pair.train(2, x, y)
    pair.assert_same_state()


def test_saved_and_loaded_state():
    x, y = support.vectors()
    pair = Pair(support.Mlp(), support.adam)
    pair.train(3, x, y)
    saved = pair.step.state_dict()
    saved = {key: torch.utils._pytree.tree_map(_copied, value) for key, value in saved.items()}
    losses = [pair.step(x, y).item() for _ in range(3)]
    pair.step.load_state_dict(saved)
    assert [pair.step(x, y).item() for _ in range(3)] == losses


def _copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def test_schedulers_need_no_other_program():
    x, y = support.vectors()
    pair = Pair(support.Mlp(), support.sgd)
    schedulers = [
        torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for optimizer in (pair.optimizer, pair.eager_optimizer)
    ]
    for _ in range(5):
        pair.train(1, x, y)
        for scheduler in schedulers:
            scheduler.step()
    assert len(pair.step._programs) == 1
    pair.assert_same_state()


def test_other_shapes_and_modes_go_on_with_the_same_state():
    pair = Pair(support.Convolutions(), support.sgd)
    pair.train(2, *support.images(2))
    pair.train(2, *support.images(3))
    for model in (pair.model, pair.eager):
        model.eval()
    pair.train(2, *support.images(2))
    assert len(pair.step._programs) == 3
    pair.assert_same_state(rtol=1e-3)


def test_dropout_draws_what_pytorch_draws():
    class Model(support.Mlp):
        def forward(self, x):
            return F.dropout(super().forward(F.dropout(x, 0.25)), 0.5)

    pair = Pair(Model(), support.sgd)
    x, y = support.vectors()
    for seed in range(4):
        torch.manual_seed(seed)
        ours = pair.step(x, y)
        torch.manual_seed(seed)
        theirs = pair.eager_loss((x,), y)
        pair.eager_optimizer.zero_grad()
        theirs.backward()
        pair.eager_optimizer.step()
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


@pytest.mark.parametrize("noisy", [F.dropout, lambda x: x + torch.rand_like(x)])
def test_numbers_are_drawn_in_the_order_of_memory(noisy):
    """For a tensor that lies transposed, as for the one that it is a view of."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Conv1d(4, 6, 3, padding=1)

        def forward(self, x):
            return noisy(self.line(x.transpose(1, 2)).transpose(1, 2))

    pair = Pair(Model(), support.sgd, loss=F.mse_loss)
    x, y = torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    compiled = torch.compile(
        pair.eager, backend="baechi", options={"costs": "roofline", "budget": "0"}
    )
    for seed in range(3):
        losses = []
        for give in (
            lambda: pair.step(x, y),
            lambda: F.mse_loss(compiled(x), y),
            lambda: pair.eager_loss((x,), y),
        ):
            torch.manual_seed(seed)
            losses.append(give())
        pair.eager_optimizer.zero_grad()
        losses[-1].backward()
        pair.eager_optimizer.step()
        assert [loss.item() for loss in losses[:2]] == pytest.approx([losses[2].item()] * 2)


class Dropped(nn.Module):
    """A recurrent network that drops what goes from a layer to the next."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layers = kind(5, 8, 3, dropout=0.5, **options)
        self.head = nn.LazyLinear(10)

    def forward(self, x):
        found, hidden = self.layers(x)
        hidden = hidden[0] if isinstance(self.layers, nn.LSTM) else hidden
        return self.head(found.mean(0)) + hidden.mean()


RECURRENT = {
    "lstm": lambda: Dropped(nn.LSTM),
    "batch_first": lambda: Dropped(nn.LSTM, batch_first=True, bias=False),
    "projected": lambda: Dropped(nn.LSTM, proj_size=3),
    "gru": lambda: Dropped(nn.GRU, bidirectional=True),
    "rnn": lambda: Dropped(nn.RNN, nonlinearity="relu"),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_dropout_between_recurrent_layers(name):
    model, x = RECURRENT[name](), torch.randn(4, 4, 5)
    model(x)  # makes the head
    pair = Pair(model, support.sgd)
    target = torch.tensor([3, 1, 0, 9])
    losses = set()
    for seed in range(3):
        torch.manual_seed(seed)
        ours = pair.step(x, target)
        torch.manual_seed(seed)
        theirs = pair.eager_loss((x,), target)
        pair.eager_optimizer.zero_grad()
        theirs.backward()
        pair.eager_optimizer.step()
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-4)
        losses.add(ours.item())
    assert len(losses) == 3


def test_frozen_and_unused_parameters_stay():
    class Model(support.Mlp):
        def __init__(self):
            super().__init__()
            self.unused = nn.Linear(3, 3)
            self.first.weight.requires_grad_(False)

    pair = Pair(Model(), lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1))
    pair.train(3, *support.vectors())
    pair.assert_same_state()
    assert not pair.optimizer.state_dict()["state"].get(6)


def test_tied_weights_and_a_loss_of_the_model():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 8)
            self.head = nn.Linear(8, 20, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens, target, *, scale):
            logits = self.head(self.embedding(tokens))
            return scale * support.token_loss(logits, target)

    model = Tied()
    eager = Tied()
    eager.load_state_dict(model.state_dict())
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.5))
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.5)
    x, y = support.tokens()
    for _ in range(5):
        loss = eager(x, y, scale=2.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert step(x, y, scale=2.0).item() == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(step.state_dict()["model"], eager.state_dict())


def test_a_limit_that_one_device_cannot_hold():
    x, y = support.vectors()
    model = support.Mlp(hidden=64)
    with pytest.raises(tools.CompileError, match="50.00 KiB"):
        support.compile_step(
            model, F.cross_entropy, support.sgd(model.parameters()), machine="host:1@50KiB"
        )(x, y)
    pair = Pair(model, support.sgd, machine="host:2@50KiB")
    pair.train(3, x, y)


def test_pins_placement_and_reports():
    x, y = support.vectors()
    model = support.Mlp()
    step = support.compile_step(
        model, F.cross_entropy, support.sgd(model.parameters()), pin={"second*": "host1"}
    )
    with pytest.raises(RuntimeError, match="call it first"):
        step.report()
    step(x, y)
    assert step.placement["second.weight"] == step.placement["second/mm"] == "host1"
    assert "backward/head/mm" in step.placement and "x" in step.placement
    assert "predicted" in step.report() and "host1" in step.explain("second/mm")


def test_indices_that_are_out_of_range():
    tokens, targets = support.tokens()
    model = support.Words(layers=1)
    step = support.compile_step(model, support.token_loss, support.sgd(model.parameters()))
    step(tokens, targets)
    tokens[0, 0] = 20
    with pytest.raises(IndexError, match="'tokens' holds 20: 'embedding' has rows 0 to 19"):
        step(tokens, targets)
    tokens[0, 0] = 0
    targets[0, 0] = -100  # which PyTorch ignores
    assert step(tokens, targets).isfinite()
    targets[0, 0] = 20
    with pytest.raises(IndexError, match="'target' holds 20: 'loss' has classes 0 to 19"):
        step(tokens, targets)
    targets[0, 0] = 19
    assert step(tokens, targets).isfinite()


def test_computed_indices_that_are_out_of_range():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(4, 3)

        def forward(self, x):
            return self.table(x + 1).sum()

    model = Model()
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.1))
    assert step(torch.tensor([0, 2])).isfinite()
    before = model.table.weight.detach().clone()
    with pytest.raises(IndexError, match="out of range: 'table' has rows 0 to 3"):
        step(torch.tensor([0, 3]))
    assert torch.equal(model.table.weight, before)


@pytest.mark.parametrize("computed", [0, 1])
def test_repeats_that_add_up_to_another_number(computed):
    def repeated(x, repeats):
        return x.repeat_interleave(repeats + computed, 0, output_size=6)

    compiled = torch.compile(repeated, backend="baechi")
    x = torch.randn(3, 4)
    for right in ([1, 2, 3], [0, 6, 0]):
        repeats = torch.tensor(right) - computed
        assert torch.equal(compiled(x, repeats), repeated(x, repeats))
    for wrong in ([1, 2, 2], [1, 2, 4], [-1, 4, 3]):
        with pytest.raises(IndexError, match="takes numbers from 0 on that add up to 6"):
            compiled(x, torch.tensor(wrong) - computed)


@pytest.mark.parametrize("largest", ["max", "amax", "amin"])
def test_gradients_of_the_largest_element(largest):
    """That of amax looks for the elements that equal it: none may be rounded otherwise."""

    class Model(support.Recurrent):
        def forward(self, x):
            found = getattr(F.silu(self.lstm(x)[0]), largest)(1)
            return self.head(found.values if largest == "max" else found)

    batch = torch.randn(4, 5, 6), torch.randint(0, 10, (4,))
    pair = Pair(Model(), support.sgd)
    pair.train(3, *batch)
    pair.assert_same_state()
