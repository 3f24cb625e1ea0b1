# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`check=` finds results that are not JAX's, and the operation that they begin at."""

import dataclasses

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
import needs  # noqa: E402
from baechi.checking.compare import first_difference  # noqa: E402
from baechi.checking.options import TOLERANCES, CheckOptions  # noqa: E402
from baechi.jax import jitted, short_types  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

jnp, lax = jax.numpy, jax.lax


def train(params, batch, key):
    key, drawn = jax.random.split(key)

    def loss(params):
        with jax.named_scope("encoder"):
            hidden = jnp.tanh(batch @ params["in"])
        hidden *= jax.random.bernoulli(drawn, 0.5, hidden.shape)
        with jax.named_scope("decoder"):
            return jnp.sin(hidden @ params["out"]).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value, key


@pytest.fixture
def start():
    keys = jax.random.split(jax.random.key(0), 3)
    params = {"in": jax.random.normal(keys[0], (6, 8)), "out": jax.random.normal(keys[1], (8, 4))}
    return params, jax.random.normal(keys[2], (5, 6)), jax.random.key(3)


@pytest.fixture
def miscompiled(monkeypatch):
    """Lets the compiler take one operation for another."""

    def swap(old, new):
        right = jitted.import_step

        def wrong(*args, **kwargs):
            imported = right(*args, **kwargs)
            return dataclasses.replace(imported, module=imported.text.replace(old, new))

        monkeypatch.setattr(jitted, "import_step", wrong)

    return swap


@needs.tool("baechi-run")
def test_right_steps_pass_at_every_call(start):
    params, batch, key = start
    step, reference = jit(train, check=1, donate_argnums=0), jax.jit(train)
    ours = theirs = (params, 0.0, key)
    for _ in range(3):
        ours, theirs = step(ours[0], batch, ours[2]), reference(theirs[0], batch, theirs[2])
    assert_close(ours[:2], theirs[:2])
    assert (jax.random.key_data(ours[2]) == jax.random.key_data(theirs[2])).all()


@needs.tool("baechi-run")
@pytest.mark.parametrize(
    "old, new, operator",
    [("math.tanh", "math.sin", "encoder/tanh"), ("math.sin", "math.cos", "decoder/sin")],
)
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_the_first_wrong_operation_is_named(start, miscompiled, old, new, operator, machine):
    miscompiled(old, new)
    step = jit(train, machine=machine, check="first", donate_argnums=0)
    with pytest.raises(baechi.CheckError) as raised:
        step(*start)
    assert raised.value.operator == operator
    assert f"first at '{operator}'" in str(raised.value)
    assert __file__ in raised.value.source
    assert raised.value.error > 100 * raised.value.tolerance > 0


@needs.tool("baechi-run")
def test_control_flow_is_one_operation(miscompiled):
    def f(xs, w):
        def body(carry, x):
            return jnp.tanh(carry + x @ w), carry

        return lax.scan(body, jnp.zeros(4), jnp.exp(xs))

    miscompiled("math.tanh", "math.absf")
    with pytest.raises(baechi.CheckError) as raised:
        jit(f, check="first")(jnp.ones((3, 2)), jnp.full((2, 4), 0.3))
    assert raised.value.operator == "scan"


@needs.tool("baechi-run")
def test_only_the_calls_asked_for_are_checked(start, miscompiled):
    def f(x):
        return jnp.where(x > 0, jnp.tanh(x), x)

    right, wrong = -jnp.ones(3), jnp.ones(3)
    miscompiled("math.tanh", "math.sin")
    jit(f)(wrong)  # not asked for
    first = jit(f, check="first")
    first(right)
    first(wrong)
    with pytest.raises(baechi.CheckError):
        first(jnp.ones(4))  # another program's first call
    third = jit(f, check=2)
    third(right)
    third(wrong)
    with pytest.raises(baechi.CheckError):
        third(wrong)


@needs.tool("baechi-run")
def test_static_values_keywords_and_numbers(miscompiled):
    def f(x, power, *, scale):
        return {"y": jnp.tanh(x) ** power * scale}

    assert_close(
        jit(f, check=1, static_argnums=1)(jnp.ones(3), 2, scale=3.0),
        {"y": np.full(3, 3 * np.tanh(1) ** 2, np.float32)},
    )
    miscompiled("math.tanh", "math.sin")
    with pytest.raises(baechi.CheckError, match="the result 'y' is not jax.jit's") as raised:
        jit(f, check=1, static_argnums=1)(jnp.ones(3), 2, scale=3.0)
    assert raised.value.operator == "tanh"


@needs.tool("baechi-run")
def test_what_rounding_decides_is_no_difference():
    def adam(x, w):  # the gradient of `b` is nothing but rounding, which Adam scales up to 1
        def loss(b):
            y = x @ w + b
            return ((y - y.mean(0)) / (y.std(0) + 1e-3)).sum() ** 2

        gradient = jax.grad(loss)(jnp.zeros(w.shape[1]))
        return gradient / (jnp.abs(gradient) + 1e-12)

    x, w = (jax.random.normal(jax.random.key(k), (7, 7)) for k in range(2))
    jit(adam, check="first")(x, w)


@needs.tool("baechi-run")
def test_short_types_within_a_step_are_rounded_to(miscompiled):
    """Mixed precision: single precision outside, bfloat16 within."""

    def loss(w, x):
        hidden = jnp.tanh(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16))
        return (hidden.astype(jnp.float32) ** 2).mean()

    def step(w, x):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return w - 0.1 * gradient, value

    draws = np.random.default_rng(0)
    w = jnp.asarray(draws.standard_normal((64, 32)) / 8, jnp.float32)
    x = jnp.asarray(draws.standard_normal((16, 64)), jnp.float32)
    for ours, theirs in zip(
        jit(step, machine="host:2", check="first")(w, x), jax.jit(step)(w, x), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.02)

    miscompiled("math.tanh", "math.sin")
    with pytest.raises(baechi.CheckError, match="first at 'tanh'"):
        jit(step, machine="host:2", check="first")(4 * w, x)


def mixed(w, x):
    """A result of single precision alone, one that depends on bfloat16 too, little, and one that
    is nothing else."""
    hidden = jnp.tanh(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)
    return jnp.sin(x) * 1.0625, w + 0.01 * hidden[:, :1], hidden.mean()


@needs.tool("baechi-run")
@pytest.mark.parametrize(
    "index, old, new", [(0, "1.062500e+00", "1.030625e+00"), (1, "0.00999999977", "0.011")]
)
def test_single_precision_beside_short_types_is_compared_as_such(miscompiled, index, old, new):
    """A factor that is wrong by 3 % is found, and one by 10 % in a hundredth of a result."""
    draws = np.random.default_rng(2)
    w = jnp.asarray(draws.standard_normal((16, 16)) / 4, jnp.float32)
    x = jnp.asarray(draws.standard_normal((16, 16)), jnp.float32)
    step = jit(mixed, check="first")
    step(w, x)
    miscompiled(old, new)
    with pytest.raises(baechi.CheckError, match=rf"the result 'result{index}' is not"):
        jit(mixed, check="first")(w, x)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_what_short_types_change_follows_the_data(kind):
    """Through calls, branches and loops; elements that only move are not rounded again."""

    def step(x, wide):
        def body(carry, x):
            return jnp.tanh(carry + x), jnp.sum(carry.astype(jnp.float32))

        short = jax.jit(jnp.sin)(x.astype(kind))
        last, sums = lax.scan(body, jnp.zeros(3, kind), short)
        branch = lax.cond(wide[0] > 0, lambda s: s.astype(jnp.float32) * 2, lambda s: wide, last)
        moved = jnp.flip(x.astype(kind).T).reshape(-1)[2:5].astype(jnp.float32)
        return sums, branch, moved, jnp.cos(wide), jnp.argmax(wide)

    x, wide = jnp.linspace(0.1, 1, 12, dtype=jnp.float32).reshape(4, 3), jnp.arange(1.0, 4.0)
    closed = jax.make_jaxpr(step)(x, wide)
    assert short_types.computes_short(closed.jaxpr)
    right = jax.jit(step)(x, wide)
    unit = float(jnp.finfo(kind).eps)
    for seed in range(2):
        other = jax.jit(short_types.changed(closed, seed))(x, wide)
        changes = [float(jnp.abs(a / b - 1).max()) for a, b in zip(other[:3], right[:3])]
        assert all(unit / 8 < change < 8 * unit for change in changes[1:])
        assert 0 < np.nanmax(np.abs(other[0] - right[0])) < 8 * unit
        assert changes[2] <= 1.5 * unit
        for mine, their in zip(other[3:], right[3:]):
            np.testing.assert_array_equal(mine, their)
    assert not short_types.computes_short(jax.make_jaxpr(jnp.cos)(wide).jaxpr)


@needs.tool("baechi-run")
def test_a_tolerance_of_ones_own(miscompiled):
    def f(x):
        return jnp.tanh(x)

    miscompiled("math.tanh", "math.sin")
    small = jnp.full(3, 0.01)  # sin and tanh differ by 1.7e-5 of themselves
    jit(f, check="first")(small)
    jit(f, check="first", check_tolerance={"float16": 1e-9})(small)
    for tolerance in (1e-7, {"float32": 1e-7}):
        with pytest.raises(baechi.CheckError):
            jit(f, check="first", check_tolerance=tolerance)(small)


@pytest.mark.parametrize("tolerance", [1e-12, {"float64": 1e-12, "float32": 1e-12}])
def test_a_tolerance_of_ones_own_is_not_widened(tolerance):
    ours, theirs = np.float32([1.0, 1.0001]), np.float32([1.0, 1.0])

    def disturbed():
        return [[np.float32([1.0, 2.0])]]

    widened = CheckOptions("first", {"float16": 1e-12})
    assert first_difference([ours], [theirs], widened, "JAX", disturbed) is None
    bound = CheckOptions("first", tolerance)
    found = first_difference([ours], [theirs], bound, "JAX", disturbed)
    assert found is not None and found.allowed == 1e-12


def compared(ours, theirs, **options):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return first_difference([ours], [theirs], CheckOptions("first", **options), "JAX", list)


@pytest.mark.parametrize("kind", TOLERANCES)
def test_tolerances_by_type(kind):
    dtype, part = jnp.dtype(kind), TOLERANCES[kind]
    one = np.ones(2, np.float64)
    near, far = one + [0, 0.5 * part], one + [0, 4 * part]
    assert compared(near.astype(dtype), one.astype(dtype)) is None
    assert compared(far.astype(dtype), one.astype(dtype)).error > part


def test_nan_and_infinity_have_their_places():
    special = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    assert compared(special, special.copy()) is None
    for at, value in ((0, 1), (1, -np.inf), (2, np.nan), (3, np.nan), (3, np.inf)):
        other = special.copy()
        other[at] = value
        found = compared(other, special)
        assert found.error == np.inf and f"at [{at}]" in found.text


def test_nothing_but_rounding_may_be_anything_finite():
    noise, options = np.float32([1e-9, 3e-9]), CheckOptions("first")

    def judged(ours, disturbed):
        return first_difference([ours], [noise], options, "JAX", lambda: [[disturbed]])

    assert judged(100 * noise, -noise) is None
    assert judged(100 * noise, noise * np.float32(1.001)).error > 1
    assert judged(np.float32([np.nan, 0]), -noise).error == np.inf


def test_integers_shapes_and_types_are_equal():
    assert compared([1, 2], [1, 2]) is None
    assert compared([1, 3], [1, 2]).text == "3 where JAX has 2 at [1]"
    assert compared([True], [False]).error == np.inf
    assert compared(np.zeros((0, 3)), np.zeros((0, 3))) is None
    assert "shape" in compared(np.zeros(2), np.zeros(3)).text
    assert "float32" in compared(np.zeros(2, np.float32), np.zeros(2)).text


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"check": "always"}, ValueError, "check is 'always': give 'first'"),
        ({"check": 0}, ValueError, "check is 0"),
        ({"check": True}, ValueError, "check is True"),
        ({"check_tolerance": 1e-3}, ValueError, "nothing is checked: add check='first'"),
        ({"check": 1, "check_tolerance": -1.0}, ValueError, "check_tolerance is -1.0"),
        ({"check": 1, "check_tolerance": {"f32": 1.0}}, ValueError, "names the type 'f32'"),
        ({"check": 1, "check_tolerance": {"float32": "x"}}, ValueError, "is 'x'"),
    ],
)
def test_options_that_mean_nothing(options, error, words):
    with pytest.raises(error, match=words):
        baechi.jit(lambda x: x, **options)
