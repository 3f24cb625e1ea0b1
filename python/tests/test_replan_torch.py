# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of PyTorch's steps and graphs that are made after the first calls, of what these took."""

import copy

import pytest

import replan_support
import torch_support as support
from baechi.compiling.tools import CompileError
from baechi.steps import first_steps
from baechi.torch.step_program import StepProgram
from replan_support import CALLS, FIRST, SECOND, devices
from torch_support import F, Pair, baechi, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools
pytest.importorskip("baechi._placement")


@pytest.fixture
def options(tmp_path):
    return replan_support.options(tmp_path)


def run(step, count, inputs, target):
    return torch.stack([step(inputs, target) for _ in range(count)])


def assert_same_bits(one, other):
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def test_the_first_calls_are_of_one_device_and_the_bits_stay(options):
    model = support.Mlp()
    step = baechi.torch.compile_step(
        model, F.cross_entropy, support.adam(model.parameters()), **options
    )
    x, y = support.vectors()
    step(x, y)
    assert devices(step) == {"host0"} and FIRST in step.report()
    assert step.report().startswith("placement  round-robin asked, ")
    start = copy.deepcopy(step.state_dict())
    across = run(step, CALLS, x, y)  # planned within these
    assert devices(step) == {"host0", "host1"} and SECOND in step.report()
    assert " 0 estimated" in step.report()
    end = copy.deepcopy(model.state_dict())
    step.load_state_dict(start)
    assert torch.equal(run(step, CALLS, x, y), across)
    assert_same_bits(model.state_dict(), end)


def test_it_trains_as_pytorch_does(options):
    pair = Pair(support.Mlp(), support.sgd, **options)
    pair.train(CALLS, *support.vectors())
    assert devices(pair.step) == {"host0", "host1"} and SECOND in pair.step.report()
    pair.assert_same_state()


def test_when_it_is_planned_follows_from_calls_alone(options, monkeypatch):
    # What other work disturbs counts half.
    monkeypatch.setattr(first_steps, "_SHARE", 1.0)
    model = support.Mlp()
    step = baechi.torch.compile_step(
        model, F.cross_entropy, support.sgd(model.parameters()), **options
    )
    found = []
    for _ in range(6):
        step(*support.vectors())
        found.append(devices(step))
    assert found == [{"host0"}] * 4 + [{"host0", "host1"}] * 2
    assert f"{SECOND} 4 calls" in step.report()


@pytest.mark.parametrize("given", [{"replan": "never"}, {"pin": {"*": "host1"}}])
def test_what_needs_a_plan_has_one_at_once(options, given):
    model = support.Mlp()
    step = baechi.torch.compile_step(
        model, F.cross_entropy, support.sgd(model.parameters()), **(options | given)
    )
    step(*support.vectors())
    assert "plan  " not in step.report() and "host1" in devices(step)


def test_the_environment_says_what_is_not_asked_for(options, monkeypatch):
    monkeypatch.setenv("BAECHI_REPLAN", "often")
    model = support.Mlp()
    with pytest.raises(ValueError, match="replan is 'often': known: auto, never"):
        baechi.torch.compile_step(
            model,
            F.cross_entropy,
            support.sgd(model.parameters()),
            **(options | {"replan": None}),
        )


def test_without_another_plan_it_goes_on(options, monkeypatch):
    def refuse(self):
        raise CompileError("no placement fits")

    monkeypatch.setattr(StepProgram, "planned", refuse)
    model = support.Mlp()
    step = baechi.torch.compile_step(
        model, F.cross_entropy, support.sgd(model.parameters()), **options
    )
    with pytest.warns(UserWarning, match="'Mlp' goes on on one device.*no placement fits"):
        run(step, CALLS, *support.vectors())
    assert devices(step) == {"host0"}
    assert "plan       of one device; another could not be made" in step.report()


def test_checked_calls_are_counted_on(options):
    model = support.Mlp()
    step = baechi.torch.compile_step(
        model, F.cross_entropy, support.sgd(model.parameters()), check=5, **options
    )
    run(step, CALLS, *support.vectors())
    assert devices(step) == {"host0", "host1"}


def test_each_phase_of_accumulated_gradients_has_its_plan(options):
    pair = Pair(support.Mlp(), support.sgd, accumulate=2, **options)
    x, y = support.vectors()
    for _ in range(3 * CALLS):
        pair.step(x, y)
    assert {
        frozenset(program.placement().values()) for program in pair.step._programs.values()
    } == {frozenset({"host0", "host1"})}


class Scaled(nn.Module):
    """With a constant that no parameter is, beside parameters."""

    def __init__(self):
        super().__init__()
        self.inner = support.Mlp()

    def forward(self, x):
        return self.inner(x) * torch.arange(1.0, 11.0)


@pytest.mark.parametrize("weights", ["newest", "held"])
def test_graphs_of_torch_compile_keep_their_bits(options, weights):
    torch._dynamo.reset()
    model = Scaled()
    compiled = torch.compile(model, backend="baechi", options=options | {"weights": weights})
    x, y = support.vectors()
    found = []
    for _ in range(CALLS):
        model.zero_grad()
        out = compiled(x)
        F.cross_entropy(out, y).backward()
        found.append([out.detach().clone(), *(p.grad.clone() for p in model.parameters())])
    (graph,) = baechi.torch.graphs()
    assert devices(graph) == {"host0", "host1"} and SECOND in graph.report()
    assert devices(graph.backward) == {"host0", "host1"}
    for each in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(each, found[0], strict=True))
    torch.testing.assert_close(found[0][0], model(x).detach())
    with torch.no_grad():  # weights that change are seen, after the plan, too
        model.inner.head.bias.add_(1)
    torch.testing.assert_close(compiled(x).detach(), model(x).detach())


def test_what_the_compiler_alone_gives_is_no_option(options):
    with pytest.raises(Exception, match="has no option 'step_times'"):
        torch.compile(nn.Linear(2, 2), backend="baechi", options={"step_times": "x"})(
            torch.ones(1, 2)
        )
