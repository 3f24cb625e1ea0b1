# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and results that are stored in pieces, compared with `jax.jit` and with the whole."""

import json
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402
import native  # noqa: E402
import needs  # noqa: E402
from baechi.compiling import tools  # noqa: E402
from test_splits import QUICK, drawn  # noqa: E402

pytestmark = needs.tool("baechi-run")


def bits(tree):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def close(found, expected, relative=2e-6):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = float(np.max(np.abs(np.asarray(b, np.float64)), initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=relative * scale)


def train(state, x, y):
    """A step of Adam on two layers."""

    def loss(p):
        return ((jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] - y) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(state["p"])
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["v"], gradients)
    p = jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-2), state["p"], m, v)
    return {"p": p, "m": m, "v": v}, value


def wide(inputs=64, hidden=8192, outputs=8, batch=32):
    p = {
        "w1": drawn(inputs, hidden) * 0.1,
        "b1": drawn(hidden) * 0.1,
        "w2": drawn(hidden, outputs) * 0.1,
    }
    zeros = jax.tree.map(np.zeros_like, p)
    return {"p": p, "m": zeros, "v": zeros}, drawn(batch, inputs), drawn(batch, outputs)


COLUMNS = {"state/p/w1": (1, 2)}


def steps(compiled, state, x, y, count=3):
    losses = []
    for _ in range(count):
        state, loss = compiled(state, x, y)
        losses.append(np.asarray(loss))
    return state, losses


def test_weights_that_no_device_can_hold_are_trained_in_pieces():
    state, x, y = wide()
    # The first layer's weight and its moments alone are 6 MiB.
    machine = "host:2@5MiB"
    options = {"fit_memory": "whole", "splits": "none", **QUICK}
    with pytest.raises(baechi.CompileError, match="fit"):
        whole = baechi.jit(train, donate_argnums=0, machine=machine, **options)
        whole(state, x, y)
    options = {"splits": "exact", **QUICK}
    alone = baechi.jit(train, donate_argnums=0, machine="host:1@64MiB", **options)
    expected = steps(alone, state, x, y)
    for asked in ({"split": COLUMNS}, {}):  # The compiler finds them by itself, too.
        cut = baechi.jit(train, donate_argnums=0, machine=machine, **asked, **options)
        found = steps(cut, state, x, y)
        assert bits(found) == bits(expected)
    close(found, steps(jax.jit(train), state, x, y), relative=1e-5)


def test_features_are_cut_where_weights_are_larger_than_the_batch():
    state, x, y = wide()
    cut = baechi.jit(train, donate_argnums=0, machine="host:2", splits="any", **QUICK)
    found = steps(cut, state, x, y)
    close(found, steps(jax.jit(train), state, x, y), relative=1e-5)
    for weight in ("p/w1", "m/w1", "v/w1", "p/b1", "p/w2", "m/w2", "v/w2"):
        assert pieces_of(cut, f"state/{weight}") == {"host0", "host1"}


def pieces_of(compiled, name):
    return {at for place, at in compiled.placement.items() if place.startswith(f"{name}.piece")}


def test_each_piece_lies_where_it_is_read():
    state, x, y = wide(hidden=4096)
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (state, x, y))
    compiled = (
        baechi.jit(train, donate_argnums=0, machine="host:2", split=COLUMNS, **QUICK)
        .lower(*shapes)
        .compile()
    )
    for part in ("p", "m", "v"):
        for weight in ("w1", "b1"):
            assert pieces_of(compiled, f"state/{part}/{weight}") == {"host0", "host1"}
    # The second layer's products sum over what is cut, and sums are whole.
    assert pieces_of(compiled, "state/p/w2") == set()
    assert compiled.placement["state/p/w2"] in ("host0", "host1")
    assert "stored in pieces" in compiled.report()
    assert "stored whole: " in compiled.report()
    resident = [compiled.memory()[device].resident_bytes for device in ("host0", "host1")]
    arguments = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves((state, x, y)))
    assert sum(resident) >= arguments and max(resident) < 0.7 * arguments


def test_rows_follow_columns_where_sums_may_be_cut():
    state, x, y = wide(hidden=512)
    options = {"splits": "any", "split": COLUMNS, **QUICK}
    cut = baechi.jit(train, donate_argnums=0, machine="host:2", **options)
    found = steps(cut, state, x, y)
    close(found, steps(jax.jit(train), state, x, y), relative=1e-5)
    assert pieces_of(cut, "state/p/w2") == {"host0", "host1"}


CASES = [
    ("bool", (7, 5), 1, 2),
    ("int8", (7, 5), 0, 3),
    ("int16", (3, 4, 9), 2, 4),
    ("int32", (5,), 0, 2),
    ("bfloat16", (3, 4, 9), 1, 3),
    ("float16", (7, 5), 1, 2),
    ("float32", (1, 9, 1), 1, 4),
]


def step_of_all(a, b, unused, scalar):
    """Elements are only moved, or computed with exactly."""
    other = jnp.logical_not(a) if a.dtype == bool else a + a
    return other, a, scalar, b[::-1], unused


@pytest.mark.parametrize("dtype, shape, dim, pieces", CASES)
def test_all_types_and_sizes_are_the_callers(dtype, shape, dim, pieces):
    random = np.random.default_rng(3)
    a, b, c = (
        jnp.asarray(random.integers(0, 2 if dtype == "bool" else 9, shape)).astype(dtype)
        for _ in range(3)
    )
    arguments = (a, b, c, jnp.asarray(1).astype(dtype))
    cut = baechi.jit(step_of_all, machine="host:3", split={"a": (dim, pieces)}, **QUICK)
    assert bits(cut(*arguments)) == bits(jax.jit(step_of_all)(*arguments))
    assert len([name for name in cut.placement if name.startswith("a.piece")]) == pieces


def swapped(a, b, c):
    return b * 2, a, c + b


@pytest.mark.parametrize("donate", [(), (0, 1), (0, 1, 2)])
def test_donated_arguments_that_become_each_other(donate):
    arguments = drawn(6, 5), drawn(6, 5), drawn(6, 5)
    cut = baechi.jit(swapped, donate_argnums=donate, machine="host:2", splits="forced:2", **QUICK)
    whole = jax.jit(swapped)
    found = expected = arguments
    for _ in range(3):
        found, expected = cut(*found), whole(*expected)
        assert bits(found) == bits(expected)


def test_a_saved_step_takes_and_gives_wholes(tmp_path):
    state, x, y = wide(hidden=512)
    cut = baechi.jit(train, donate_argnums=0, machine="host:2", split=COLUMNS, **QUICK)
    expected = steps(cut, state, x, y)
    cut.lower(state, x, y).compile().save(tmp_path / "train.baechi-step")
    loaded = baechi.load_step(tmp_path / "train.baechi-step")
    assert bits(steps(loaded, state, x, y)) == bits(expected)
    assert pieces_of(loaded, "state/p/w1") == {"host0", "host1"}


def test_files_have_wholes(tmp_path):
    module = tmp_path / "step.mlir"
    module.write_text(
        """
func.func @step(%w: tensor<6x7xf32> {baechi.name = "w", baechi.updated_by = 0 : i64},
                %x: tensor<6x7xf32>) -> (tensor<6x7xf32>, tensor<6x7xf32> {baechi.name = "y"}) {
  %n = arith.addf %w, %x : tensor<6x7xf32>
  %y = arith.mulf %n, %n : tensor<6x7xf32>
  return %n, %y : tensor<6x7xf32>, tensor<6x7xf32>
}
"""
    )
    w, x = drawn(6, 7), drawn(6, 7)
    np.savez(tmp_path / "in.npz", w=w, arg1=x)
    told = native.run(
        tools.find("baechi-run"), module, "--machine=host:2", "--costs=roofline", "--budget=0",
        "--split=w=1:3", f"--inputs={tmp_path / 'in.npz'}", f"--outputs={tmp_path / 'out.npz'}",
        "--steps=2", "--check-single", f"--json={tmp_path / 'report.json'}",
        f"--html={tmp_path / 'page.html'}",
    )  # fmt: skip
    assert "equal the single device's, bit for bit" in told
    assert re.search(r"2 arguments of 336\S* B and 2 results stored in pieces", told)
    found = np.load(tmp_path / "out.npz")
    assert found["out0"].tobytes() == (w + x + x).tobytes()
    assert found["out1"].tobytes() == ((w + x + x) ** 2).tobytes()
    stored = json.loads((tmp_path / "report.json").read_text())["pieces"]["stored"]
    assert stored == {"arguments": 2, "bytes": 336, "results": 2, "whole": []}
