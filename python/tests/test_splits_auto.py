# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators are cut into where nobody says it (docs/splitting.md)."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import baechi  # noqa: E402
from test_exact_splits import assert_same_bits  # noqa: E402
from test_splits import LAYERS, drawn, layers  # noqa: E402

QUICK = {"costs": "roofline", "budget": "0"}
CHAIN = jax.value_and_grad(layers)


def is_cut(compiled):
    return any(".piece" in name for name in compiled.placement)


def compiled(**options):
    step = baechi.jit(CHAIN, **(QUICK | options))
    return step, step(*LAYERS)


def test_several_devices_have_the_bits_of_one():
    alone, expected = compiled(machine="host:1")
    assert not is_cut(alone)
    for machine in ("host:2", "host:3", "host:4"):
        step, found = compiled(machine=machine)
        assert is_cut(step)
        assert_same_bits(found, expected)
    assert_same_bits(compiled(machine="host:2", splits="exact")[1], expected)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_placement_is_of_the_whole_step_or_of_pieces(devices, tmp_path):
    """As it was when the placement was made."""
    first, expected = compiled(machine=f"host:{devices}")
    assert is_cut(first) == (devices == 2)
    saved = tmp_path / "placement.json"
    saved.write_text(first._called().placement_file())
    again, found = compiled(machine="host:2", placement=saved)
    assert again.placement == first.placement
    assert_same_bits(found, expected)


def test_what_a_person_cuts_is_all_that_is():
    asked = {"machine": "host:2", "split": {"*w*": "whole"}}
    assert_same_bits(compiled(**asked)[1], compiled(**asked, splits="none")[1])
    assert not is_cut(compiled(**asked)[0])


def test_what_is_pinned_is_whole():
    step, found = compiled(machine="host:2", pin={"w/0": "host1"})
    assert step.placement["w/0"] == "host1"
    assert_same_bits(found, compiled(machine="host:1")[1])
    asked, found = compiled(machine="host:2", pin={"w/0": "host1"}, splits="exact")
    assert is_cut(asked)


def test_pieces_are_explained():
    step, _ = compiled(machine="host:2")
    names = [name for name in step.placement if ".piece" in name]
    assert f"'{names[-1]}' is on host" in step.explain(names[-1])


def recurrent(w, x, y):
    def loss(w):
        def cell(h, x):
            h = jnp.tanh(h @ w + x)
            return h, h

        return ((lax.scan(cell, jnp.zeros(x.shape[1:]), x)[1] - y) ** 2).mean()

    return w - 0.1 * jax.grad(loss)(w)


def stacked(w, x):
    def cell(h, x):
        h = jnp.tanh(h @ w + x)
        return h, jnp.tanh(h * 2)

    return lax.scan(cell, jnp.zeros(x.shape[1:]), x)


def fitted(step, arguments, memory):
    """What fits so much has the bits of what fits more, and what its report says of loops."""
    enough = baechi.jit(step, machine="host:1", **QUICK)(*arguments)
    tight = baechi.jit(step, machine="host:1", memory=memory, **QUICK)
    assert_same_bits(tight(*arguments), enough)
    return [line for line in tight.report().splitlines() if line.startswith("loops")]


def test_loops_are_written_out_where_whole_ones_do_not_fit():
    arguments = (drawn(64, 64), drawn(32, 64, 64), drawn(32, 64, 64))
    (told,) = fitted(recurrent, arguments, "2900KiB")
    assert "2 loops written out" in told and "whole without a plan" in told


def test_loops_stay_whole_where_written_out_ones_do_not_fit():
    (told,) = fitted(stacked, (drawn(64, 64), drawn(16, 64, 64)), "545KiB")
    assert "1 loop whole; written out, 144 operators: without a plan" in told


def products(x, w, v, order):
    h = jnp.tanh(jnp.einsum("mki,ij->mkj", x, w))
    g = jnp.tanh(jnp.einsum("mki,ij->mkj", x, v))
    return lax.dot_general(h, g, ((order, order), ((), ())))


def test_micro_batches_continue_sums_in_the_order_of_their_loops():
    arguments = (drawn(64, 61, 8), drawn(8, 128), drawn(8, 128))

    def step(x, w, v):
        return products(x, w, v, (0, 1))

    enough = baechi.jit(step, machine="host:1", **QUICK)
    expected = enough(*arguments)
    memory = enough.memory()["host0"].arena_bytes * 2 // 3
    tight = baechi.jit(step, machine="host:1", memory=memory, **QUICK)
    assert_same_bits(tight(*arguments), expected)
    assert "each sum adds the same terms in the same order" in tight.report()
    with pytest.raises(baechi.CompileError, match="may be added up in another order"):
        other = baechi.jit(
            lambda x, w, v: products(x, w, v, (1, 0)), machine="host:1", memory=memory, **QUICK
        )
        other(*arguments)


def test_checkpoints_are_kept_where_only_so_a_step_fits():
    def step(ws, x, y):
        def loss(ws):
            h = x
            for w in ws:
                h = jax.checkpoint(lambda h, w: jnp.tanh(jnp.tanh(h @ w) * 2) @ w)(h, w)
            return ((h - y) ** 2).mean()

        return [w - 0.1 * g for w, g in zip(ws, jax.grad(loss)(ws), strict=True)]

    arguments = ([drawn(128, 128) for _ in range(6)], drawn(2048, 128), drawn(2048, 128))
    options = {"machine": "host:2@11700KiB", "costs": "roofline", "fit_memory": "never"}
    found = baechi.jit(step, **options)(*arguments)
    assert_same_bits(found, baechi.jit(step, machine="host:1", **QUICK)(*arguments))


@pytest.mark.parametrize("splits", ["auto", "none"])
def test_what_was_made_to_fit_is_explained(splits):
    def loss(p, x, y):
        h = jax.nn.relu(jax.nn.relu(x @ p["a"]) @ p["b"])
        return ((h @ p["c"] - y) ** 2).mean()

    def step(p, x, y):
        return jax.tree.map(lambda p, g: p - 0.05 * g, p, jax.grad(loss)(p, x, y))

    p = {"a": drawn(128, 384), "b": drawn(384, 384), "c": drawn(384, 64)}
    compiled = baechi.jit(step, machine="host:1@2500KiB", splits=splits, **QUICK)
    compiled(p, drawn(256, 128), drawn(256, 64))
    assert "does not fit" in compiled.report()
    told = compiled.explain("*")
    assert "is on host0" in told or "what the memories hold" in told


def test_long_sums_over_turns_are_as_precise_as_jax():
    """All terms are positive: what is added to much is rounded to it."""
    v = np.random.default_rng(0).random((60, 500, 16), np.float32)

    def step(v):
        return lax.scan(lambda c, v: (c + v.T @ v, None), jnp.zeros((16, 16)), v)[0]

    wide = np.einsum("tki,tkj->ij", v.astype(np.float64), v.astype(np.float64))
    results = []
    for unroll in ("always", "never"):
        found = np.asarray(baechi.jit(step, machine="host:2", unroll=unroll, **QUICK)(v))
        np.testing.assert_allclose(found, wide, rtol=2e-6)
        results.append(found)
    assert_same_bits(*results)
