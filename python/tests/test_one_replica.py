# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that are what one replica computes, with `axis_name=` and `in_axes=`: compared with
`jax.vmap` of the same function with the axis's name, and bit for bit with the same replicas of
`jax.shard_map`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import baechi
from baechi.importer.common.errors import ImportFailure
from written_steps import abstract_mesh, batch, loss_of, parameters, updated

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0"}
REPLICAS = 4


def train(params: Any, x: Any, y: Any) -> Any:
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return updated(params, lax.pmean(gradients, "batch")), lax.pmean(loss, "batch"), x.sum(1)


def _of_all(step: Any, **options: Any) -> Any:
    given = {"replicas": REPLICAS, "axis_name": "batch", "in_axes": (None, 0, 0)}
    return baechi.jit(step, **{"machine": "host:2", **given, **OPTIONS, **options})


def _run(step: Any) -> list[np.ndarray]:
    params, (x, y) = parameters(), batch()
    for _ in range(3):
        params, loss, sums = step(params, x, y)
    return [np.asarray(leaf) for leaf in jax.tree.leaves((params, loss, sums))]


def _mapped(params: Any, x: Any, y: Any) -> Any:
    """JAX's own: what all have is that of any, and what differs lies one after the other."""
    parts = x.reshape(REPLICAS, -1, 16), y.reshape(REPLICAS, -1)
    step = jax.vmap(train, in_axes=(None, 0, 0), axis_name="batch")
    params, loss, sums = step(params, *parts)
    return jax.tree.map(lambda p: p[0], params), loss[0], sums.reshape(-1)


def test_results_are_those_of_a_mapped_step() -> None:
    for a, b in zip(_run(_of_all(train, donate_argnums=0)), _run(_mapped), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("machine", ["host:1", "host:2", "host:4"])
def test_bits_are_those_of_shard_map(machine: str) -> None:
    cut = P("batch")
    mapped = functools.partial(jax.shard_map, mesh=abstract_mesh({"batch": REPLICAS}))
    same = mapped(train, in_specs=(P(), cut, cut), out_specs=(P(), P(), cut), check_vma=False)
    expected = _run(baechi.jit(same, machine="host:1", donate_argnums=0, **OPTIONS))
    step = _of_all(train, machine=machine, donate_argnums=0, exchange="p3", check="first")
    for a, b in zip(_run(step), expected, strict=True):
        assert np.array_equal(a, b)
    assert len({step.placement[f"x.piece{i}"] for i in range(REPLICAS)}) == int(machine[-1])


def test_axes_are_those_of_trees_dimensions_and_keywords() -> None:
    def step(given: Any, scale: float, power: int, *, rows: Any) -> Any:
        own = given["columns"].sum(0) * scale + rows.sum() ** power
        return {"own": own[None], "sum": lax.psum((own * given["w"]).sum(), "batch")}

    random = np.random.default_rng(2)
    given = {
        "columns": random.normal(size=(3, 8)).astype(np.float32),
        "w": random.normal(size=(2,)).astype(np.float32),
    }
    rows = random.normal(size=(4,)).astype(np.float32)
    axes = ({"columns": -1, "w": None}, None, None)
    found = _of_all(step, in_axes=axes, static_argnums=2)(given, 0.5, 2, rows=rows)
    parts = np.stack(np.split(given["columns"], REPLICAS, axis=1))
    of_each = jax.vmap(
        lambda columns, rows: step({**given, "columns": columns}, 0.5, 2, rows=rows),
        axis_name="batch",
    )(parts, rows.reshape(REPLICAS, 1))
    np.testing.assert_allclose(found["own"], of_each["own"].reshape(REPLICAS, -1), rtol=1e-5)
    np.testing.assert_allclose(found["sum"], of_each["sum"][0], rtol=1e-5)


@pytest.mark.parametrize(
    "axes",
    [
        (None, 0),
        (None, {"x": 0, "mask": None}),
        ({"w": None, "b": 0}, {"x": 0, "mask": 0}),
        [{"w": None, "b": None}, 0],
    ],
)
def test_none_is_no_array_to_cut(axes: Any) -> None:
    def step(params: Any, data: Any, *, scale: Any) -> Any:
        assert params["b"] is None and data["mask"] is None and scale is None
        return lax.pmean((params["w"] * data["x"]).sum(), "batch"), data

    given = {"w": np.float32(3), "b": None}, {"x": np.arange(8, dtype=np.float32), "mask": None}
    mean, data = _of_all(step, in_axes=axes)(*given, scale=None)
    parts = {"x": given[1]["x"].reshape(REPLICAS, -1), "mask": None}
    expected, _ = jax.vmap(step, in_axes=axes, axis_name="batch")(given[0], parts, scale=None)
    assert mean == expected[0]
    assert data["mask"] is None and np.array_equal(data["x"], given[1]["x"])


def test_a_step_that_exchanges_nothing_is_taken() -> None:
    x = np.arange(8, dtype=np.float32)
    step = _of_all(lambda x, w: (jnp.cumsum(x) * w, w + 1), in_axes=(0, None))
    sums, more = step(x, 2.0)
    assert np.array_equal(sums, 2 * np.cumsum(x.reshape(REPLICAS, -1), axis=1).reshape(-1))
    assert more == 3.0


def test_a_step_is_lowered_ahead() -> None:
    lowered = _of_all(train).lower(parameters(), *batch())
    assert f"baechi.replicas = {REPLICAS}" in lowered.as_text()


def test_what_is_not_given_together_is_refused() -> None:
    told = "given together, for a step that is what one replica computes: replicas=2, axis_name="
    for some in (
        {"axis_name": "batch", "replicas": 2},
        {"in_axes": 0, "replicas": 2},
        {"axis_name": "batch", "in_axes": 0},
    ):
        with pytest.raises(ValueError, match=told):
            baechi.jit(train, **some)
    with pytest.raises(TypeError, match="give the name that lax.psum has"):
        baechi.jit(train, replicas=2, axis_name=0, in_axes=0)  # type: ignore[call-overload]


def test_a_loss_that_differs_is_refused() -> None:
    def forgotten(params: Any, x: Any, y: Any) -> Any:
        return {"losses": (jnp.float32(1), loss_of(params, x, y))}

    with pytest.raises(ImportFailure) as raised:
        _of_all(forgotten)(parameters(), *batch())
    told = str(raised.value)
    assert "result['losses'][1] differs between replicas and has no dimension" in told
    assert "lax.pmean(…, 'batch')" in told


@pytest.mark.parametrize(
    "axes, words",
    [
        ((None, 0), "in_axes has 2 entries, and the step is called with 3 arguments"),
        ((None, 1, 0), r"of shape \(32, 16\) along dimension 1 in 3 parts of one size"),
        ((None, 0, 1), r"of shape \(32,\) along dimension 1 in"),
        (({"in": 0}, 0, 0), "has not the structure of the arguments"),
    ],
)
def test_axes_that_do_not_fit_are_refused(axes: Any, words: str) -> None:
    count = 3 if axes == (None, 1, 0) else REPLICAS
    with pytest.raises(ValueError, match=words):
        _of_all(train, in_axes=axes, replicas=count)(parameters(), *batch())


@pytest.mark.parametrize("axis", ["batch", 0.0, True])
def test_axes_are_numbers(axis: Any) -> None:
    with pytest.raises(TypeError, match=f"in_axes has {axis!r}: give the number of the dimension"):
        _of_all(train, in_axes=(None, axis, 0))(parameters(), *batch())


def test_an_axis_without_replicas_is_told() -> None:
    with pytest.raises(ImportFailure, match="replicas=N, axis_name='batch' and in_axes="):
        baechi.jit(train, machine="host:2", **OPTIONS)(parameters(), *batch())


def test_an_axis_of_a_vmap_within_is_a_dimension() -> None:
    def rows(x: Any) -> Any:
        return jax.vmap(lambda row: lax.psum(row, "row") * 2, axis_name="row")(x)

    x = batch()[0]
    found = baechi.jit(rows, machine="host:2", replicas=2, axis_name="batch", in_axes=0, **OPTIONS)
    expected = np.concatenate([rows(part) for part in np.split(np.asarray(x), 2)])
    np.testing.assert_allclose(found(x), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("inner", ["shard_map", "shard_map of the same axis", "pmap"])
def test_other_replicas_within_are_refused(inner: str) -> None:
    axis = "batch" if inner.endswith("same axis") else "other"

    def total(x: Any) -> Any:
        return lax.psum(x, axis)

    def step(x: Any) -> Any:
        if inner == "pmap":
            return jax.pmap(total, axis_name=axis)(x[:1])
        mesh = abstract_mesh({axis: 2})
        return jax.shard_map(total, mesh=mesh, in_specs=P(axis), out_specs=P())(x)

    of_all = baechi.jit(step, machine="host:2", replicas=2, axis_name="batch", in_axes=0, **OPTIONS)
    words = r"test_one_replica.py:\d+: a jax.shard_map or jax.pmap .* within another"
    with pytest.raises(ImportFailure, match=words):
        of_all(batch()[0])
