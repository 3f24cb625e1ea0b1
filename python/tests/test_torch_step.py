# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.compile_step` trains as PyTorch does, and keeps the state on the devices."""

import copy
import importlib
import io
from concurrent.futures import ThreadPoolExecutor

import pytest

import torch_support as support
from baechi.compiling import tools
from baechi.importer.common.errors import ImportFailure
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
    with pytest.raises(tools.CompileError, match="56.00 KiB"):
        support.compile_step(
            model, F.cross_entropy, support.sgd(model.parameters()), machine="host:1@56KiB"
        )(x, y)
    pair = Pair(model, support.sgd, machine="host:2@56KiB")
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


def test_dropout_within_attention():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.MultiheadAttention(8, 2, dropout=0.4, batch_first=True)

        def forward(self, x):
            return self.mix(x, x, x, need_weights=False)[0].square().mean()

    model, x = Attention(), torch.randn(2, 5, 8)
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.0))
    for seed in range(3):
        torch.manual_seed(seed)
        found = step(x).item()
        torch.manual_seed(seed)
        assert found == pytest.approx(model(x).item(), rel=1e-5)
    model.eval()
    assert step(x).item() == pytest.approx(model(x).item(), rel=1e-5)


class MaskedAttention(nn.Module):
    """As the library `transformers` has it: a mask by `vmap` over positions, from running
    sums, and a look at the tokens where nothing is compiled."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(20, 16), nn.Linear(16, 48)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        if not torch.compiler.is_compiling() and 0 in tokens[:, [-1, 0]]:
            raise ValueError("padding without a mask")
        sequence = (tokens == 1).cumsum(-1)
        places = torch.arange(tokens.shape[1])

        def allowed(batch, row, column):
            return (column <= row) & (sequence[batch, row] == sequence[batch, column])

        for dims in ((None, None, 0), (None, 0, None), (0, None, None)):
            allowed = torch.vmap(allowed, in_dims=dims)
        mask = allowed(torch.arange(tokens.shape[0]), places, places)
        query, key, value = self.mix(self.embed(tokens)).chunk(3, -1)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.head(mixed).transpose(1, 2)


class Causal(nn.Module):
    """A causal mask below a mode of theirs, through which tracers ask PyTorch, too."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 24)

    def forward(self, x):
        def allowed(batch, head, row, column):
            return column <= row

        places = torch.arange(x.shape[1])
        for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None)):
            allowed = torch.vmap(allowed, in_dims=dims)
        allowed = torch.vmap(allowed, in_dims=(0, None, None, None))
        theirs = importlib.import_module("torch._dynamo._trace_wrapped_higher_order_op")
        with theirs.TransformGetItemToIndex():
            mask = allowed(torch.arange(x.shape[0]), torch.arange(1), places, places)
        query, key, value = self.mix(x[:, None]).chunk(3, -1)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)[:, 0]


class Tripled(torch.autograd.Function):
    """A function whose gradient is another's, with the context in `forward`."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * 3 * x.cos()


def test_functions_of_autograd():
    class Model(support.Mlp):
        def forward(self, x):
            return Tripled.apply(super().forward(x))

    pair = Pair(Model(), support.sgd)
    pair.train(3, *support.vectors())
    pair.assert_same_state()


def test_gradient_penalties():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 10))

        def forward(self, x):
            x = x.detach().requires_grad_()
            found = self.net(x)
            (gradient,) = torch.autograd.grad(found.sum(), x, create_graph=True)
            return found, (gradient.norm(dim=1) - 1).square().mean()

    def loss(found, y):
        return F.cross_entropy(found[0], y) + found[1]

    pair = Pair(Model(), support.adam, loss)
    pair.train(3, *support.vectors())
    pair.assert_same_state(rtol=1e-3)


def test_masks_by_vmap_and_models_that_look_at_values():
    tokens = torch.randint(1, 20, (3, 10))
    pair = Pair(MaskedAttention(), lambda p: torch.optim.SGD(p, lr=0.1))
    pair.train(3, tokens, tokens)
    pair.assert_same_state()
    tokens = torch.randint(1, 20, (3, 10))
    with torch.no_grad():
        options = {"costs": "roofline", "budget": "0"}
        found = torch.compile(pair.eager, backend="baechi", options=options)(tokens)
        torch.testing.assert_close(found, pair.eager(tokens))


def test_a_mask_below_a_mode():
    pair = Pair(Causal(), lambda p: torch.optim.SGD(p, lr=0.1), F.mse_loss)
    pair.train(2, torch.randn(3, 6, 8), torch.randn(3, 6, 8))
    pair.assert_same_state()


def test_depthwise_and_grouped_convolutions():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.Conv2d(16, 16, 5, padding=2, groups=16),
        nn.Hardswish(),
        nn.Conv2d(16, 32, 3, stride=2, groups=16),
        nn.Conv2d(32, 12, 1, groups=2),
        nn.Flatten(),
    )
    pair = Pair(model, lambda p: torch.optim.SGD(p, lr=0.1))
    pair.train(3, torch.randn(4, 3, 16, 16), torch.randint(0, 12, (4,)))
    pair.assert_same_state()


class SharedModule(nn.Module):
    """One embedding that is part of two others, and the weight of a third."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(12, 8)
        self.first, self.second = (nn.Sequential(self.shared, nn.Linear(8, 8)) for _ in "ab")
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.shared.weight

    def forward(self, tokens):
        return self.head(self.first(tokens) * self.second(tokens)).transpose(1, 2)


def test_a_module_that_is_part_of_two_others():
    pair = Pair(SharedModule(), lambda p: torch.optim.Adam(p, lr=0.05))
    tokens = torch.randint(0, 12, (4, 6))
    pair.train(3, tokens, tokens)
    pair.assert_same_state()
    assert isinstance(pair.model.shared.weight, nn.Parameter)
    assert pair.model.head.weight is pair.model.second[0].weight


def test_operators_of_many_forms():
    """Those of `operators`, and indices from the end."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3)
            self.table = nn.Parameter(torch.randn(5, 6))
            self.head = nn.Linear(36, 10)

        def forward(self, x, places):
            pooled = F.adaptive_avg_pool2d(self.conv(x), (2, 3)).flatten(1)  # of 6 by 7
            rows = self.table[places - 5].roll(2, 1)
            largest, order = rows.topk(3, 1)
            middle = rows.sort(1)[0][:, 2:5].fmod(0.75) + largest.cumprod(1)
            turned = torch.stack([-rows[..., 1::2], rows[..., ::2]], -1).flatten(1)
            turned[:, 1:3] = pooled[:, :2]
            turned = turned.scatter_add(1, order, middle)
            return self.head(torch.cat([pooled, middle, turned, rows[:, -1:]] + [rows[:, :2]], 1))

    model = Model()
    model.head = nn.Linear(18 + 3 + 6 + 1 + 2, 10)
    batch = torch.randn(4, 2, 8, 9), torch.tensor([0, 3, 3, 1]), torch.randint(0, 10, (4,))
    pair = support.Pair(model, support.sgd)
    pair.train(3, *batch)
    pair.assert_same_state()


@pytest.mark.parametrize("place", [4, -5, 10**9])
def test_indices_of_columns_that_are_out_of_range(place):
    def columns(x, places):
        return x[:, places].sum(0)

    options = {"costs": "roofline", "budget": "0"}
    compiled = torch.compile(columns, backend="baechi", options=options)
    with torch.no_grad():
        right = compiled(torch.ones(3, 4), torch.tensor([1, -4]))
        torch.testing.assert_close(right, torch.full((2,), 3.0))
        with pytest.raises(IndexError, match=f"'places' holds {place}: .* elements -4 to 3"):
            compiled(torch.ones(3, 4), torch.tensor([1, place]))


def test_operands_of_two_types_are_refused_with_their_line():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    with pytest.raises(baechi.torch.ImportFailure) as refused:
        step(x.double(), y)
    told = str(refused.value)
    assert "addmm.default in 'first/addmm' has operands of float32 and float64" in told
    assert told.count("addmm.default") == 1 and "torch_support.py" in told


def test_a_batch_without_elements_is_refused():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = support.compile_step(model, torch.nn.functional.mse_loss, optimizer)
    with pytest.raises(ImportFailure, match=r"a tensor of shape \(0, 8\): there is nothing"):
        step(torch.randn(0, 8), torch.randn(0, 4))
    assert step(torch.randn(2, 8), torch.randn(2, 4)).isfinite()


def test_a_tensor_without_elements_beside_a_batch_is_taken():
    class TakesMore(nn.Linear):
        def forward(self, x, unused):
            return super().forward(x)

    model = TakesMore(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = support.compile_step(model, torch.nn.functional.mse_loss, optimizer)
    x, y = torch.randn(2, 8), torch.randn(2, 4)
    expected = torch.nn.functional.mse_loss(model(x, None), y).item()
    assert step(x, torch.zeros(0), y).item() == pytest.approx(expected, rel=1e-5)


def test_packed_sequences_are_refused_by_name():
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
    model = nn.LSTM(4, 4)
    optimizer = torch.optim.SGD(model.parameters())
    step = support.compile_step(model, lambda y, t: y[0].data.sum(), optimizer)
    for given in (packed, [packed]):
        with pytest.raises(TypeError, match="'input' has a PackedSequence.*pad_packed_sequence"):
            step(given, torch.ones(1))
