# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clipping, accumulation, scaling and autocast within compiled steps, as PyTorch does them,
and what of gradients is refused."""

import copy
import functools
import types

import pytest

import torch_support as support
from baechi.torch import UnsupportedOptimizer
from torch_support import F, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools
clip = torch.nn.utils


class Both:
    """A model with its compiled step, and a copy for an eager loop."""

    def __init__(self, model, make_optimizer=support.adam, loss=F.cross_entropy, **options):
        self.model, self.eager = model, copy.deepcopy(model)
        self.optimizer = make_optimizer(self.model.parameters())
        self.eager_optimizer = make_optimizer(self.eager.parameters())
        self.step = support.compile_step(self.model, loss, self.optimizer, **options)

    def assert_same(self, rtol=1e-3, atol=1e-5):
        ours, theirs = self.model.state_dict(), self.eager.state_dict()
        torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.1, 100.0])
def test_clipped_norms(norm_type, max_norm):
    both = Both(
        support.Mlp(),
        support.sgd,
        clip_grad_norm={"max_norm": max_norm, "norm_type": norm_type},
        machine="host:1",
    )
    x, y = support.vectors()
    for _ in range(3):
        both.step(x, y)
        both.eager_optimizer.zero_grad()
        F.cross_entropy(both.eager(x), y).backward()
        norm = clip.clip_grad_norm_(both.eager.parameters(), max_norm, norm_type)
        both.eager_optimizer.step()
        torch.testing.assert_close(both.step.grad_norm, norm, rtol=1e-4, atol=1e-6)
    both.assert_same()


def test_clipped_values():
    both = Both(support.Mlp(), support.sgd, clip_grad_value=0.01)
    x, y = support.vectors()
    for _ in range(3):
        both.step(x, y)
        both.eager_optimizer.zero_grad()
        F.cross_entropy(both.eager(x), y).backward()
        clip.clip_grad_value_(both.eager.parameters(), 0.01)
        both.eager_optimizer.step()
    both.assert_same()


def test_norms_that_are_not_finite():
    model = support.Mlp()
    limit = {"max_norm": 1.0, "error_if_nonfinite": True}
    optimizer = support.adam(model.parameters())
    step = support.compile_step(model, F.cross_entropy, optimizer, clip_grad_norm=limit)
    x, y = support.vectors()
    step(x, y)
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    x[0, 0] = float("inf")
    with pytest.raises(RuntimeError, match="total norm of order 2.0 .* nan.* nothing was updated"):
        step(x, y)
    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()), before, rtol=0, atol=0)


@pytest.mark.parametrize(
    "options, error, told",
    [
        ({"clip_grad_norm": -1.0}, ValueError, "clip_grad_norm=-1.0: give a limit"),
        ({"clip_grad_norm": "1"}, TypeError, "clip_grad_norm is a str"),
        ({"clip_grad_norm": {"norm": 1.0}}, ValueError, "has no 'norm'; known: max_norm"),
        ({"clip_grad_norm": {"norm_type": 1.0}}, ValueError, "lacks 'max_norm'"),
        ({"clip_grad_value": float("nan")}, ValueError, "clip_grad_value=nan"),
        ({"accumulate": 0}, ValueError, "accumulate=0: give a number of calls"),
        ({"accumulate": 2.0}, ValueError, "accumulate=2.0"),
        ({"scaler": 1024.0}, TypeError, "scaler is a float: give a torch.amp.GradScaler"),
    ],
)
def test_wrong_options(options, error, told):
    model = support.Mlp()
    with pytest.raises(error, match=told):
        support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()), **options)


class Normalized(nn.Module):
    """With statistics, which every part of a batch changes, and a part that not all use."""

    def __init__(self):
        super().__init__()
        # A bias before the normalization would have a gradient of rounding alone.
        self.layers = nn.Sequential(nn.Linear(16, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh())
        self.head, self.other = nn.Linear(8, 10), nn.Linear(8, 10)

    def forward(self, x, other=False):
        return (self.other if other else self.head)(self.layers(x))


@pytest.mark.parametrize("calls", [2, 3])
def test_accumulation(calls):
    """Parts of other sizes, and that depend on other parameters."""
    both = Both(
        Normalized(),
        loss=lambda found, y: F.cross_entropy(found, y) / calls,
        accumulate=calls,
        clip_grad_norm=0.5,
        machine="host:1",
    )
    for update in range(3):
        both.eager_optimizer.zero_grad()
        for part in range(calls):
            x, y = support.vectors(8 if part else 6)
            loss = F.cross_entropy(both.eager(x, other=part == 1 and update == 1), y) / calls
            loss.backward()
            found = both.step(x, y, other=part == 1 and update == 1)
            assert found.item() == pytest.approx(loss.item(), rel=1e-4)
            if part < calls - 1:
                torch.testing.assert_close(
                    both.model.head.weight.grad, both.eager.head.weight.grad, rtol=1e-3, atol=1e-6
                )
        clip.clip_grad_norm_(both.eager.parameters(), 0.5)
        both.eager_optimizer.step()
    both.assert_same(atol=1e-4)


def test_accumulation_that_begins_anew():
    """`zero_grad()` forgets what was added up; an eager update in between counts."""
    both = Both(support.Mlp(), support.sgd, accumulate=2)
    x, y = support.vectors()
    both.step(x, y)
    both.optimizer.zero_grad()
    for batch in (support.vectors(), support.vectors()):
        both.step(*batch)
        F.cross_entropy(both.eager(batch[0]), batch[1]).backward()
    both.eager_optimizer.step()
    both.assert_same()
    both.eager_optimizer.zero_grad()
    both.step(x, y)
    F.cross_entropy(both.eager(x), y).backward()
    for optimizer in (both.optimizer, both.eager_optimizer):
        optimizer.step()
        optimizer.zero_grad()
    both.assert_same()


def test_accumulation_into_parameters_that_are_frozen_meanwhile():
    """The optimizer updates by what they have."""
    both = Both(support.Mlp(), support.sgd, accumulate=2)
    for part, batch in enumerate((support.vectors(), support.vectors())):
        for model in (both.model, both.eager):
            next(model.parameters()).requires_grad_(part == 0)
        both.step(*batch)
        F.cross_entropy(both.eager(batch[0]), batch[1]).backward()
    both.eager_optimizer.step()
    both.assert_same()


def test_gradients_that_a_step_has_used_are_no_gradients():
    model = support.Mlp()
    optimizer = support.sgd(model.parameters())
    step = support.compile_step(model, F.cross_entropy, optimizer)
    x, y = support.vectors()
    step(x, y)
    for use in (
        lambda: clip.clip_grad_norm_(model.parameters(), 1.0),
        lambda: clip.clip_grad_value_(model.parameters(), 1.0),
        lambda: model.head.weight.grad.norm(),
        lambda: model.head.weight.grad.mul_(2),
        lambda: torch.cat([p.grad.flatten() for p in model.parameters()]),
        lambda: F.cross_entropy(model(x), y).backward(),
        optimizer.step,
    ):
        before = copy.deepcopy(model.state_dict())
        with pytest.raises(RuntimeError, match="used up by a compiled step"):
            use()
        torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    copy.deepcopy(model)(x)
    assert model.double().head.bias.dtype == torch.float64
    model.float()
    for zero_grad in (optimizer.zero_grad, model.zero_grad):
        step(x, y)
        zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert step(x, y).isfinite()


def _optimizer_hook(model, optimizer):
    return optimizer.register_step_pre_hook(lambda *_: None)


def _after_optimizer(model, optimizer):
    return optimizer.register_step_post_hook(lambda *_: None)


def _hook(model, optimizer):
    return model.head.bias.register_hook(lambda gradient: gradient * 2)


def _accumulated(model, optimizer):
    return model.head.bias.register_post_accumulate_grad_hook(lambda parameter: None)


def _replaced(model, optimizer):
    optimizer.step = lambda: None
    return types.SimpleNamespace(remove=lambda: vars(optimizer).pop("step"))


HOOKS = {
    _replaced: "the `step` of the optimizer SGD was replaced",
    _optimizer_hook: "SGD has a hook .register_step_pre_hook",
    _after_optimizer: "SGD has a hook .register_step_post_hook",
    _hook: "'head.bias' has a hook .register_hook",
    _accumulated: "'head.bias' has a hook .register_post_accumulate_grad_hook",
}


@pytest.mark.parametrize("register", HOOKS)
def test_hooks_that_would_not_be_called_are_refused(register):
    model = support.Mlp()
    optimizer = support.sgd(model.parameters())
    step = support.compile_step(model, F.cross_entropy, optimizer)
    step(*support.vectors())
    hook = register(model, optimizer)
    with pytest.raises(UnsupportedOptimizer, match=HOOKS[register]):
        step(*support.vectors())
    with pytest.raises(UnsupportedOptimizer, match=HOOKS[register]):
        support.compile_step(model, F.cross_entropy, optimizer)
    hook.remove()
    assert step(*support.vectors()).isfinite()


def test_hooks_of_modules_are_part_of_the_step():
    both = Both(support.Mlp(), support.sgd)
    x, y = support.vectors()

    def train():
        loss = F.cross_entropy(both.eager(x), y)
        both.eager_optimizer.zero_grad()
        loss.backward()
        both.eager_optimizer.step()
        assert both.step(x, y).item() == pytest.approx(loss.item(), rel=1e-4)

    train()
    for model in (both.model, both.eager):
        model.second.register_forward_hook(lambda module, args, found: found * 2)
        model.first.register_full_backward_hook(lambda module, given, found: (given[0],))
    train()
    train()
    both.assert_same()


def test_retained_gradients_are_refused():
    class Model(support.Mlp):
        def forward(self, x):
            hidden = self.first(x)
            hidden.retain_grad()
            return self.head(self.second(hidden))

    model = Model()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    with pytest.raises(support.baechi.torch.ImportFailure, match=r"retain_grad\(\): "):
        step(*support.vectors())


def test_what_is_returned_beside_the_loss():
    def loss(logits, y):
        named = {"logits": logits, "count": 8, "target": y}
        return F.cross_entropy(logits, y), named, logits.argmax(1)

    both = Both(support.Mlp(), support.sgd, loss)
    x, y = support.vectors()
    for _ in range(2):
        expected = loss(both.eager(x), y)
        both.eager_optimizer.zero_grad()
        expected[0].backward()
        both.eager_optimizer.step()
        found, further = both.step(x, y)
        torch.testing.assert_close((found, *further), expected, rtol=1e-4, atol=1e-5)
        assert not further[0]["logits"].requires_grad
    both.assert_same()


def test_models_that_return_their_loss_within_a_structure():
    class Found(dict):
        """As the outputs of `transformers`: a dictionary with attributes."""

        __getattr__ = dict.__getitem__

    class Model(support.Mlp):
        kind = Found

        def forward(self, x, y):
            logits = super().forward(x)
            found = {"loss": F.cross_entropy(logits, y), "logits": logits}
            return self.kind(**found) if self.kind is not type else type("Found", (), found)()

    for kind in (dict, Found, type):
        Model.kind = kind
        model = Model()
        x, y = support.vectors()
        optimizer = support.sgd(model.parameters())
        step = support.compile_step(model, None, optimizer, machine="host:1")
        expected = F.cross_entropy(support.Mlp.forward(model, x), y).item()
        assert step(x, y).item() == pytest.approx(expected, rel=1e-5)
    step = support.compile_step(model, None, optimizer, outputs=lambda found: found.logits)
    expected = support.Mlp.forward(model, x)
    torch.testing.assert_close(step(x, y)[1], expected.detach(), rtol=1e-4, atol=1e-5)


CAST = {"cpu_bf16": torch.bfloat16, "cpu_f16": torch.float16}


@pytest.mark.parametrize("dtype", CAST.values(), ids=CAST)
def test_autocast(dtype):
    """A step knows whether it is called within."""

    class Model(support.Mlp):
        def forward(self, x):
            with torch.autocast("cpu", enabled=False):
                first = self.first(x.float())
            return self.head(F.gelu(self.second(first)))

    kinds = []
    note = kinds.append  # a list that the loss reads would be part of what is compiled for

    def loss(logits, y):
        note(logits.dtype)
        return F.cross_entropy(logits.float(), y)

    both = Both(Model(), support.sgd, loss, machine="host:1")
    x, y = support.vectors()
    for enabled in (True, False, True):
        both.eager_optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype, enabled=enabled):
            expected = loss(both.eager(x), y)
            eager_kind = kinds[-1]
            found = both.step(x, y)
        expected.backward()
        both.eager_optimizer.step()
        assert eager_kind == (dtype if enabled else torch.float32)
        assert kinds[-1] == eager_kind or both.step._programs
        rtol = 3e-3 if enabled else 1e-5
        assert found.item() == pytest.approx(expected.item(), rel=rtol)
        both.model.load_state_dict(both.eager.state_dict())
    assert len(both.step._programs) == 2
    text = both.step.lower(x, y)
    name = "bf16" if dtype is torch.bfloat16 else "f16"
    assert f"x{name}>" not in text
    with torch.autocast("cpu", dtype=dtype):
        text = both.step.lower(x, y)
    assert f"x{name}>" in text
    # Of the first layer nothing is computed in 16 bits.
    assert f"8x16x{name}>" not in text and f"16x32x{name}>" not in text


def test_scaled_losses():
    """Some batches overflow: their updates are left out, and the scale falls and grows."""
    options = {"init_scale": 2.0**10, "growth_interval": 2}
    scaler, eager_scaler = (torch.amp.GradScaler("cpu", **options) for _ in "ab")
    both = Both(Normalized(), scaler=scaler, clip_grad_norm=0.5, machine="host:1")
    x, y = support.vectors()
    for number in range(7):
        batch = x * (float("inf") if number in (2, 5) else 1.0)
        both.eager_optimizer.zero_grad()
        loss = F.cross_entropy(both.eager(batch), y)
        eager_scaler.scale(loss).backward()
        eager_scaler.unscale_(both.eager_optimizer)
        clip.clip_grad_norm_(both.eager.parameters(), 0.5)
        eager_scaler.step(both.eager_optimizer)
        eager_scaler.update()
        found = both.step(batch, y)
        torch.testing.assert_close(found, loss.detach(), rtol=1e-4, atol=0, equal_nan=True)
        assert scaler.get_scale() == eager_scaler.get_scale(), number
        assert scaler.state_dict() == eager_scaler.state_dict()
        if number in (2, 5):
            for model in (both.model, both.eager):
                model.layers[1].reset_running_stats()
    both.assert_same(atol=1e-4)
    assert both.optimizer.state[both.model.head.bias]["step"] == 5
    both.step.load_state_dict(both.step.state_dict())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()  # which the step has done


@pytest.mark.parametrize("scale", [2.0**127, 3e38, 1e-30])
def test_scales_whose_reciprocals_are_no_ordinary_numbers(scale):
    def loss(logits, y):  # scaled it is finite, too
        return 1e-3 * F.cross_entropy(logits, y)

    scaler, eager_scaler = (torch.amp.GradScaler("cpu", init_scale=scale) for _ in "ab")
    make = functools.partial(torch.optim.SGD, lr=100.0)
    both = Both(support.Mlp(), make, loss, scaler=scaler, machine="host:1")
    x, y = support.vectors()
    before = copy.deepcopy(both.eager.state_dict())
    for _ in range(3):
        both.eager_optimizer.zero_grad()
        eager_scaler.scale(loss(both.eager(x), y)).backward()
        eager_scaler.step(both.eager_optimizer)
        eager_scaler.update()
        both.step(x, y)
    assert all((x - before[n]).abs().max() > 1e-3 for n, x in both.eager.state_dict().items())
    both.assert_same()


def test_calls_that_name_their_argument():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    failure = support.baechi.torch.ImportFailure
    for args, error, told in (
        ((), TypeError, "lacks its target: give it last, without a name"),
        ((x,), TypeError, r"Mlp.forward\(x\) takes, then the target: .* argument, the target"),
        ((x.numpy(),), TypeError, r"then the target: missing the last argument, the target"),
        ((x, x, y), TypeError, "too many positional arguments"),
        ((x.numpy(), y), TypeError, "'x' is an array of numpy: give torch.from_numpy"),
        ((x, y.numpy()), TypeError, "'target' is an array of numpy"),
        ((x.clone().requires_grad_(), y), TypeError, r"'x' requires a gradient.*\.detach\(\)"),
        ((x.to_sparse(), y), TypeError, "'x' is not dense"),
        ((x, object()), TypeError, "'target' is a object"),
        ((x[:, :3], y), failure, r"torch_support.py:\d+: .*; the step was called with x: float32"),
        ((y, x), failure, r"called with x: int64 \[8\], target: float32 \[8, 16\]"),
        ((x, y + 100), IndexError, "'target' holds 1"),
    ):
        with pytest.raises(error, match=told):
            step(*args)
    with torch.inference_mode(), pytest.raises(RuntimeError, match="inference_mode"):
        step(x, y)
    assert step(x, y).isfinite()


def test_parameters_that_are_not_clipped_are_named():
    model = support.Mlp()
    optimizer = torch.optim.SGD([next(model.parameters())], lr=0.1)
    with pytest.warns(UserWarning, match=r"'\S+' and \d+ others of the model are not among them"):
        support.compile_step(model, F.cross_entropy, optimizer, clip_grad_norm=1.0)
