# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of `jax.shard_map` and `jax.pmap`: compared with JAX's own of the same program, which
another process computes on devices of XLA's, and bit for bit with the same replicas on one
device."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import baechi
from baechi.importer.common.errors import ImportFailure
from baechi.importer.jax import replicas
from written_steps import STEPS, Step, abstract_mesh, run
from written_training import REPLICAS, loss_of, sgd, updated

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0"}
HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def of_jax(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What JAX computes of the steps, with a device for each replica."""
    file = tmp_path_factory.mktemp("jax") / "results.npz"
    subprocess.run([sys.executable, str(HERE / "written_steps.py"), str(file)], check=True)
    with np.load(file) as results:
        return dict(results)


def _mesh(step: Step) -> AbstractMesh:
    return abstract_mesh(step.axes)


def _compiled(step: Step, **options: Any) -> Any:
    donated = (0,) if step.carried else ()
    made = step.make(_mesh(step))
    return baechi.jit(made, donate_argnums=donated, **OPTIONS | options)


@pytest.mark.parametrize("name", STEPS)
def test_results_are_jaxs(name: str, of_jax: dict[str, np.ndarray]) -> None:
    step = STEPS[name]
    found = run(step, _compiled(step, machine="host:2"))
    assert len(found) == sum(key.startswith(f"{name}/") for key in of_jax)
    for number, value in enumerate(map(np.asarray, found)):
        expected = of_jax[f"{name}/{number}"]
        assert value.shape == expected.shape and value.dtype == expected.dtype
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)


def test_results_are_those_of_a_mapped_step() -> None:
    """`jax.vmap` with the axis's name is the same mathematics on one device."""
    params, x, y = STEPS["sgd"].args

    def replica(params: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        return updated(params, lax.pmean(gradients, "batch")), lax.pmean(loss, "batch")

    parts = x.reshape(REPLICAS, -1, 16), y.reshape(REPLICAS, -1)
    mapped = jax.vmap(replica, in_axes=(None, 0, 0), axis_name="batch")(params, *parts)
    found = _compiled(STEPS["sgd"]._replace(carried=0), machine="host:2")(params, x, y)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(mapped), strict=True):
        np.testing.assert_allclose(a, b[0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "gradient outside", "sharded update", "contrastive"])
def test_bits_are_those_of_one_device(name: str) -> None:
    step = STEPS[name]
    alone = run(step, _compiled(step, machine="host:1"))
    for machine in ("host:2", "host:4"):
        for a, b in zip(alone, run(step, _compiled(step, machine=machine)), strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("exchange", ["fifo", "slices", "tictac", "p3"])
def test_exchanges_give_the_same_bits(exchange: str) -> None:
    step = STEPS["sgd"]
    alone = run(step, _compiled(step, machine="host:1"))
    compiled = _compiled(step, machine="host:2", replicas=REPLICAS, exchange=exchange)
    for a, b in zip(alone, run(step, compiled), strict=True):
        assert np.array_equal(a, b)
    assert "exchange" in compiled.report()


def test_replicas_have_devices_and_parameters_owners() -> None:
    """As those of `replicas=`: parts of the batch are where they are read, each replica's
    products on one device, parameters divided."""
    step = STEPS["sgd"]
    compiled = _compiled(step, machine="host:4")
    run(step, compiled)
    placement = compiled.placement
    pieces = [placement[f"x.piece{i}"] for i in range(REPLICAS)]
    assert pieces == ["host0", "host1", "host2", "host3"]
    owners = {placement[f"params/{name}"] for name in ("in", "bias", "out")}
    assert len(owners) == 3


@pytest.mark.parametrize("name", ["tensor parallel", "pieces of two", "two axes"])
def test_replicas_of_several_axes_have_devices(name: str, of_jax: dict[str, np.ndarray]) -> None:
    """One for each pair of rows and columns, though no argument is cut in four."""
    step = STEPS[name]
    compiled = _compiled(step, machine="host:4")
    found = run(step, compiled)
    for number, value in enumerate(map(np.asarray, found)):
        expected = of_jax[f"{name}/{number}"]
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)
    for a, b in zip(found, run(step, _compiled(step, machine="host:1")), strict=True):
        assert np.array_equal(a, b)
    products = {device for op, device in compiled.placement.items() if "dot_general" in op}
    assert products == {"host0", "host1", "host2", "host3"}


def test_what_is_done_before_a_batch_is_cut_is_done_to_parts() -> None:
    mesh = abstract_mesh({"batch": 2})
    mapped = jax.shard_map(
        lambda x: lax.psum(x.T @ x, "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
    )
    x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    step = baechi.jit(lambda x: mapped((x - 1) / 2), machine="host:2", **OPTIONS)
    scaled = (x - 1) / 2
    np.testing.assert_allclose(step(x), scaled.T @ scaled, rtol=1e-5)
    assert [step.placement[f"x.piece{i}"] for i in range(2)] == ["host0", "host1"]


@pytest.mark.parametrize("is_cut", [True, False])
def test_long_chains_before_a_batch_is_cut(is_cut: bool) -> None:
    mesh = abstract_mesh({"batch": 2})
    mapped = jax.shard_map(
        lambda x: lax.psum(x.sum(), "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
    )

    def step(shift: Any, x: Any) -> Any:
        chain = x
        for _ in range(600):
            chain = chain / 2 + shift
        return mapped(chain if is_cut else x), chain

    compiled = baechi.jit(step, machine="host:2", **OPTIONS)
    total, chain = compiled(np.float32(2), np.arange(4, dtype=np.float32))
    assert np.asarray(chain).tolist() == [4] * 4  # it halves how far it is from there
    assert total == (16 if is_cut else 6)


def test_what_a_batch_is_scaled_by_is_not_cut() -> None:
    mesh = abstract_mesh({"batch": 2})
    mapped = jax.shard_map(
        lambda x: lax.psum(x.sum(), "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
    )
    args = jnp.float32(3), jnp.arange(4.0)
    closed = jax.make_jaxpr(lambda scale, x: mapped(scale * x))(*args)
    unrolled = replicas.Unrolled(closed)
    jax.eval_shape(unrolled, *args)
    assert unrolled.batched == {1: [[0b01, 0b10]]}


def test_sums_are_those_of_replicas_in_pairs() -> None:
    """In the replicas' order, whatever it is that they add: bit for bit."""
    random = np.random.default_rng(5)
    x = (random.normal(size=(4, 1000)) * 10.0 ** random.integers(-8, 8, (4, 1000))).astype(
        np.float32
    )
    mesh = abstract_mesh({"batch": 4})
    step = jax.shard_map(
        lambda x: lax.psum(x[0], "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
    )
    found = baechi.jit(step, machine="host:4", **OPTIONS)(x)
    assert np.array_equal(found, (x[0] + x[1]) + (x[2] + x[3]))


_PMAP = """
import jax, numpy as np
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
import baechi
from baechi.importer.common.errors import ImportFailure
from baechi.importer.jax import replicas
from jax import lax
from written_training import batch, loss_of, parameters, updated

def step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return updated(params, lax.pmean(gradients, "batch")), lax.pmean(loss, "batch")

def train(step, stacked):
    x, y = batch()
    params = parameters()
    if stacked:
        params = jax.tree.map(lambda p: np.stack([p, p]), params)
    for _ in range(3):
        params, loss = step(params, x.reshape(2, 16, 16), y.reshape(2, 16))
        if not stacked:
            params = jax.tree.map(lambda p: p[0], params)
    return jax.tree.leaves((params, loss))

for axes in (0, (None, 0, 0)):
    mapped = jax.pmap(step, axis_name="batch", in_axes=axes)
    donated = (0,) if axes == 0 else ()
    ours = baechi.jit(mapped, machine="host:2", donate_argnums=donated, costs="roofline",
                      budget="0")
    for a, b in zip(train(ours, axes == 0), train(mapped, axes == 0), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)
    if axes == 0:
        owners = [ours.placement[f"params/in.piece{i}"] for i in range(2)]
        assert owners == ["host0", "host1"], owners
print("equal")
"""


def test_the_largest_of_nan_is_nan() -> None:
    mesh = abstract_mesh({"batch": REPLICAS})
    step = jax.shard_map(
        lambda x: (lax.pmax(x, "batch"), lax.pmin(x, "batch")),
        mesh=mesh,
        in_specs=P("batch"),
        out_specs=P(),
    )
    x = np.float32([1, np.nan, 3, 2])
    largest, least = baechi.jit(step, machine="host:2", **OPTIONS)(x)
    assert np.isnan(largest).all() and np.isnan(least).all()


def test_pmap_is_taken() -> None:
    """With parameters that are stacked for each replica, and with those that all share."""
    done = subprocess.run(
        [sys.executable, "-c", _PMAP], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith("equal"), done.stderr[-3000:]


@pytest.mark.parametrize(
    "model",
    ["mlp", "lstm", *(pytest.param(m, marks=pytest.mark.nightly) for m in ("resnet", "moe"))],
)
def test_models_are_jaxs(model: str) -> None:
    """With gradients that JAX's types of values make those of all replicas."""
    program = [sys.executable, "written_models.py", model]
    done = subprocess.run(program, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    assert float(done.stdout.split()[-1]) < 1e-5


def test_calls_are_checked() -> None:
    step = STEPS["sgd"]
    run(step, _compiled(step, machine="host:2", check="first"))


def test_a_step_is_lowered_ahead() -> None:
    step = STEPS["norm of all"]
    lowered = baechi.jit(step.make(_mesh(step)), machine="host:2", **OPTIONS).lower(*step.args)
    assert "baechi.replicas = 4" in lowered.as_text()
    found = lowered.compile()(*step.args)
    expected = _compiled(step._replace(carried=0), machine="host:1")(*step.args)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.array_equal(a, b)


def _refused(step: Any, *args: Any) -> str:
    with pytest.raises(ImportFailure) as raised:
        baechi.jit(step, machine="host:2", **OPTIONS)(*args)
    return str(raised.value)


def _mapped(step: Any, out: Any = P("batch")) -> Any:
    mesh = abstract_mesh({"batch": 2})
    return jax.shard_map(step, mesh=mesh, in_specs=P("batch"), out_specs=out, check_vma=False)


X = np.ones((4, 4), np.float32)


def test_replicas_that_disagree_are_refused() -> None:
    told = _refused(_mapped(lambda x: jnp.tanh(x).sum(), out=P()), X)
    assert re.search(r"test_written_replicas.py:\d+:\d+: reduce_sum in 'reduce_sum'", told)
    assert "out_specs leave 'batch' out" in told and "lax.pmean" in told


def test_loops_that_part_are_refused() -> None:
    def step(x: Any) -> Any:
        return lax.while_loop(lambda x: x.sum() > 0, lambda x: x - lax.psum(jnp.abs(x), "batch"), x)

    told = _refused(_mapped(step), X)
    assert re.search(r"test_written_replicas.py:\d+:\d+: while in 'while'", told)
    assert "make the condition of what lax.psum or lax.pmax gives" in told

    def branches(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda x: lax.psum(x, "batch"), lambda x: x, x)

    told = _refused(_mapped(branches), X)
    assert "its branch is another for each replica" in told


def test_what_has_no_rule_is_refused() -> None:
    def ragged(x: Any) -> Any:
        sizes = jnp.ones(2, jnp.int32)
        return lax.ragged_all_to_all(x, x, sizes, sizes, sizes, sizes, axis_name="batch")

    told = _refused(_mapped(ragged), X)
    found = r"test_written_replicas.py:\d+:\d+: ragged_all_to_all in 'ragged_all_to_all'"
    assert re.search(found, told) and "psum, pmean" in told


@pytest.mark.parametrize(
    "exchange, words",
    [
        (lambda x: lax.ppermute(x, "batch", [(0, 9)]), "names 9, and 4 are along its axes"),
        (lambda x: lax.ppermute(x, "batch", [(0, 1), (2, 1)]), "a source or a target twice"),
        (
            lambda x: lax.pmax(x, "batch", axis_index_groups=[[0, 1]]),
            "axis_index_groups leave replicas out",
        ),
    ],
)
def test_exchanges_of_another_number_are_refused(exchange: Any, words: str) -> None:
    mesh = abstract_mesh({"batch": REPLICAS})
    step = jax.shard_map(
        exchange, mesh=mesh, in_specs=P("batch"), out_specs=P("batch"), check_vma=False
    )
    with pytest.raises(ImportFailure, match=words):
        baechi.jit(step, machine="host:2", **OPTIONS)(np.zeros(8, np.float32))


def test_one_shard_map_within_another_is_refused() -> None:
    mesh = abstract_mesh({"rows": 2, "columns": 2})

    def inner(x: Any) -> Any:
        return jax.shard_map(
            lambda x: lax.psum(x, "columns"),
            axis_names={"columns"},
            in_specs=P("columns"),
            out_specs=P(),
        )(x)

    outer = jax.shard_map(
        inner, mesh=mesh, axis_names={"rows"}, in_specs=P("rows"), out_specs=P("rows")
    )
    told = _refused(outer, X)
    assert "shard_map in 'shard_map': it is within another: give one all of the axes" in told


def _means(count: int) -> Any:
    mesh = abstract_mesh({"batch": count})
    return jax.shard_map(
        lambda x: lax.pmean(x.sum(), "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
    )


def test_there_are_no_more_replicas_than_a_step_can_have() -> None:
    x = np.arange(64 * 65, dtype=np.float32)
    assert baechi.jit(_means(64), machine="host:2", **OPTIONS)(x) == x.sum() / 64
    told = _refused(_means(65), x)
    assert "test_written_replicas.py:" in told
    assert "it is of 65 replicas, and a step can have 1 to 64: give its mesh fewer" in told
    # What nobody cuts along makes no replicas.
    mesh = abstract_mesh({"batch": 2, "others": 40})
    mapped = jax.shard_map(
        lambda x: lax.psum(x.sum(), "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
    )
    assert baechi.jit(mapped, machine="host:2", **OPTIONS)(x) == x.sum()


def test_an_axis_that_nobody_has_is_told() -> None:
    told = _refused(lambda x: lax.psum(x, "batch"), X)
    assert "unbound axis name: batch" in told and "test_written_replicas.py:" in told
    assert "jax.shard_map(step, mesh=jax.sharding.AbstractMesh((N,), ('batch',))" in told


def test_pmap_without_devices_is_told() -> None:
    mapped = jax.pmap(lambda x: lax.psum(x, "batch"), axis_name="batch")
    with pytest.raises(ValueError) as raised:
        baechi.jit(mapped, machine="host:2", **OPTIONS)(X)
    note = "\n".join(raised.value.__notes__)
    assert "of jax.pmap: it needs a device of JAX's for each replica, and JAX has 1;" in note
    assert "jax_num_cpu_devices" in note


def test_another_number_of_replicas_is_refused() -> None:
    step = sgd(abstract_mesh({"batch": 4}))
    with pytest.raises(ValueError, match="replicas is 2, and the step is written for 4"):
        baechi.jit(step, machine="host:2", replicas=2, **OPTIONS)(*STEPS["sgd"].args)
