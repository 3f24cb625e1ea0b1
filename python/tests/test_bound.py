# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps are called by position and by name as under `jax.jit`."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
import needs  # noqa: E402
from baechi.steps.resident import ResidentArray  # noqa: E402
from jax_support import jit  # noqa: E402

pytestmark = needs.tool("baechi-run")

X, Y = np.float32([1, 2]), np.float32([3, 5])


def test_keyword_only_arguments():
    def step(p, x=1.0, *, rate, double=False):
        return p - (2 if double else 1) * rate * x

    ours = jit(step, donate_argnames="p", static_argnames="double")
    p = ours(X, Y, rate=0.5)
    assert isinstance(p, ResidentArray)
    assert ours.placement.keys() >= {"p", "x", "rate"}
    p = ours(p, Y, rate=0.25, double=True)
    assert p.tolist() == (X - Y).tolist()
    assert ours(X, rate=2.0, double=True).tolist() == (X - 4).tolist()
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'rate'"):
        ours(X, Y)
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        ours(X, Y, rate=1.0, speed=2.0)


def test_any_keywords_in_any_order():
    def step(*layers, **scales):
        return sum(scale * layer for layer, scale in zip(layers, scales.values(), strict=True))

    ours = jit(step, donate_argnames=[])
    assert ours(X, Y, a=1.0, b=10.0).tolist() == [31.0, 52.0]
    assert ours(X, Y, b=10.0, a=1.0).tolist() == [31.0, 52.0]
    assert {"layers0", "layers1", "a", "b"} <= ours.placement.keys()


def test_a_skipped_default():
    def step(p, x=1.0, rate=2.0):
        return p * x * rate

    assert jit(step)(X, rate=3.0).tolist() == [3.0, 6.0]
    # Static by its name, wherever the call has it.
    ours = jit(step, static_argnames="rate")
    assert ours(X, rate=4.0).tolist() == ours(X, 1.0, 4.0).tolist() == [4.0, 8.0]


@pytest.mark.parametrize("around", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())])
def test_within_functions_of_jax(around):
    @jit
    def double(x):
        return 2 * x

    with pytest.raises(TypeError, match=r"'double' runs on devices of its own.*baechi.jit\(jax"):
        around(double)(X)
    assert jit(jax.grad(lambda x: (x * x).sum()))(X).tolist() == [2.0, 4.0]


def test_devices_by_number():
    ours = jit(lambda x: jax.numpy.exp(x) + 1, machine="host:3", pin={"*": "dev2"})
    ours(X)
    assert set(ours.placement.values()) == {"host2"}
    for device in ("dev3", "dev", "dev-1"):
        with pytest.raises(baechi.compiling.tools.CompileError, match=f"has no device '{device}'"):
            jit(lambda x: x + 1, pin={"*": device})(X)
