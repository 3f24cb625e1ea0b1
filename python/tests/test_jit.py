# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.jit` computes what `jax.jit` computes."""

import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
import needs  # noqa: E402
from baechi import init, models  # noqa: E402
from baechi.compiling import tools  # noqa: E402
from baechi.importer.common.errors import ImportFailure  # noqa: E402
from baechi.steps.program import Program  # noqa: E402
from baechi.steps.resident import ResidentArray  # noqa: E402
from jax_support import assert_close, jit, starting_values, train  # noqa: E402

jnp, lax = jax.numpy, jax.lax


pytestmark = needs.tool("baechi-run")


@pytest.fixture
def start():
    return starting_values()


@pytest.mark.parametrize("machine", ["host:1", "host:2", "host:4"])
def test_training_equals_jax(machine, start):
    params, batch = start
    step, reference = jit(train, machine=machine, donate_argnums=0), jax.jit(train)
    ours = theirs = params
    for _ in range(10):
        ours, our_loss = step(ours, batch)
        theirs, their_loss = reference(theirs, batch)
        np.testing.assert_allclose(float(our_loss), float(their_loss), rtol=1e-5)
    assert_close(ours, theirs)
    assert set(step.placement.values()) <= {f"host{i}" for i in range(4)}
    assert "params/in" in step.placement and "measured" in step.report()
    assert step.__name__ == "train" and step.__doc__ == "One step of gradient descent."


def test_any_pytree_without_donation():
    def function(pair, scale):
        a, (b, nothing) = pair
        return {"sum": a + b * scale, "flags": (a > b, (a * 2).astype(jnp.int32)), "none": nothing}

    a, b = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    step = jit(function)
    for scale in (2, 0.5, np.float64(3)):
        assert_close(step((a, (b, None)), scale), jax.jit(function)((a, (b, None)), scale))


def test_other_shapes_types_and_static_values_compile_again():
    def power(x, n):
        return x**n

    step = jit(power, static_argnums=1)
    x = np.arange(4, dtype=np.float32)
    for value, n in ((x, 2), (x, 3), (x[:3], 2), (x.astype(np.int32), 2), (x, 2)):
        assert_close(step(value, n), jax.jit(power, static_argnums=1)(value, n))
    assert len(step._programs) == 4
    assert_close(step(x=x, n=2), jnp.asarray(x**2))


def test_the_gradient_of_a_maximum():
    """Its elements are found by equality, so they must be computed alike wherever they are read."""

    def model(scale, x):
        hidden = x * scale[0] + scale[1]
        return jnp.sum(jnp.max(jax.nn.silu(hidden) * 1.7 + hidden, axis=1) ** 2)

    keys = jax.random.split(jax.random.key(3), 2)
    arguments = jax.random.normal(keys[0], (2, 64)), jax.random.normal(keys[1], (128, 64))
    step = jax.value_and_grad(model)
    assert_close(jit(step, machine="host:2")(*arguments), step(*arguments))


def test_unsigned_integers_keep_their_type():
    def function(x):
        return x + np.uint32(1), x >> 1

    x = np.array([0, 1, 2**31, 2**32 - 2], np.uint32)
    assert_close(jit(function)(x), jax.jit(function)(x))


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_random_keys(generator):
    def dropout(key, x):
        key, now = jax.random.split(key)
        keep = jax.random.bernoulli(now, 0.5, x.shape)
        return key, jnp.where(keep, x + jax.random.normal(key, x.shape), 0)

    x = np.ones((8, 16), np.float32)
    step, reference = jit(dropout, donate_argnums=0), jax.jit(dropout)
    ours, theirs = (jax.random.key(7, impl=generator) for _ in range(2))
    for _ in range(3):
        (ours, our_result), (theirs, their_result) = step(ours, x), reference(theirs, x)
        assert ours.dtype == theirs.dtype
        assert_close(jax.random.key_data(ours), jax.random.key_data(theirs))
        # The tails of a normal distribution are ill-conditioned: log(1 - u * u).
        np.testing.assert_allclose(our_result, their_result, rtol=1e-4, atol=1e-5)


def test_a_limit_that_one_device_cannot_hold(start):
    params, batch = start
    # Below what stays there, and below what the steps between need.
    with pytest.raises(
        tools.CompileError, match=r"no placement can fit[^$]*too many\n[^$]*params/"
    ):
        jit(train, machine="host:1@3KiB", donate_argnums=0, fit_memory="whole")(params, batch)
    with pytest.raises(
        tools.CompileError,
        match=r"'host0' has 6144 bytes[^$]*the plan needs \d+ [^$]*'backward/\S+' by itself needs",
    ):
        jit(train, machine="host:1@6KiB", donate_argnums=0, fit_memory="whole")(params, batch)
    (updated, _) = jit(train, machine="host:2@5KiB", donate_argnums=0)(params, batch)
    assert_close(updated, jax.jit(train)(params, batch)[0])


def test_errors_say_what_is_wrong(start):
    params, batch = start
    with pytest.raises(ValueError, match="placer is 'fast': known: mtopo"):
        jit(train, placer="fast")
    with pytest.raises(ImportFailure, match="test_jit.py"):
        jit(lambda x: jnp.float32(x.astype(jnp.float8_e4m3fn)))(np.ones(3, np.float32))
    with pytest.raises(RuntimeError, match="call it first"):
        jit(train).report()


def test_pins_by_pattern(start):
    params, batch = start
    step = jit(train, donate_argnums=0, pin={"params/*": "host1", "batch/*": "host0"})
    assert_close(step(params, batch)[0], jax.jit(train)(params, batch)[0])
    devices = step.placement
    assert {devices[f"params/{name}"] for name in params} == {"host1"}
    assert {devices["batch/0"], devices["batch/1"]} == {"host0"}
    with pytest.raises(tools.CompileError, match="the machine has no device 'gpu0'"):
        jit(train, pin={"params/*": "gpu0"})(params, batch)
    with pytest.raises(tools.CompileError, match="decoder"):
        jit(train, pin={"decoder/*": "host0"})(params, batch)


def test_a_saved_placement(start, tmp_path):
    step = jit(train, placer="round-robin", donate_argnums=0)
    step(*start)
    saved = tmp_path / "placement.json"
    saved.write_text(step._called().placement_file())
    again = jit(train, placement=saved, donate_argnums=0)
    again(*start)
    assert again.placement == step.placement
    assert len(set(step.placement.values())) == 2


def test_explains_and_lowers(start):
    step = baechi.jit(costs="roofline")(train)
    step(*start)
    assert "func.func @step" in step.lower(*start).as_text()
    told = step.explain("tanh")
    assert "earliest start" in told and "pinned" not in told
    assert " ms (+" in told or " ms (-" in told  # the step with it on the other device
    pinned = jit(train, pin={"tanh": "host1"})
    pinned(*start)
    assert "It is pinned to host1." in pinned.explain("tanh")


def test_explanations_are_of_the_program_that_runs():
    """Forming kernels of convolutions once depended on what a tool had registered."""
    model = models.load("resnet")
    built, args, donated = model.training_step(model.PRESETS["tiny"])
    args = jax.tree.map(
        lambda leaf: leaf.value(), args, is_leaf=lambda leaf: isinstance(leaf, init.Init)
    )
    step = jit(built, donate_argnums=donated, placer="round-robin")
    step(*args)
    told = dict(re.findall(r"operator \d+ '([^']+)' is on (\S+) from", step.explain("*")))
    assert len(told) > 100 and told == step.placement


def test_a_placement_of_another_program_is_told(tmp_path, start):
    other = jit(lambda x: jnp.exp(x) @ x)
    other(np.ones((4, 4), np.float32))
    file = tmp_path / "placement.json"
    file.write_text(other._latest.placement_file())
    with pytest.warns(UserWarning, match="is of another version of the program: only the file"):
        jit(train, placement=file)(*start)


@pytest.mark.parametrize("name", models.NAMES)
def test_model_collection(name):
    model = models.load(name)
    built_step, args, donated = model.training_step(model.PRESETS["tiny"])
    is_leaf = lambda leaf: isinstance(leaf, init.Init)  # noqa: E731
    args = jax.tree.map(lambda leaf: jnp.asarray(leaf.value()), args, is_leaf=is_leaf)
    assert donated
    step, reference = jit(built_step, donate_argnums=donated), jax.jit(built_step)
    ours, theirs = list(args), list(args)
    for _ in range(5):
        our_results, their_results = step(*ours), reference(*theirs)
        assert_losses(our_results, their_results)
        ours = next_arguments(step, ours, our_results)
        theirs = next_arguments(step, theirs, their_results)


def assert_losses(ours, theirs):
    for a, e in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        if a.shape == ():
            np.testing.assert_allclose(float(a), float(e), rtol=1e-4)


def next_arguments(step, args, results):
    """The arguments with those that results are the next values of."""
    signature = step._called().signature
    leaves, tree = jax.tree.flatten(tuple(args))
    flat = jax.tree.leaves(results)
    for i, argument in enumerate(signature.arguments):
        if argument.updated_by is not None:
            leaves[i] = flat[argument.updated_by]
    return jax.tree.unflatten(tree, leaves)


def test_lowering_does_not_compile(start):
    params, batch = start
    step = jit(train, machine="no such machine")
    assert "func.func" in step.lower(params, batch).as_text()
    with pytest.raises(tools.CompileError, match="no such machine"):
        step(params, batch)


def test_the_example_runs(tmp_path):
    root = pathlib.Path(__file__).parents[2]
    paths = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(root / "python")}
    environment = {**os.environ, **paths}
    done = subprocess.run(
        [sys.executable, root / "examples" / "jit_mlp.py"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "step 49: loss 0." in done.stdout and "measured" in done.stdout
    assert (tmp_path / "baechi" / "profile.json").exists()


def test_calls_from_several_threads_take_turns():
    compiled = []

    @jit
    def step(x):
        compiled.append(x.shape)
        return (x @ x.T).sum() + x[0, 0]

    inputs = [np.full((64, 64), i, np.float32) for i in range(8)] * 20
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda x: float(step(x)), inputs))
    np.testing.assert_allclose(results, [64**3 * x[0, 0] ** 2 + x[0, 0] for x in inputs])
    assert len(step._programs) == 1 and compiled == [(64, 64)]


def test_static_values_of_other_types_are_other_programs():
    step = jit(lambda x, n: x / n if isinstance(n, float) else x + n, static_argnums=1)
    x = np.full(4, 3, np.float32)
    for n, expected in ((1, 4), (1.0, 3), (True, 4), (0.0, np.inf), (-0.0, -np.inf)):
        np.testing.assert_array_equal(step(x, n), [expected] * 4)
    assert len(step._programs) == 5


def test_positions_from_the_end():
    step = jit(lambda x, y, n: (y + n, x.sum()), donate_argnums=-2, static_argnums=-1)
    moved, _ = step(np.zeros(4, np.float32), np.ones(4, np.float32), 2)
    assert isinstance(moved, ResidentArray)
    np.testing.assert_array_equal(moved, [3] * 4)


def test_a_method():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @baechi.jit(static_argnums=0, costs="roofline", budget="0")
        def apply(self, x):
            return x * self.factor

    for factor in (2, 3):
        scale = Scale(factor)
        np.testing.assert_array_equal(scale.apply(np.ones(4, np.float32)), [factor] * 4)
        assert "predicted" in scale.apply.report()


def test_arguments_by_name():
    def step(p, x, times):
        return p + times * x

    ours = baechi.jit(
        step, donate_argnames="p", static_argnames=["times"], costs="roofline", budget="0"
    )
    p = ours(jnp.ones(4), x=jnp.ones(4), times=2)
    assert isinstance(p, ResidentArray)
    assert ours(p, jnp.ones(4), times=3).tolist() == [6.0] * 4
    with pytest.raises(ValueError, match="no argument 'q'; its arguments: p, x, times"):
        baechi.jit(step, donate_argnames="q")


def test_a_step_without_a_signature():
    """What names no arguments is not asked for them."""
    with pytest.raises(ValueError, match="no signature"):
        baechi.jit(max, static_argnames="key")
    assert callable(baechi.jit(max))


def test_orders_are_xlas():
    """NaNs are beyond infinity, for `top_k` by their signs; equal elements keep their order."""
    x = np.float32([0, -0.0, np.nan, np.copysign(np.nan, -1), np.inf, -np.inf, 1, -1, 0, -0.0, 3])
    rows = np.stack([x, x[::-1], np.roll(x, 3)])
    integers = (rows != 0).astype(np.int8) * np.arange(11, dtype=np.int8)

    def orders(x, i):
        return (
            [lax.top_k(x, 11), lax.top_k(x.astype(jnp.bfloat16), 4), lax.approx_max_k(x, 3)],
            [lax.top_k(i, 5), lax.top_k(i.astype(jnp.uint8) - 3, 3), lax.top_k(x, 2, axis=0)],
            [jnp.sort(x), jnp.argsort(x), jnp.argsort(i, descending=True), jnp.sort(x > 0)],
            [lax.sort((i, x), num_keys=1), jnp.unique(i, size=12), lax.top_k(jnp.tile(i, 4), 40)],
        )

    ours, theirs = jit(orders)(rows, integers), jax.jit(orders)(rows, integers)
    for a, e in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(e, np.float64))
        np.testing.assert_array_equal(np.signbit(a), np.signbit(e))


NOTHING = jnp.zeros((3, 0)), jnp.zeros((0, 4))


@pytest.mark.parametrize(
    "step",
    [
        lambda x, y: (x.sum(), y.prod(0), y.mean(), x.sum(1), y.sum(1), x.max(1, initial=2.0)),
        lambda x, y: (x @ y, y @ jnp.ones((4, 2)), (x == 0).all()),
        lambda x, y: x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16),
        lambda x, y: (x.astype(int) @ y.astype(int), jnp.argmax(y, 1)),
        jax.grad(lambda x, y: (x @ y).sum() + jax.nn.softmax(y).sum()),
    ],
)
def test_reductions_of_nothing(step):
    for actual, expected in zip(
        *(jax.tree.leaves(f(*NOTHING)) for f in (jit(step), jax.jit(step))), strict=True
    ):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


@pytest.mark.parametrize("value", [0.1, 3, jnp.float32(0.1)])
def test_results_of_weak_type(value):
    def step(rate):
        return rate * 2, jnp.full((2, 3), rate), jnp.asarray(rate, jnp.float32)

    for actual, expected in zip(jit(step)(value), jax.jit(step)(value), strict=True):
        assert (actual.dtype, actual.weak_type) == (expected.dtype, expected.weak_type)
        np.testing.assert_array_equal(actual, expected)


def test_empty_and_equal_results():
    def step(x):
        return x[:, :0], x.mean(), x.mean(axis=(0, 1)), lax.top_k(x, 0), x[:0] + 1

    x = np.ones((3, 4), np.float32)
    assert_close(jit(step)(x), jax.jit(step)(x))


def test_errors_name_no_files_of_ours():
    step = jit(lambda x: jnp.tanh(x @ x), machine="host:1@1KiB")
    with pytest.raises(tools.CompileError, match="^error: no placement can fit"):
        step(np.ones((64, 64), np.float32))


@pytest.mark.parametrize(
    "call, error, expected",
    [
        (lambda: baechi.jit(3), TypeError, "takes a function, not 3"),
        (lambda: baechi.jit("host:2"), TypeError, "given by name: machine='host:2'"),
        (lambda: jit(jnp.add, machine=None), TypeError, "machine is a NoneType: give 'host:2'"),
        (
            lambda: jit(jnp.add, machine=baechi.Machine([baechi.Device("a", "host", 2**30)])),
            TypeError,
            "json.dump(machine.to_dict(), file)",
        ),
        (
            lambda: jit(lambda x, sizes: x, static_argnums=1)(1.0, [2]),
            ValueError,
            "static argument 'sizes' is a list, which has no hash",
        ),
        (
            lambda: jit(lambda x, sizes: x, static_argnames="sizes")(1.0, sizes=[2]),
            ValueError,
            "static argument 'sizes' is a list, which has no hash",
        ),
        (
            lambda: jit(lambda x, y=1: x, donate_argnums=5),
            ValueError,
            "donate_argnums has 5, but the step takes 2 arguments by position",
        ),
        (lambda: jit(lambda x: x, static_argnums=(0, -2)), ValueError, "static_argnums has -2"),
    ],
)
def test_wrong_options_are_refused(call, error, expected):
    with pytest.raises(error) as refused:
        call()
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    "step, said",
    [
        (1720, "1.72 us; the placement's makespan 2.38 us, lower bound 2.37 us"),
        (2400, "2.40 us, lower bound 2.37 us"),
    ],
)
def test_a_bound_above_the_step_is_of_the_placers_makespan(step, said):
    """Which counts copies at their full price, where the devices may lend."""
    predicted = {"step_ns": step, "makespan_ns": 2380, "lower_bound_ns": 2370}
    library = SimpleNamespace(program={"predicted": predicted})
    assert Program._predicted(SimpleNamespace(library=library)) == said
