# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.jit(objective="period")`: stages for calls that overlap, refused for others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from jax_support import assert_close, jit

pytest.importorskip("baechi._placement")

OPTIONS = {"machine": "host:2", "transfers": "copy", "budget": "2000e", "splits": "none"}
PERIOD = {**OPTIONS, "objective": "period", "overlap_steps": True}


def stages(weights, x):
    return jnp.dot(jnp.dot(x, weights["a"]), weights["b"])


@pytest.fixture
def start():
    random = np.random.default_rng(0)
    weights = {
        name: (random.normal(size=(512, 512)) / 22).astype(np.float32) for name in ("a", "b")
    }
    return weights, random.normal(size=(256, 512)).astype(np.float32)


def devices_of(step):
    program = step._latest.library.program
    return sum(bool(device["operators"]) for device in program["devices"])


def test_stages_have_a_device_each(start):
    weights, x = start
    step = jit(stages, **PERIOD)
    alone = jit(stages, **OPTIONS)
    batches = [x * np.float32(1 + i / 4) for i in range(8)]
    results = [step(weights, batch) for batch in batches]
    for result, batch in zip(results, batches, strict=True):
        assert (np.asarray(result) == np.asarray(alone(weights, batch))).all()
        assert_close(result / 100, jax.jit(stages)(weights, batch) / 100)
    assert (devices_of(step), devices_of(alone)) == (2, 1)
    report = step.report()
    assert "ms from one call to the next, lower bound" in report
    assert "overlap    a device begins its next call" in report
    predicted = step._latest.library.program["predicted"]
    assert predicted["objective"] == "period"
    assert predicted["lower_bound_ns"] <= predicted["period_ns"] < predicted["step_ns"]
    assert "from one call to the next" not in alone.report()


def test_the_saved_step_reports_its_period(start, tmp_path):
    file = jit(stages, **PERIOD).lower(*start).compile().save(tmp_path / "stages.baechi")
    step = baechi.load_step(file, overlap_steps=True)
    assert_close(step(*start) / 100, jax.jit(stages)(*start) / 100)
    assert "from one call to the next, lower bound" in step.report()
    assert "from one call to the next" not in baechi.load_step(file).report()


def test_calls_that_do_not_overlap_have_no_period(start):
    weights, x = start
    with pytest.raises(ValueError, match="where calls overlap; give overlap_steps=True, too"):
        jit(stages, **OPTIONS, objective="period")
    with pytest.raises(ValueError, match="objective is 'peroid': did you mean 'period'"):
        jit(stages, **OPTIONS, objective="peroid")

    def noisy(x, key):
        return x + jax.random.normal(key, x.shape)

    def printing(x):
        jax.debug.print("{}", x[0, 0])
        return x * 2

    step = jit(noisy, **PERIOD)
    for use in (step, step.lower(x, jax.random.key(0)).compile):
        arguments = (x, jax.random.key(0)) if use is step else ()
        with pytest.raises(ValueError, match="calls of 'noisy' do not overlap: the arguments have"):
            use(*arguments)
    with pytest.raises(ValueError, match="'printing' do not overlap: JAX computes a part of each"):
        jit(printing, **PERIOD)(x)
    with pytest.raises(ValueError, match="do not overlap: calls that are checked are waited for"):
        jit(stages, check="first", **PERIOD)(weights, x)
    pooled = {**PERIOD, "machine": "host:1@1GiB+pool:1GiB"}
    with pytest.raises(baechi.CompileError, match="a device of kind 'pool' .* do not: leave it"):
        jit(stages, **pooled)(weights, x)


def test_torch_s_backend_has_no_period():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    pytest.importorskip("baechi.torch")
    options = {**OPTIONS, "costs": "roofline", "objective": "period"}
    with pytest.raises(Exception, match="backend 'baechi' has no option 'objective'"):
        torch.compile(torch.nn.Linear(2, 2), backend="baechi", options=options)(torch.ones(1, 2))
