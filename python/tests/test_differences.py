# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Differences from the frameworks that docs/differences.md lists and no other test shows:
each is compared with the framework, so that one that is gone leaves the list."""

import numpy as np
import pytest

import needs

pytestmark = needs.tool("baechi-run")
OPTIONS = {"costs": "roofline", "budget": "0", "machine": "host:2"}


def eager_and_ours(function, *args):
    support = pytest.importorskip("torch_support")
    compiled = support.torch.compile(function, backend="baechi", options=OPTIONS)
    return function(*args), compiled(*args)


def test_denormal_numbers_are_zero():
    torch = pytest.importorskip("torch_support").torch
    eager, ours = eager_and_ours(lambda x: x * 2.0, torch.full((4,), 1e-39))
    assert eager.min() > 0 and not ours.any()


def test_narrow_values_may_keep_digits_within_a_kernel():
    torch = pytest.importorskip("torch_support").torch
    eager, ours = eager_and_ours(lambda x: (x + x) * 0.5, torch.tensor([40000.0]).half())
    assert eager.isinf().all() and ours.item() == 40000


NAN = float("nan")
# What docs/differences.md calls wrong: a function of tensors, their elements, their type.
WRONG = {
    "sort": (lambda x: x.sort().values, [[1.0, NAN, 2.0]], "float32"),
    "argmax": (lambda x: x.argmax(), [[1.0, 3.0, NAN, 2.0]], "float32"),
    "fmod": (lambda x, y: x.fmod(y), [[1e20], [-3.0]], "float32"),
}


def test_known_to_be_wrong():
    torch = pytest.importorskip("torch_support").torch
    arguments = [
        [torch.tensor(value, dtype=getattr(torch, kind)) for value in values]
        for _, values, kind in WRONG.values()
    ]

    def all_of_them(arguments):  # one program
        functions = [function for function, _, _ in WRONG.values()]
        return [f(*given) for f, given in zip(functions, arguments, strict=True)]

    found = zip(WRONG, *eager_and_ours(all_of_them, arguments), strict=True)
    mended = [
        name
        for name, eager, ours in found
        if torch.allclose(eager, ours, rtol=0, atol=0, equal_nan=True)
    ]
    assert mended == [], "take these off the list"


def test_integer_division_by_zero_is_no_error():
    torch = pytest.importorskip("torch_support").torch
    one, zero = torch.tensor([1]), torch.tensor([0])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        one // zero
    compiled = torch.compile(lambda x, y: x // y, backend="baechi", options=OPTIONS)
    assert compiled(one, zero).item() < 0


def _step():
    support = pytest.importorskip("torch_support")
    model = support.Mlp()
    step = support.compile_step(model, support.F.cross_entropy, support.sgd(model.parameters()))
    return model, step, support.vectors()


def test_a_step_trains_under_no_grad():
    torch = pytest.importorskip("torch_support").torch
    model, step, batch = _step()
    before = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        step(*batch)
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_losses_have_no_graph():
    _, step, batch = _step()
    with pytest.raises(RuntimeError, match="does not require grad"):
        step(*batch).backward()


def test_debugging_switches_of_jax_have_no_effect():
    jax = pytest.importorskip("jax")
    import baechi

    x, traces = np.float32([-1.0]), []

    def log(x):
        traces.append(1)
        return jax.numpy.log(x)

    step = baechi.jit(log, **OPTIONS)
    step(x)
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError):
            jax.jit(jax.numpy.log)(x)
        assert np.isnan(step(x)).all()
    with jax.disable_jit():
        step(x)
    assert len(traces) == 1


def test_transformations_of_a_step_are_refused():
    jax = pytest.importorskip("jax")
    import baechi

    def square(x):
        return (x * x).sum()

    step, x = baechi.jit(square, **OPTIONS), np.ones((2, 3), np.float32)
    for outer in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(TypeError, match="write baechi.jit around these"):
            outer(step)(x)
    np.testing.assert_array_equal(baechi.jit(jax.grad(square), **OPTIONS)(x), 2 * x)
