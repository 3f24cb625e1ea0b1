# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of `baechi.jit` that are made after the first calls, of what these took."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
import replan_support as support
from baechi.compiling.tools import CompileError
from baechi.jax.jax_program import JaxProgram
from baechi.jax.pending import PendingArray
from baechi.steps import first_steps
from baechi.steps.library_file import StepError
from jax_support import assert_close
from replan_support import FIRST, SECOND, devices

pytest.importorskip("baechi._placement")


def train(params, x):
    def loss(params):
        left = jnp.tanh(x @ params["a"]) @ params["b"]
        right = jnp.tanh(x @ params["c"]) @ params["d"]
        return ((left - right) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def start():
    random = np.random.default_rng(5)
    shapes = {"a": (32, 64), "b": (64, 16), "c": (32, 64), "d": (64, 16)}
    params = {k: random.standard_normal(s).astype(np.float32) / 8 for k, s in shapes.items()}
    return params, random.standard_normal((16, 32)).astype(np.float32)


@pytest.fixture
def compiled(tmp_path):
    def compile(step=train, **options):
        given = support.options(tmp_path) | {"donate_argnums": 0}
        return baechi.jit(step, **(given | options))

    return compile


def losses(step, count):
    (params, x), found = start(), []
    for _ in range(count):
        params, loss = step(params, x)
        found.append(np.asarray(loss))
    return np.stack(found), {name: np.asarray(value) for name, value in params.items()}


def assert_same_bits(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_the_first_calls_are_of_one_device_and_the_bits_stay(compiled):
    step = compiled()
    before = losses(step, 1)
    assert devices(step) == {"host0"} and FIRST in step.report()
    assert step.report().startswith("placement  round-robin asked, ")
    across = losses(step, 12)  # planned within these
    assert devices(step) == {"host0", "host1"} and SECOND in step.report()
    assert " 0 estimated" in step.report()
    assert_same_bits(losses(step, 12), across)
    assert_same_bits(losses(step, 1), before)
    params, x = start()
    expected = []
    for _ in range(12):
        params, loss = jax.jit(train)(params, x)
        expected.append(loss)
    assert_close(across[0], np.stack(expected))


def test_when_it_is_planned_follows_from_calls_alone(compiled, monkeypatch):
    # What other work disturbs counts half.
    monkeypatch.setattr(first_steps, "_SHARE", 1.0)
    step = compiled()
    found = []
    for _ in range(6):
        losses(step, 1)
        found.append(devices(step))
    assert found == [{"host0"}] * 4 + [{"host0", "host1"}] * 2
    assert f"{SECOND} 4 calls" in step.report()


def test_calls_are_waited_for_until_then(compiled):
    step = compiled()
    params, x = start()
    kinds = []
    for _ in range(10):
        params, loss = step(params, x)
        kinds.append(isinstance(loss, PendingArray))
    assert not any(kinds[:4]) and kinds[-1]


def test_arrays_of_the_first_calls_outlive_them(compiled):
    step = compiled(donate_argnums=())
    params, x = start()
    first = [step(params, x) for _ in range(12)]
    assert devices(step) == {"host0", "host1"}
    for result in first[1:]:
        assert_same_bits(jax.tree.map(np.asarray, result), jax.tree.map(np.asarray, first[0]))


def test_what_is_known_is_planned_at_once(compiled, tmp_path):
    losses(compiled(), 12)
    profile = tmp_path / "profile.json"
    written = json.loads(profile.read_text())
    known = {row["hash"] for row in written["rows"] if "step_ns" in row}
    assert known == {row["hash"] for row in written["rows"]}
    for row in written["rows"]:  # would be measured again
        row.pop("disturbed", None)
        row.pop("step_disturbed", None)
    profile.write_text(json.dumps(written))
    step = compiled()
    losses(step, 1)
    assert devices(step) == {"host0", "host1"} and "plan  " not in step.report()


@pytest.mark.parametrize(
    "options",
    [
        {"replan": "never"},
        {"pin": {"*": "host1"}},
        {"overlap_steps": True},
        {"costs": "roofline"},
        {"measure": "0.01"},
        {"splits": "any"},
    ],
)
def test_what_needs_a_plan_has_one_at_once(compiled, options):
    step = compiled(**options)
    losses(step, 1)
    assert "plan  " not in step.report() and "host1" in devices(step)


def test_ahead_of_calls_there_is_a_plan(compiled):
    step = compiled().lower(*start()).compile()
    step(*start())
    assert devices(step) == {"host0", "host1"}


def test_the_environment_says_what_is_not_asked_for(compiled, monkeypatch):
    monkeypatch.setenv("BAECHI_REPLAN", "never")
    step = compiled(replan=None)
    losses(step, 1)
    assert devices(step) == {"host0", "host1"}
    monkeypatch.setenv("BAECHI_REPLAN", "often")
    with pytest.raises(ValueError, match="replan is 'often': known: auto, never"):
        compiled(replan=None)


@pytest.mark.parametrize("kind", [CompileError, StepError])
def test_without_another_plan_it_goes_on(compiled, monkeypatch, kind):
    def refuse(self):
        raise kind("no placement fits")

    monkeypatch.setattr(JaxProgram, "planned", refuse)
    step = compiled()
    with pytest.warns(UserWarning, match="goes on on one device.*no placement fits"):
        across = losses(step, 12)
    assert devices(step) == {"host0"}
    assert "plan       of one device; another could not be made" in step.report()
    assert_same_bits(losses(step, 12), across)


def test_a_compiler_beside_python_does_the_same(compiled, monkeypatch):
    monkeypatch.setenv("BAECHI_COMPILER", "subprocess")
    step = compiled()
    across = losses(step, 12)
    assert devices(step) == {"host0", "host1"} and SECOND in step.report()
    assert_same_bits(losses(step, 12), across)


def test_checked_calls_are_counted_on(compiled):
    step = compiled(check=5)
    losses(step, 12)
    assert devices(step) == {"host0", "host1"}
