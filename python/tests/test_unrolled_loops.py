# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that are written out turn by turn, compared with `jax.jit`."""

import re
import warnings

import numpy as np
import pytest

import needs

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import baechi  # noqa: E402

pytestmark = needs.tool("baechi-run")

QUICK = {"costs": "roofline", "budget": "0"}
L, D, B = 4, 96, 48
RANDOM = np.random.default_rng(0)


def drawn(*shape, scale=0.3):
    return (RANDOM.standard_normal(shape) * scale).astype(np.float32)


def adam(state, x, y):
    """Layers with stacked weights."""
    p, m, v, t = state

    def loss(p):
        h, _ = lax.scan(lambda h, w: (h + jnp.tanh(h @ w[0] + w[1]), None), x, (p["w"], p["b"]))
        return jnp.mean((h - y) ** 2)

    value, g = jax.value_and_grad(loss)(p)
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    p = jax.tree.map(
        lambda p, m, v: p - 0.01 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-3),
        *(p, m, v),
    )
    return (p, m, v, t), value


def recurrent(p, x):
    def loss(p):
        def cell(h, x):
            h = jnp.tanh(x @ p["u"] + h @ p["w"])
            return h, h

        h, every = lax.scan(cell, jnp.zeros((x.shape[1], D)), x)
        return jnp.mean(every**2) + jnp.mean(h)

    value, g = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), value


def accumulated(p, x, y):
    """Gradients of four parts of the batch, one after the other."""

    def loss(p, x, y):
        return jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"] - y) ** 2)

    def add(g, part):
        value, d = jax.value_and_grad(loss)(p, *part)
        return jax.tree.map(jnp.add, g, d), value

    parts = x.reshape(4, -1, x.shape[1]), y.reshape(4, -1, y.shape[1])
    g, values = lax.scan(add, jax.tree.map(jnp.zeros_like, p), parts)
    return jax.tree.map(lambda a, b: a - 0.02 * b, p, g), values.mean()


def backwards(x, w):
    return lax.scan(lambda h, a: (jnp.tanh(h @ w) + a, h * 2), x[0], x, reverse=True)


def once(x, w):
    return lax.scan(lambda h, a: (jnp.tanh(h @ w) + a, h), x[0], x[:1])


def not_at_all(x, w):
    return lax.scan(lambda h, a: (jnp.tanh(h @ w) + a, h), x[0], x[:0])


def counted(x, w):
    return lax.fori_loop(2, 6, lambda i, h: jnp.tanh(h @ w) * i + x[i % 4], x[0])


def nested(x, w):
    def outer(h, a):
        h, sums = lax.scan(lambda h, b: (jnp.tanh(h @ w) + b, h.mean()), h, x[:3])
        return h + a, sums

    return lax.scan(outer, x[0], x)


def with_numbers(x, w):
    def turn(carry, a):
        n, h = carry
        return (n + 2, jnp.where(n % 4 == 1, jnp.tanh(h @ w), h) + a + n), n

    return lax.scan(turn, (jnp.int32(1), x[0]), x)


def partly_written(x, w):
    return lax.fori_loop(1, 3, lambda i, s: s.at[i].set(jnp.tanh(x[i] @ w)), jnp.ones_like(x))


def changed_in_place(c, x):
    def turn(c, i):
        return lax.dynamic_update_index_in_dim(c, c[i] * 2 + x[i], i, 0), c[i].mean()

    return lax.scan(turn, c, jnp.arange(4))


def checkpointed(p, x):
    def loss(p):
        layer = jax.checkpoint(lambda h, w: (h + jnp.tanh(h @ w), None))
        return jnp.mean(lax.scan(layer, x, p)[0] ** 2)

    value, g = jax.value_and_grad(loss)(p)
    return p - 0.1 * g, value


LAYERS = {"w": drawn(L, D, D), "b": drawn(L, D)}
ZEROS = {name: np.zeros_like(value) for name, value in LAYERS.items()}
X, W = drawn(4, B, D), drawn(D, D, scale=0.1)
PARTS = ({"a": drawn(32, 48), "b": drawn(48, 8)}, drawn(48, 32), drawn(48, 8))
# The step, its arguments, those that are donated, and the loops that are written out.
CASES = {
    "adam": (adam, ((LAYERS, ZEROS, ZEROS, np.float32(0)), X[0], X[1]), (0,), 2),
    "recurrent": (recurrent, ({"u": drawn(D, D), "w": W}, drawn(6, B, D)), (0,), 2),
    "accumulated": (accumulated, PARTS, (0,), 1),
    "backwards": (backwards, (X, W), (), 1),
    "once": (once, (X, W), (), 1),
    "not_at_all": (not_at_all, (X, W), (), 0),
    "counted": (counted, (X, W), (), 1),
    "nested": (nested, (X, W), (), 1),
    "with_numbers": (with_numbers, (X, W), (), 1),
    "partly_written": (partly_written, (X, W), (), 1),
    "changed_in_place": (changed_in_place, (X, drawn(4, B, D)), (0,), 1),
    "checkpointed": (checkpointed, (LAYERS["w"], X[0]), (0,), 2),
}


def copied(arguments):
    return jax.tree.map(np.array, arguments)


def assert_close(found, expected):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = float(np.max(np.abs(np.asarray(b, np.float64)), initial=1e-3))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * scale)


def told(compiled):
    return [line for line in compiled.report().splitlines() if line.startswith("loops ")]


@pytest.mark.parametrize("name", CASES)
def test_results_are_jaxs(name):
    step, arguments, donated, written = CASES[name]
    expected = jax.jit(step)(*arguments)
    options = {"machine": "host:2", "unroll": "always", **QUICK}
    compiled = baechi.jit(step, **options)
    assert_close(compiled(*arguments), expected)
    if written:
        assert any(".turn" in operator for operator in compiled.placement) or name == "once"
        assert f"{written} loop" in told(compiled)[0]
        assert "written out" in told(compiled)[0]
    if donated:
        compiled = baechi.jit(step, donate_argnums=donated, **options)
        given = copied(arguments)
        once_more = jax.jit(step)(*arguments)
        assert_close(compiled(*given), once_more)


@pytest.mark.parametrize("name", ["adam", "recurrent", "accumulated"])
def test_a_batch_that_a_loop_reads_is_cut(name):
    step, arguments, _, _ = CASES[name]
    expected = jax.jit(step)(*arguments)
    for options in ({"splits": "micro:2"}, {"replicas": 2}, {"splits": "canonical:3"}):
        compiled = baechi.jit(step, machine="host:2", **options, **QUICK)
        assert_close(compiled(*arguments), expected)
        assert "written out" in told(compiled)[0]
        assert "on any machine" in told(compiled)[0]


def test_named_arguments_are_cut_in_the_turns_that_read_them():
    expected = jax.jit(accumulated)(*PARTS)
    cut = {"x": (0, 2), "y": (0, 2)}
    compiled = baechi.jit(accumulated, machine="host:2", split=cut, **QUICK)
    assert_close(compiled(*PARTS), expected)
    pieces = [name for name in compiled.placement if ".turn3.piece1" in name]
    assert len(pieces) > 3


@pytest.mark.parametrize("splits", ["exact", "canonical:2", "micro:2"])
@pytest.mark.parametrize("name", ["adam", "recurrent", "checkpointed"])
def test_bits_do_not_depend_on_the_machine(name, splits):
    step, arguments, _, _ = CASES[name]
    bits, words = set(), set()
    for devices in (1, 2, 4):
        compiled = baechi.jit(step, machine=f"host:{devices}", splits=splits, **QUICK)
        found = compiled(*arguments)
        bits.add(b"".join(np.asarray(each).tobytes() for each in jax.tree.leaves(found)))
        words.add(told(compiled)[0])
    assert len(bits) == 1
    assert len(words) == 1


@pytest.mark.parametrize("name", ["recurrent", "accumulated", "nested", "checkpointed"])
def test_exact_bits_are_those_of_whole_loops(name):
    step, arguments, _, _ = CASES[name]
    options = {"machine": "host:2", "splits": "exact", **QUICK}
    found = [
        jax.tree.leaves(baechi.jit(step, unroll=unroll, **options)(*arguments))
        for unroll in ("never", "always")
    ]
    for a, b in zip(*found, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_one_device_with_enough_memory_keeps_its_loops():
    step, arguments, _, _ = CASES["adam"]
    compiled = baechi.jit(step, machine="host:1", splits="none", **QUICK)
    compiled(*arguments)
    assert not told(compiled)
    assert any("while" in name and ".turn" not in name for name in compiled.placement)


def test_several_devices_share_turns_where_that_is_predicted_to_be_faster():
    w, x = drawn(4, 512, 512, scale=0.02), drawn(256, 512)

    def step(w, x):
        def loss(w):
            return jnp.mean(lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0] ** 2)

        return w - 0.1 * jax.grad(loss)(w)

    compiled = baechi.jit(step, machine="host:2", splits="none", **QUICK)
    assert_close(compiled(w, x), jax.jit(step)(w, x))
    assert "2 loops written out" in told(compiled)[0]
    assert ", whole predicted " in told(compiled)[0]
    whole = baechi.jit(step, machine="host:2", unroll="never", **QUICK)
    whole(w, x)
    assert not told(whole)
    assert whole.explain("*while*")
    assert compiled.explain("*turn3*")


@pytest.mark.parametrize("turns, pin", [(129, None), (9, {"while": "host1"})])
def test_what_was_written_out_is_explained(turns, pin):
    def step(x, w):
        h, hs = lax.scan(lambda h, _: (jnp.tanh(h @ w), h), x, None, turns)
        with jax.named_scope("other"):
            return lax.fori_loop(0, 3, lambda i, h: jnp.sin(h @ w), h), hs.sum()

    compiled = baechi.jit(step, machine="host:2", unroll="always", pin=pin, **QUICK)
    assert_close(compiled(X[0], W), jax.jit(step)(X[0], W))
    operators = [name for name in compiled.placement if name not in ("x", "w")]
    for name in (operators[0], operators[-1]):
        assert re.match(rf"operator \d+ '{name}' is on host", compiled.explain(name))


def test_a_limit_of_memory_that_whole_loops_exceed():
    step, arguments, _, _ = CASES["adam"]
    options = {"machine": "host:1", "fit_memory": "never", "splits": "none", **QUICK}
    enough = baechi.jit(step, unroll="always", **options)
    enough(*arguments)
    memory = enough.memory()["host0"].arena_bytes
    options["memory"] = memory + 4096
    with pytest.raises(baechi.CompileError):
        baechi.jit(step, unroll="never", **options)(*arguments)
    compiled = baechi.jit(step, **options)
    assert_close(compiled(*arguments), jax.jit(step)(*arguments))
    assert "whole without a plan" in told(compiled)[0]


@pytest.mark.parametrize("splits", ["none", "exact", "canonical:2"])
def test_pins_that_name_a_loop_keep_it_whole(splits):
    step, arguments, _, _ = CASES["adam"]
    compiled = baechi.jit(step, machine="host:2", pin={"while": "host1"}, splits=splits, **QUICK)
    assert_close(compiled(*arguments), jax.jit(step)(*arguments))
    assert compiled.placement["while"] == "host1"


def test_cuts_that_name_a_loop_keep_it_whole():
    step, arguments, _, _ = CASES["adam"]
    compiled = baechi.jit(step, machine="host:2", split={"while": "whole"}, **QUICK)
    assert_close(compiled(*arguments), jax.jit(step)(*arguments))
    assert "while" in compiled.placement


def _small(x, w):
    return lax.scan(lambda h, _: (jnp.tanh(h @ w), h), x, None, 5)


@pytest.mark.parametrize("unroll", ["always", "never"])
@pytest.mark.parametrize("size", ["large", "small"])
def test_a_placement_s_names_are_kept(unroll, size, tmp_path):
    step, arguments, _, _ = CASES["adam"]
    if size == "small":
        step, arguments = _small, (X[0, :4, :16], W[:16, :16])
    first = baechi.jit(step, machine="host:2", unroll=unroll, **QUICK)
    first(*arguments)
    (tmp_path / "placement.json").write_text(first._called().placement_file())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = baechi.jit(step, machine="host:2", placement=tmp_path / "placement.json", **QUICK)
        assert_close(again(*arguments), jax.jit(step)(*arguments))
    assert again.placement == first.placement


def test_a_loop_within_that_counts_to_the_outer_one_s_number():
    """How many operators it becomes is not known before."""
    step = lambda x, w: lax.fori_loop(  # noqa: E731
        0, 4, lambda i, h: lax.fori_loop(0, i * 200, lambda j, g: jnp.tanh(g @ w), h), x
    )
    compiled = baechi.jit(step, machine="host:2", unroll="always", **QUICK)
    assert_close(compiled(X[0], W), jax.jit(step)(X[0], W))
    assert len(compiled.placement) < 30


def test_many_turns_that_write_a_stack_stay_whole():
    step = lambda x, w: lax.scan(lambda h, _: (jnp.tanh(h @ w), h), x, None, 129)[1]  # noqa: E731
    for unroll, words in (
        ("auto", "whole: more than 128 turns write into one tensor"),
        ("always", "1 loop written out, "),
    ):
        compiled = baechi.jit(step, machine="host:2", unroll=unroll, **QUICK)
        assert_close(compiled(X[0], W), jax.jit(step)(X[0], W))
        assert words in told(compiled)[0]


@pytest.mark.parametrize(
    "turns, memory, options",
    [
        (10, "706KiB", {}),
        (10, "706KiB", {"pin": {"*": "host0"}}),
        (10, "706KiB", {"expert": {".*": "host0"}}),
        (130, "9MiB", {}),
    ],
)
def test_where_memory_is_short_all_that_helps_is_written_out(turns, memory, options):
    w = np.eye(64, dtype=np.float32)

    def step(w, x):
        def loss(w):
            return lax.scan(lambda h, _: (jnp.tanh(h @ w), h), x, None, turns)[1].sum()

        return jax.value_and_grad(loss)(w)

    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    compiled = baechi.jit(step, machine=f"host:1@{memory}", **options, **QUICK)
    assert_close(compiled(w, x), jax.jit(step)(w, x))
    assert "2 loops written out" in told(compiled)[0]


def test_loops_that_stay_whole_say_why():
    step = lambda x, w, n: lax.fori_loop(0, n, lambda i, h: jnp.tanh(h @ w), x)  # noqa: E731
    compiled = baechi.jit(step, machine="host:2", unroll="always", **QUICK)
    assert_close(compiled(X[0], W, 3), jax.jit(step)(X[0], W, 3))
    assert "whole: how many turns it has is not known" in told(compiled)[0]


def test_refused_cuts_name_the_loop():
    options = {"machine": "host:2", "unroll": "never", **QUICK}
    loop = r"the loop 'while' goes through argument 2 \('x'\) and is one operator"
    with pytest.raises(baechi.CompileError, match=loop) as raised:
        baechi.jit(accumulated, splits="micro:4", **options)(*PARTS)
    assert "ask for fewer" not in str(raised.value)
    with pytest.raises(baechi.CompileError, match=loop):
        baechi.jit(accumulated, replicas=2, **options)(*PARTS)


def test_wrong_words():
    with pytest.raises(ValueError, match="unroll is 'sometimes': known: auto, always, never"):
        baechi.jit(lambda x: x, unroll="sometimes")
