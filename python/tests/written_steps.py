# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that are written for replicas, for tests; as a program, what JAX computes of them on
devices of its own:

    python written_steps.py FILE.npz
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from written_training import (
    REPLICAS,
    batch,
    contrastive,
    dropout,
    loss_of,
    momentum,
    norm,
    outside,
    parameters,
    scaled,
    sgd,
    sharded_update,
    updated,
)

AXES = {"batch": 4}
ASKS_FOR_ORDER = "jax_raise_on_ppermute_sort_diff"
TWO_AXES = {"rows": 2, "columns": 2}


def auto(axes: dict[str, int]) -> tuple[Any, ...]:
    """Since JAX 0.10 axes are explicit where nothing is said: values would have their shardings."""
    return (jax.sharding.AxisType.Auto,) * len(axes)


def abstract_mesh(axes: dict[str, int]) -> Any:
    return jax.sharding.AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=auto(axes))


class Step(NamedTuple):
    """make: the step, of a mesh; carried: how many of its first arguments it returns anew."""

    make: Callable[[Any], Callable[..., Any]]
    args: tuple[Any, ...]
    carried: int = 0
    axes: dict[str, int] = AXES


def collectives(mesh: Any) -> Callable[..., Any]:
    """Each one, and with groups."""

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=P("batch"), out_specs=P("batch"), check_vma=False
    )
    def step(x: Any) -> Any:
        own = x * (1 + lax.axis_index("batch"))
        pairs = [[0, 2], [1, 3]]
        return {
            "psum": lax.psum(own, "batch"),
            "psum of integers": lax.psum(own.astype(jnp.int32), "batch"),
            "psum of pairs": lax.psum(own, "batch", axis_index_groups=pairs),
            "pmean": lax.pmean(own, "batch"),
            "pmax": lax.pmax(own, "batch"),
            "pmin": lax.pmin(own, "batch"),
            "all_gather": lax.all_gather(own, "batch"),
            "all_gather along 1": lax.all_gather(own, "batch", axis=1, tiled=True),
            "all_gather of pairs": lax.all_gather(own, "batch", axis_index_groups=pairs),
            "psum_scatter": lax.psum_scatter(own.T, "batch", tiled=True),
            "psum_scatter of one": lax.psum_scatter(own[:4], "batch"),
            "all_to_all": lax.all_to_all(own, "batch", 0, 1, tiled=True),
            "all_to_all of one": lax.all_to_all(own[:4], "batch", 0, 1),
            "ppermute": lax.ppermute(own, "batch", [(0, 1), (1, 2), (3, 0)]),
            "size": own / lax.psum(1, "batch"),
        }

    return step


def loops(mesh: Any) -> Callable[..., Any]:
    """Collectives in a loop, a loop of each replica's own length, and a branch."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("batch")),
        out_specs=(P(), P("batch"), P("batch"), P("batch")),
        check_vma=False,
    )
    def step(w: Any, x: Any) -> Any:
        def turn(w: Any, rate: Any) -> Any:
            return w - rate * lax.pmean(jnp.tanh(x @ w).mean() * w, "batch"), jnp.sum(x @ w)

        w, sums = lax.scan(turn, w, jnp.array([0.1, 0.2, 0.3]))
        halved = lax.while_loop(lambda x: jnp.abs(x).max() > 0.5, lambda x: x / 2, x)
        whole = lax.psum(x.sum(), "batch")
        y = lax.cond(whole > 0, lambda x: lax.psum(x, "batch"), lambda x: x * 2, x)
        return w, sums[None], halved, lax.cond(x.sum() > 0, lambda y: y, lambda y: -y, y)

    return step


def turns(mesh: Any) -> Callable[..., Any]:
    """Several updates of each replica's parts, one after the other, with what they exchange: a
    loop where they are many. Values of the turns in both orders."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P(None, "batch"), P(None, "batch")),
        out_specs=(P(), P(), P("batch")),
        check_vma=False,
    )
    def step(params: Any, x: Any, y: Any) -> Any:
        def turn(params: Any, part: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(params, *part)
            params = updated(params, lax.pmean(gradients, "batch"))
            return params, (lax.pmean(loss, "batch"), loss)

        def back(total: Any, losses: Any) -> Any:
            return 0.5 * total + lax.psum(losses[1], "batch"), total

        params, losses = lax.scan(turn, params, (x, y))
        total, sums = lax.scan(back, jnp.float32(0), losses, reverse=True)
        return params, losses[0] + total, jnp.stack([sums, losses[1]])[None]

    return step


def in_turns(length: int) -> tuple[Any, Any]:
    random = np.random.default_rng(length)
    x = random.normal(size=(length, 8, 16)).astype(np.float32)
    return x, random.integers(0, 8, (length, 8)).astype(np.int32)


def several_steps(mesh: Any) -> Callable[..., Any]:
    """A training loop over batches, whose step is written for replicas."""
    one = sgd(mesh)

    def steps(params: Any, x: Any, y: Any) -> Any:
        return lax.scan(lambda params, batch: one(params, *batch), params, (x / 2, y))

    return steps


def pieces_of_two(mesh: Any) -> Callable[..., Any]:
    """A parameter that is cut along both axes, and a batch along one: gathered, and its
    gradient scattered."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P("rows", "columns"), P("rows")),
        out_specs=(P("rows", "columns"), P()),
        check_vma=False,
    )
    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            whole = lax.all_gather(w, "rows", tiled=True)
            return jnp.mean(jnp.tanh(x @ whole) ** 2)

        value, by_w = jax.value_and_grad(loss)(w)
        return w - 0.1 * by_w / 2, lax.pmean(value, ("rows", "columns"))

    return step


def around(mesh: Any) -> Callable[..., Any]:
    """Within a loop, vmap and checkpoint; the gradient is of the batch, too."""

    def mean(params: Any, x: Any, y: Any) -> Any:
        return lax.pmean(loss_of(params, x, y), "batch")

    def step(params: Any, x: Any, y: Any) -> Any:
        specs = (P(), P("batch"), P("batch"))
        of_replicas = jax.shard_map(mean, mesh=mesh, in_specs=specs, out_specs=P())

        def turn(params: Any, _: Any) -> Any:
            loss, gradients = jax.value_and_grad(jax.checkpoint(of_replicas))(params, x, y)
            return updated(params, gradients), loss

        params, losses = lax.scan(turn, params, None, length=2)
        both = jax.vmap(lambda scale: of_replicas(params, scale * x, y))(jnp.array([1.0, 2.0]))
        return params, losses, both, jax.grad(of_replicas, argnums=1)(params, x, y)

    return step


def mapped_within(mesh: Any) -> Callable[..., Any]:
    """Collectives along the axis of a `vmap` within, alone and together with the replicas'."""

    def row(x: Any) -> Any:
        mean = lax.pmean(x, "row")
        most = lax.pmax(lax.pmin(x, "row") + lax.axis_index("row"), ("batch", "row"))
        return x - mean, lax.psum(x * mean, ("batch", "row")) + most, lax.psum(x, "batch")

    def rows(x: Any) -> Any:
        return jax.vmap(row, axis_name="row")(x)

    specs = {"in_specs": P("batch"), "out_specs": P("batch"), "check_vma": False}
    return jax.shard_map(rows, mesh=mesh, **specs)


def two_axes(mesh: Any) -> Callable[..., Any]:
    """A product whose factors are cut along different axes."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P("rows", None), P(None, "columns")),
        out_specs=(P("rows", "columns"), P(), P("rows")),
    )
    def step(x: Any, w: Any) -> Any:
        y = x @ w
        return y, lax.psum(y.sum(), ("rows", "columns")), lax.psum(y, "columns")

    return step


def tensor_parallel(mesh: Any) -> Callable[..., Any]:
    """Layers cut along columns, the batch along rows: each collective is of one axis, and the
    results are of none."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(None, "columns"), P("columns", None), P("rows")),
        out_specs=(P(None, "columns"), P("columns", None), P()),
    )
    def step(w: Any, v: Any, x: Any) -> Any:
        def loss(w: Any, v: Any) -> Any:
            made = lax.psum(jnp.tanh(x @ w) @ v, "columns")
            return lax.pmean(jnp.mean(made**2), "rows")

        value, (by_w, by_v) = jax.value_and_grad(loss, (0, 1))(w, v)
        return w - 0.1 * by_w, v - 0.1 * by_v, value

    return step


def moved(mesh: Any) -> Callable[..., Any]:
    """A state that goes from replica to replica."""

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("batch"), out_specs=(P("batch"), P()))
    def step(state: Any) -> Any:
        ring = [(i, (i + 1) % REPLICAS) for i in range(REPLICAS)]
        return lax.ppermute(state * 0.9 + 1, "batch", ring), lax.psum(state.sum(), "batch")

    return step


def feedback(mesh: Any) -> Callable[..., Any]:
    """Gradients of one bit; what is left of them is each replica's own."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=((P(), P("batch")), P("batch")),
        out_specs=((P(), P("batch")), P()),
        check_vma=False,
    )
    def step(state: Any, x: Any) -> Any:
        w, left = state
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        gradient += left[0]
        sent = jnp.sign(gradient) * jnp.mean(jnp.abs(gradient))
        w = w - 0.1 * lax.pmean(sent, "batch")
        return (w, (gradient - sent)[None]), lax.pmean(loss, "batch")

    return step


def meshes(mesh: Any) -> Callable[..., Any]:
    """One value cut along meshes that number the same axes otherwise, or have fewer."""
    names = tuple(reversed(mesh.axis_names))
    if isinstance(mesh, jax.sharding.AbstractMesh):
        turned = abstract_mesh(dict(zip(names, mesh.axis_sizes, strict=True)))
    else:
        turned = jax.sharding.Mesh(mesh.devices, names)

    def numbered(x: Any) -> Any:
        return x * (1 + lax.axis_index("rows") + 3 * lax.axis_index("columns"))

    def by_rows(x: Any) -> Any:
        return x * (1 + lax.axis_index("rows"))

    def step(x: Any) -> Any:
        scaled, cut = x * 2 + 1, {"in_specs": P("rows"), "check_vma": False}
        both = P(("rows", "columns"))
        return (
            jax.shard_map(numbered, mesh=mesh, out_specs=both, **cut)(scaled),
            jax.shard_map(numbered, mesh=turned, out_specs=both, **cut)(scaled),
            jax.shard_map(by_rows, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))(scaled),
        )

    return step


def permuted(mesh: Any) -> Callable[..., Any]:
    """Numbers of replicas along several axes, in another order than the mesh's, and from the
    end; a loop that asks for one of them."""
    names = tuple(reversed(mesh.axis_names))
    # JAX 0.11 raises where the order is another.
    ordered = mesh.axis_names if hasattr(jax.config, ASKS_FOR_ORDER) else names

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=P(mesh.axis_names),
        out_specs=(P(mesh.axis_names), P(mesh.axis_names), P(mesh.axis_names)),
    )
    def step(x: Any) -> Any:
        ahead = lax.ppermute(x, ordered, [(i, (i + 1) % REPLICAS) for i in range(REPLICAS)])
        back = lax.ppermute(x, mesh.axis_names, [(i, i - 1) for i in range(REPLICAS)])
        return ahead, back, lax.all_to_all(x, names, 0, 0, tiled=True)

    return step


def counted(mesh: Any) -> Callable[..., Any]:
    """A loop that asks for a replica's number along one of two axes."""

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))
    def step(x: Any) -> Any:
        return lax.scan(lambda c, i: (c + lax.axis_index("rows") * i, None), x, jnp.arange(3.0))[0]

    return step


STEPS = {
    "sgd": Step(sgd, (parameters(), *batch()), 1),
    "gradient outside": Step(outside, (parameters(), *batch()), 1),
    "momentum": Step(momentum, ((parameters(), parameters(3)), *batch()), 1),
    "sharded update": Step(sharded_update, (parameters(), *batch()), 1),
    "contrastive": Step(contrastive, (parameters(), batch()[0]), 1),
    "norm of all": Step(norm("all"), (parameters(), *batch()), 1),
    "norm of each": Step(norm("each"), (parameters(), *batch()), 1),
    "dropout": Step(dropout, (parameters(), *batch(), np.uint32(7)), 1),
    "collectives": Step(collectives, (batch()[0],)),
    "mapped within": Step(mapped_within, (batch()[0],)),
    "loops": Step(loops, (parameters()["in"], batch()[0])),
    "scaled": Step(scaled, (parameters(), *batch()), 1),
    "around": Step(around, (parameters(), *batch())),
    "tensor parallel": Step(
        tensor_parallel, (parameters()["in"], parameters()["out"], batch()[0]), axes=TWO_AXES
    ),
    "moved": Step(moved, (batch()[0],), 1),
    "feedback": Step(
        feedback, ((parameters()["in"], np.zeros((REPLICAS, 16, 32), np.float32)), batch()[0]), 1
    ),
    "permuted": Step(permuted, (batch()[0],), axes=TWO_AXES),
    "counted": Step(counted, (batch()[0],), axes=TWO_AXES),
    "meshes": Step(meshes, (batch()[0],), axes=TWO_AXES),
    "turns": Step(turns, (parameters(), *in_turns(3)), 1),
    "many turns": Step(turns, (parameters(), *in_turns(240)), 1),
    "several steps": Step(several_steps, (parameters(), *in_turns(3)), 1),
    "pieces of two": Step(pieces_of_two, (parameters()["in"], batch()[0]), 1, axes=TWO_AXES),
    "two axes": Step(two_axes, (batch()[0], parameters()["in"]), axes=TWO_AXES),
}


def run(step: Step, function: Callable[..., Any]) -> list[Any]:
    """Three calls of a step that returns next values, one of others."""
    args = step.args
    for _ in range(3 if step.carried else 1):
        result = function(*args)
        if step.carried:
            args = (result[0], *args[1:])
    return jax.tree.leaves(result)


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={REPLICAS}"
    made = {}
    for name, each in STEPS.items():
        sizes, types = tuple(each.axes.values()), auto(each.axes)
        mesh = jax.make_mesh(sizes, tuple(each.axes), axis_types=types)
        for number, leaf in enumerate(run(each, jax.jit(each.make(mesh)))):
            made[f"{name}/{number}"] = np.asarray(leaf)
    np.savez(sys.argv[1], **made)
