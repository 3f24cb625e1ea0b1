# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`check=` finds steps that are not PyTorch's, the operation that they begin at, and leaves
the state right."""

import copy

import pytest

import baechi
from torch_support import F, Mlp, Pair, compile_step, needs_tools, nn, torch

# isort: split
from baechi.importer.torch import linalg
from baechi.torch import short_types

pytestmark = needs_tools


class Net(nn.Module):
    """With statistics, dropout and a counter that is replaced. A bias before statistics
    would have gradients of rounding alone."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 4, bias=False)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.head(F.dropout(torch.tanh(self.norm(self.first(x))), 0.25, self.training))


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 6, generator=generator)
    return x, torch.randint(0, 4, (5,), generator=generator)


@pytest.fixture
def miscompiled(monkeypatch):
    """Lets the compiler take one operation for another."""

    def swap(old, new):
        right = linalg.lower

        def wrong(*args, **kwargs):
            text, count = right(*args, **kwargs)
            return text.replace(old, new), count

        monkeypatch.setattr(linalg, "lower", wrong)

    return swap


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 1e-2),
    "NAdam": lambda p: torch.optim.NAdam(p, 1e-2),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-2, centered=True, momentum=0.9),
    "ASGD": lambda p: torch.optim.ASGD(p, 1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_checked_calls_train_as_eager_ones(name, batch):
    torch.manual_seed(1)
    pair = Pair(Net(), OPTIMIZERS[name], check=1)
    for _ in range(3):
        state = torch.get_rng_state()
        ours = pair.step(*batch)
        torch.set_rng_state(state)
        theirs = pair.eager_loss(batch[:1], batch[1])
        pair.eager_optimizer.zero_grad()
        theirs.backward()
        pair.eager_optimizer.step()
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-4)
    pair.assert_same_state()
    assert pair.model.calls == 3 and pair.model.norm.num_batches_tracked == 3
    ours, theirs = pair.optimizer.state_dict(), pair.eager_optimizer.state_dict()
    for number, expected in theirs["state"].items():
        for kind, value in expected.items():
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(
                    ours["state"][number][kind], value, rtol=1e-3, atol=1e-6, check_dtype=False
                )


def test_clipping_accumulation_scaling_and_what_is_returned(batch):
    torch.manual_seed(2)
    model, critic = Net(), nn.BatchNorm1d(4)
    eager, eager_critic = copy.deepcopy(model), copy.deepcopy(critic)

    def loss_with(critic):
        return lambda output, y: (F.cross_entropy(critic(output), y), {"logits": output})

    make = OPTIMIZERS["AdamW"]
    scaler, eager_scaler = (torch.amp.GradScaler("cpu", init_scale=8.0) for _ in range(2))
    step = compile_step(
        model,
        loss_with(critic),
        make(model.parameters()),
        clip_grad_norm=0.5,
        accumulate=2,
        scaler=scaler,
        check=1,
    )
    optimizer, loss = make(eager.parameters()), loss_with(eager_critic)
    for call in range(4):
        state = torch.get_rng_state()
        ours, further = step(*batch)
        torch.set_rng_state(state)
        theirs, expected = loss(eager(batch[0]), batch[1])
        eager_scaler.scale(theirs).backward()
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-4)
        torch.testing.assert_close(further["logits"], expected["logits"], rtol=1e-4, atol=1e-5)
        if call % 2:
            eager_scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(eager.parameters(), 0.5)
            assert step.grad_norm.item() == pytest.approx(norm.item(), rel=1e-3)
            eager_scaler.step(optimizer)
            eager_scaler.update()
            optimizer.zero_grad()
    for ours, theirs in ((model, eager), (critic, eager_critic)):
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-3, atol=1e-5)
    assert scaler.get_scale() == eager_scaler.get_scale()


@pytest.mark.parametrize(
    "old, new, operator, machine",
    [("math.tanh", "math.absf", "tanh", "host:1"), ("math.log", "math.exp", "loss/", "host:2")],
)
def test_the_first_wrong_operation_is_named(batch, miscompiled, old, new, operator, machine):
    torch.manual_seed(3)
    model = Net()
    optimizer = OPTIMIZERS["momentum"](model.parameters())
    before = copy.deepcopy(model.state_dict())
    random = torch.get_rng_state()
    miscompiled(old, new)
    step = compile_step(model, F.cross_entropy, optimizer, check="first", machine=machine)
    with pytest.raises(baechi.CheckError) as raised:
        step(*batch)
    assert raised.value.operator.startswith(operator)
    assert f"first at '{raised.value.operator}'" in str(raised.value)
    assert "test_torch_check.py" in raised.value.source
    assert raised.value.error > 10 * raised.value.tolerance > 0
    # Nothing has changed.
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert not optimizer.state and model.first.weight.grad is None
    assert torch.equal(random, torch.get_rng_state())


def test_a_wrong_update_of_large_parameters_is_seen(miscompiled):
    model = nn.Linear(3, 2, bias=False)
    with torch.no_grad():
        model.weight.fill_(100.0)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.eye(3)
    right = compile_step(model, lambda y, t: torch.sin(y - 99 - t).sum(), optimizer, check=1)
    right(x, torch.tensor(0.5))
    miscompiled("math.cos", "math.sin")  # of the gradient alone
    wrong = compile_step(model, lambda y, t: torch.sin(y - 99 - t).sum(), optimizer, check=1)
    with pytest.raises(baechi.CheckError, match="'weight .its change.' after the step"):
        wrong(x, torch.tensor(0.5))


def test_only_the_calls_asked_for_are_checked(batch, miscompiled):
    miscompiled("math.tanh", "math.absf")

    def made(**options):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
        return model, compile_step(
            model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), **options
        )

    made()[1](*batch)  # not asked for
    zeros = torch.zeros(5, 6), batch[1]
    for check in ("first", 2):
        model, step = made(check=check)
        with torch.no_grad():
            model[0].bias.zero_()
        step(*zeros)  # tanh(0) is 0, and its gradient is made without tanh
        step(*batch)
        if check == 2:
            with pytest.raises(baechi.CheckError):
                step(*batch)
        with pytest.raises(baechi.CheckError):
            step(batch[0][:3], batch[1][:3])  # another program's first call


def test_autocast_has_the_tolerance_of_its_type(batch, miscompiled):
    def made():
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
        return compile_step(
            model, F.cross_entropy, torch.optim.AdamW(model.parameters(), 0.1), check=1
        )

    with torch.autocast("cpu", dtype=torch.bfloat16):
        step = made()
        for _ in range(3):
            step(*batch)
        miscompiled("math.tanh", "math.absf")
        with pytest.raises(baechi.CheckError):
            made()(*batch)


def test_single_precision_beside_autocast_is_compared_as_such(batch, miscompiled):
    """A factor that is wrong by 3 % is found where nothing depends on bfloat16."""

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.scale = nn.Linear(6, 4), nn.Parameter(torch.linspace(1, 2, 6))

        def forward(self, x):
            return self.inner(x), (torch.sin(x) * self.scale).sum() * 1.0625

    def made():
        torch.manual_seed(7)
        model = Both()
        return compile_step(
            model,
            lambda out, target: F.cross_entropy(out[0], target) + out[1],
            torch.optim.SGD(model.parameters(), 0.1),
            check=1,
        )

    with torch.autocast("cpu", dtype=torch.bfloat16):
        made()(*batch)
        miscompiled("1.062500e+00", "1.030625e+00")
        with pytest.raises(baechi.CheckError, match="first at 'mul'"):
            made()(*batch)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_what_short_types_change_follows_the_data(kind):
    def run():
        wide = torch.linspace(0.1, 1, 12)
        short = wide.to(kind)
        held = torch.zeros(12, dtype=kind)
        held.copy_(short.flip(0).clone().view(3, 4).reshape(-1))
        held.add_(short)
        weight = wide.clone().requires_grad_()
        with torch.autocast("cpu", dtype=kind):
            torch.nn.functional.linear(torch.ones(1, 12), weight[None]).sum().backward()
        values = held.float(), weight.grad, torch.sin(wide), wide.argmax()
        return [value.detach().double().numpy() for value in values]

    right, runs = run(), short_types.shortened(run)
    unit = torch.finfo(kind).eps
    changes = [[abs(a / b - 1).max() for a, b in zip(other, right)] for other in runs]
    assert len(runs) == 4
    for held, gradient, *alone in changes:
        assert unit / 2 < held < 4 * unit and 0 < gradient < 4 * unit
        assert alone == [0, 0]
    assert short_types.shortened(lambda: [torch.sin(torch.ones(3)).numpy()]) == []


def test_errors_of_the_step_come_first(batch):
    model = Mlp(6, 8, 4)
    step = compile_step(
        model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), check="first"
    )
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(IndexError):
        step(batch[0], torch.full((5,), 9))
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_a_tolerance_of_ones_own_binds(batch):
    torch.manual_seed(0)
    model = Net()
    optimizer = OPTIMIZERS["AdamW"](model.parameters())
    step = compile_step(model, F.cross_entropy, optimizer, check=1, check_tolerance=1e-12)
    with pytest.raises(baechi.CheckError, match=r"1\.0e-12 is allowed"):
        for _ in range(5):
            step(*batch)


def test_options_that_mean_nothing():
    model = Mlp()
    with pytest.raises(ValueError, match="check is 'always': give 'first'"):
        compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1), check="always")


def compiled(model, **options):
    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0", "check": 1, **options}
    return torch.compile(model, backend="baechi", options=options)


def test_compiled_models_pass_and_train_as_eager_ones(batch):
    models = []
    for wrap in (compiled, lambda model: model):
        torch.manual_seed(6)
        model = Net()
        optimizer, run = OPTIMIZERS["AdamW"](model.parameters()), wrap(model)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(run(batch[0]), batch[1]).backward()
            optimizer.step()
        models.append((model, torch.get_rng_state()))
    (mine, random), (right, expected) = models
    torch.testing.assert_close(mine.state_dict(), right.state_dict(), rtol=1e-3, atol=1e-5)
    assert torch.equal(random, expected)


def test_the_first_wrong_operation_of_a_compiled_model_is_named(batch, miscompiled):
    model = Net()
    before, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    miscompiled("math.tanh", "math.absf")
    with pytest.raises(baechi.CheckError) as raised:
        compiled(model)(batch[0])
    assert raised.value.operator.startswith("tanh")
    assert "test_torch_check.py" in raised.value.source
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert torch.equal(random, torch.get_rng_state())


def test_a_wrong_backward_pass_of_a_compiled_model_is_found(batch, miscompiled):
    class Smooth(nn.Linear):
        def forward(self, x):
            return F.softplus(super().forward(x))

    loss = compiled(Smooth(6, 4))(batch[0]).sum()
    miscompiled("math.exp", "math.absf")  # of the gradient alone, which is compiled now
    with pytest.raises(baechi.CheckError, match="(?s)'backward/.*first at 'backward/") as raised:
        loss.backward()
    assert "test_torch_check.py" in raised.value.source


def test_a_compiled_model_that_was_traced_otherwise_is_found(batch, monkeypatch):
    """What is put in place of PyTorch's operations before the passes are made."""
    from baechi.importer.torch import trace

    class Wrong(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            function = torch.cos if function is torch.tanh else function
            return function(*args, **(kwargs or {}))

    monkeypatch.setattr(trace, "_PlainForms", Wrong)
    with pytest.raises(baechi.CheckError, match="(?s)'result 0' of a compiled graph.*otherwise"):
        compiled(Net())(batch[0])


def test_options_of_compiled_models_that_mean_nothing(batch):
    with pytest.raises(Exception, match="check is 'always': give 'first'"):
        compiled(Net(), check="always")(batch[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_normalisations_under_autocast_are_no_false_alarm(dtype):
    """PyTorch's kernels keep their statistics in single precision, its traces do not."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.GroupNorm(2, 8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 4),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    options = {"check": 1, "costs": "roofline", "budget": "0", "machine": "host:1"}
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="baechi", options=options)
    x, y = torch.randn(8, 3, 6, 6), torch.randint(0, 4, (8,))
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            loss = torch.nn.functional.cross_entropy(compiled(x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
