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


def test_halves_are_rounded_once_an_operator():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp
    from jax import lax

    import baechi

    def sums(x):
        return lax.reduce_window(x, jnp.bfloat16(0), lax.add, (512,), (8,), "VALID")

    x = jnp.asarray(np.random.default_rng(0).random(4096), jnp.bfloat16)
    ours = np.float64(baechi.jit(sums, machine="host:1", costs="roofline", budget=0)(x))
    windows = np.lib.stride_tricks.sliding_window_view(np.float64(x), 512)[::8]
    exact = windows.sum(1)
    assert abs(ours / exact - 1).max() < 0.004 < abs(np.float64(jax.jit(sums)(x)) / exact - 1).max()


NAN, INF = float("nan"), float("inf")


def _compared(cases):
    """By name, whether ours equals eager's, bit for bit but for NaN: one program for all."""
    torch = pytest.importorskip("torch_support").torch
    arguments = [
        [torch.tensor(value, dtype=getattr(torch, kind)) for value in values]
        for _, values, kind in cases.values()
    ]

    def all_of_them(arguments):
        functions = [function for function, _, _ in cases.values()]
        return [f(*given) for f, given in zip(functions, arguments, strict=True)]

    found = zip(cases, *eager_and_ours(all_of_them, arguments), strict=True)
    return {
        name: eager.dtype == ours.dtype
        and torch.allclose(eager, ours, rtol=0, atol=0, equal_nan=True)
        for name, eager, ours in found
    }


def test_integers_are_pytorchs():
    torch = pytest.importorskip("torch_support").torch
    amounts = [1, -1, 3, 70, 31, 0]
    numbers = [5, 7, -9, 1, -100, 8]
    pool = torch.nn.functional.max_pool2d
    cases = {
        "left": (lambda x, y: x.bitwise_left_shift(y), [numbers, amounts], "int32"),
        "right": (lambda x, y: x >> y, [numbers, amounts], "int64"),
        "bytes": (lambda x, y: x >> y, [[255, 200, 3], [1, 9, 255]], "uint8"),
        "number": (lambda x: x >> 70, [numbers], "int64"),
        "pool": (lambda x: pool(x, 3, 2, 1), [[[[[-5, -3, -2], [-1, -9, -8]]]]], "int64"),
        "clamp": (lambda x, y: x.clamp(min=y), [[0, 1], [255, 254]], "uint8"),
        "abs": (lambda x: x.abs(), [[255, 3]], "uint8"),
    }
    assert not [name for name, equal in _compared(cases).items() if not equal]


LINE = [1.0, 3.0, NAN, -2.0, INF, NAN]
ORDERS = {
    "sort": lambda x: x.sort().values,
    "places": lambda x: x.argsort(stable=True),
    "downwards": lambda x: x.sort(descending=True, stable=True).indices,
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(),
    "max": lambda x: x.max(0).values,
    "its place": lambda x: x.max(0).indices,
    "min": lambda x: x.min(0).indices,
    "topk": lambda x: x.topk(3).values,
    "least": lambda x: x.topk(3, largest=False).values,
    "median": lambda x: x.median(0).indices,
    "nanmedian": lambda x: x.nanmedian(),
    "kthvalue": lambda x: x.kthvalue(5).values,
    "cummax": lambda x: x.cummax(0).values,
    "quantile": lambda x: x.quantile(0.3),
    "itself": lambda x: x.unsqueeze(0) == x.unsqueeze(0),
    "relu6": lambda x: x.clamp(0, 6),
}


def test_not_a_number_is_last_and_largest():
    cases = {name: (function, [LINE], "float32") for name, function in ORDERS.items()}
    assert not [name for name, equal in _compared(cases).items() if not equal]


def test_the_first_of_equal_elements_is_found():
    torch = pytest.importorskip("torch_support").torch
    for largest in (True, False):
        for function in (
            lambda x: x.topk(3, largest=largest).indices,  # noqa: B023
            lambda x: x.kthvalue(1).indices.reshape(1),
        ):
            _, ours = eager_and_ours(function, torch.zeros(20))
            assert ours.tolist() == list(range(len(ours)))


QUOTIENTS = [1e20, 7.5, -7.5, 0.0, INF, 3.0, -1e30, NAN], [-3.0, INF, 2.0, 0.1, 2.0, 0.0, 7.0, 1.0]


def test_quotients_by_constants_are_the_nearest():
    jax, baechi = pytest.importorskip("jax"), pytest.importorskip("baechi")
    x = np.arange(-4000, 4000, dtype=np.float32)
    for constant in (3, 7, 10, 49):

        def divide(x, by=constant):
            return x / by

        right = x / np.float32(constant)
        np.testing.assert_array_equal(baechi.jit(divide, **OPTIONS)(x), right)
        assert (np.asarray(jax.jit(divide)(x)) != right).any()


def test_remainders_are_exact():
    cases = {
        "fmod": (lambda x, y: x.fmod(y), QUOTIENTS, "float32"),
        "doubles": (lambda x, y: x.fmod(y), QUOTIENTS, "float64"),
        "remainder": (lambda x, y: x % y, QUOTIENTS, "float32"),
        "floor": (lambda x, y: x // y, QUOTIENTS, "float32"),
        "number": (lambda x, y: x.fmod(-3), QUOTIENTS, "float32"),
    }
    assert not [name for name, equal in _compared(cases).items() if not equal]


def test_comparisons_with_numbers_are_in_the_type_of_tensors():
    torch = pytest.importorskip("torch_support").torch
    cases = {
        "le": (lambda x: x <= 0.1, [[0.1, -0.1, 0.7]], "float32"),
        "eq": (lambda x: x == 0.7, [[0.1, -0.1, 0.7]], "float16"),
        "constant": (
            lambda x: (torch.full((3,), 3.0) < 0) | (x < 0),
            [[0.1, -0.1, 0.7]],
            "float32",
        ),
        "root": (lambda x: x**0.5, [[-INF, 4.0]], "float32"),
        "square": (lambda x: x**2, [[3, -5]], "int32"),
        "small": (lambda x: x.to(torch.int16), [[NAN, INF, 1e5, -2.5]], "float32"),
    }
    assert not [name for name, equal in _compared(cases).items() if not equal]


def test_sums_start_from_zero():
    jax = pytest.importorskip("jax")
    import baechi

    def both(x):
        return x.sum(1), x[:, :1].sum(1)

    x = np.full((2, 3), -0.0, np.float32)
    theirs = jax.jit(both)(x)
    ours = baechi.jit(both, **OPTIONS)(x)
    assert not np.signbit(theirs[0]).any() and np.signbit(theirs[1]).all()
    assert not np.signbit(ours[0]).any() and not np.signbit(ours[1]).any()


def test_zeros_have_an_order():
    torch = pytest.importorskip("torch_support").torch
    x, y = torch.tensor([0.0, -0.0]), torch.tensor([-0.0, 0.0])
    compiled = torch.compile(lambda x: x.amax(), backend="baechi", options=OPTIONS)
    assert not compiled(x).signbit() and not compiled(y).signbit()


@pytest.mark.parametrize("name", ["floor", "trunc", "operator"])
def test_integer_division_by_zero_is_an_error(name):
    support = pytest.importorskip("torch_support")
    torch = support.torch
    import baechi

    def divide(x, y):
        return x // y if name == "operator" else torch.div(x, y, rounding_mode=name)

    one, zero = torch.tensor([1]), torch.tensor([0])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(one, zero)
    torch._dynamo.reset()
    compiled = torch.compile(divide, backend="baechi", options=OPTIONS)
    with pytest.raises(baechi.StepError, match="an integer is divided by zero"):
        compiled(one, zero)


@pytest.mark.parametrize("kind", [np.int32, np.uint8])
def test_integers_divided_by_zero_are_jaxs(kind):
    """No difference, where PyTorch's and ONNX's end the step."""
    jax = pytest.importorskip("jax")
    import baechi

    def divided(x, y):
        return x // y, x % y, jax.lax.div(x, y), jax.lax.rem(x, y)

    x, y = np.array([10, 7, 0], kind), np.zeros(3, kind)
    for ours, theirs in zip(baechi.jit(divided, **OPTIONS)(x, y), jax.jit(divided)(x, y)):
        np.testing.assert_array_equal(ours, theirs)


def test_gelu_of_infinity_is_infinity():
    torch = pytest.importorskip("torch_support").torch
    gelu, x = torch.nn.functional.gelu, torch.full((64,), float("inf"))
    eager, ours = eager_and_ours(gelu, x)
    assert eager.isnan().all() and torch.equal(ours, x)
    assert gelu(x[:1]).isinf().all() and torch.equal(gelu(x.double()), x.double())


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
