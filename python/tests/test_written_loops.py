# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches of steps that are written for replicas: turn by turn, or one operator, which
a warning tells."""

from __future__ import annotations

import re
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import baechi
from baechi.importer.jax import lockstep
from written_steps import STEPS, Step, abstract_mesh, run
from written_training import REPLICAS

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0"}


def _compiled(step: Step, **options: Any) -> Any:
    made = step.make(abstract_mesh(step.axes))
    return baechi.jit(made, donate_argnums=(0,), **OPTIONS | options)


def test_turns_of_a_short_loop_are_the_replicas_own() -> None:
    """And those of a long one, with a collective in it, are on one device."""
    short, long = (_compiled(STEPS[name], machine="host:4") for name in ("turns", "many turns"))
    run(STEPS["turns"], short)
    with pytest.warns(
        UserWarning, match="operators, of at most 16,384, unless unroll=True"
    ) as told:
        run(STEPS["many turns"], long)
    found = re.search(
        r"let a call do at most (\d+) of its 240 turns, or exchange", str(told[0].message)
    )
    assert found, told[0].message
    # So many are written turn by turn, and one more is not.
    for turns in (int(found[1]), int(found[1]) + 1):
        many = STEPS["many turns"]
        args = many.args[0], *(np.resize(x, (turns, *x.shape[1:])) for x in many.args[1:])
        (mapped,) = jax.make_jaxpr(many.make(abstract_mesh(many.axes)))(*args).eqns
        scans = [eqn for eqn in mapped.params["jaxpr"].eqns if eqn.primitive.name == "scan"]
        assert lockstep.is_short(scans[0], REPLICAS) == (turns == int(found[1]))
    of_turns = {
        turn: {d for op, d in short.placement.items() if f"turn{turn}/" in op and "dot" in op}
        for turn in range(3)
    }
    assert all(len(devices) == 4 for devices in of_turns.values()), of_turns
    assert not any("turn" in op and "dot" in op for op in long.placement)


def test_what_replicas_do_not_share_is_told() -> None:
    """With its line and what to write in its place, which has the values, too."""
    mesh = abstract_mesh({"batch": 2})

    def mixed(x: Any) -> Any:
        return 0.5 * x + 0.5 * lax.pmean(x, "batch")

    def until(x: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 5, lambda s: (mixed(s[0]), s[1] + 1), (x, 0))[0]

    def counted(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, x: mixed(x), x)

    def chosen(x: Any) -> Any:
        return lax.cond(lax.psum(x.sum(), "batch") > 0, mixed, lambda x: x, x)

    def by_where(x: Any) -> Any:
        return jnp.where(lax.psum(x.sum(), "batch") > 0, mixed(x), x)

    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    place = r"test_written_loops\.py:\d+:\d+: "
    for told, mended, words in (
        (until, counted, "while in .* one device; where the number"),
        (chosen, by_where, "cond in .* one device; compute both and"),
    ):
        results = []
        for function in (told, mended):
            mapped = jax.shard_map(function, mesh=mesh, in_specs=P("batch"), out_specs=P("batch"))
            step = baechi.jit(mapped, machine="host:2", **OPTIONS)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                results.append(np.asarray(step(x)))
            texts = [str(warning.message) for warning in caught]
            assert bool(texts) == (function is told), texts
            if texts:
                assert len(set(texts)) == 1 and re.search(place + words, texts[0]), texts
        np.testing.assert_allclose(*results, rtol=1e-6)


def test_steps_of_a_loop_have_their_parts_of_the_batches() -> None:
    step = _compiled(STEPS["several steps"], machine="host:4")
    run(STEPS["several steps"], step)
    pieces = [step.placement[f"x.piece{i}"] for i in range(REPLICAS)]
    assert pieces == ["host0", "host1", "host2", "host3"]
    for turn in range(3):
        products = {
            device for op, device in step.placement.items() if f"turn{turn}/" in op and "dot" in op
        }
        assert len(products) == 4


def test_turns_read_what_others_made_several_times() -> None:
    """Each is looked at once, however many ways lead to it."""
    mesh, turns = abstract_mesh({"batch": 2}), 24

    def train(gradient: Any) -> Any:
        def turn(carry: Any, x: Any) -> Any:
            p, m = carry
            m = m * 0.9 + gradient(p, x)
            return (p - 0.1 * (m + p * 0.01), m), p * m * p

        return lambda p, m, xs: lax.scan(turn, (p, m), xs)

    def gradient(p: Any, x: Any) -> Any:
        return jax.grad(lambda p: jnp.tanh(x @ p).mean())(p)

    def of_replica(p: Any, x: Any) -> Any:
        return lax.pmean(gradient(p, x), "batch")

    specs: dict[str, Any] = {"in_specs": (P(), P("batch")), "out_specs": P()}
    mapped = jax.shard_map(of_replica, mesh=mesh, check_vma=False, **specs)
    xs = np.linspace(-1, 1, turns * 8 * 4, dtype=np.float32).reshape(turns, 8, 4)
    args = np.full(4, 0.5, np.float32), np.zeros(4, np.float32), xs
    found = baechi.jit(train(mapped), machine="host:2", **OPTIONS)(*args)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(jax.jit(train(gradient))(*args))):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
