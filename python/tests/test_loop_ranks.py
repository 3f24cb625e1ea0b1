# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops on devices of several processes."""

import os
import re
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from test_loop_programs import case, in_order, programs


@pytest.mark.parametrize("name", ["factorise_with_biases", "sample_topics", "relax"])
def test_ranks_change_no_bit(name):
    """Pieces go round, what is seen late is added up, and halos are taken."""
    entries, arrays, options = case(name)
    body = programs(jnp)[name]
    made = [
        jax.tree.leaves(
            baechi.foreach(body, machine="host:2", ranks=ranks, workers=3, **options)(
                entries, *arrays, passes=2
            )
        )
        for ranks in (1, 2)
    ]
    for one, two in zip(*made, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("name", ["factorise_with_biases", "relax"])
def test_ranks_are_the_serial_run(name):
    """In the order of the blocks, bit for bit."""
    entries, arrays, options = case(name)
    body = programs(jnp)[name]
    loop = baechi.foreach(body, machine="host:2", ranks=2, workers=2, **options)
    made = jax.tree.leaves(loop(entries, *arrays))
    serial = baechi.foreach(body, workers=1, fallback="serial", machine="host:1")
    order = loop.order(entries, *arrays)
    for one, two in zip(
        made, jax.tree.leaves(serial(in_order(entries, order), *arrays)), strict=True
    ):
        assert one.tobytes() == two.tobytes()
    assert "host1" in loop.report()


def test_ranks_stay_for_the_next_call(capfd):
    """With verbose, phases are told of the first call alone."""
    entries, arrays, options = case("factorise_with_biases")
    body = programs(jnp)["factorise_with_biases"]
    loop, alone = (
        baechi.foreach(body, machine="host:2", ranks=ranks, workers=2, verbose=ranks > 1, **options)
        for ranks in (2, 1)
    )
    loop(entries, *arrays)
    assert "profile" in loop.report()  # blocks were measured
    processes = _processes(loop)
    assert re.search(r"baechi: loop: compile +\d+\.\d\d s", capfd.readouterr().err)
    again = [array + np.float32(0.5) for array in arrays]
    made = loop(entries, *again, passes=3)
    assert "compile" not in capfd.readouterr().err
    assert _processes(loop) == processes
    for one, two in zip(made, alone(entries, *again, passes=3), strict=True):
        assert one.tobytes() == two.tobytes()


def _processes(loop):
    return [process.pid for process in loop._last._runs._started._processes]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_lost_is_an_error(rank):
    """And the next call starts others."""
    entries, arrays, options = case("relax")
    loop = baechi.foreach(programs(jnp)["relax"], machine="host:2", ranks=2, **options)
    made = loop(entries, *arrays)
    os.kill(_processes(loop)[rank], signal.SIGKILL)
    with pytest.raises(baechi.CompileError, match=f"rank {rank}"):
        loop(entries, *arrays)
    assert (loop(entries, *arrays) == made).all()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_stopped_is_an_error(rank, monkeypatch):
    """Where it lasts longer than BAECHI_SILENCE says; and the next call starts others."""
    monkeypatch.setenv("BAECHI_SILENCE", "2")
    entries, arrays, options = case("relax")
    loop = baechi.foreach(programs(jnp)["relax"], machine="host:2", ranks=2, **options)
    made = loop(entries, *arrays)
    os.kill(_processes(loop)[rank], signal.SIGSTOP)
    with pytest.raises(baechi.CompileError, match=f"rank {rank} was lost: it has said nothing"):
        loop(entries, *arrays)
    assert (loop(entries, *arrays) == made).all()


def test_no_pass_changes_nothing():
    entries, arrays, options = case("relax")
    loop = baechi.foreach(programs(jnp)["relax"], ranks=2, **options)
    assert (loop(entries, *arrays, passes=0) == arrays[0]).all()


def test_positions_outside_are_refused():
    def halved(i, place, x, seen):
        seen[i] = x[place] * 0.5

    entries = baechi.Entries((np.arange(20),), np.where(np.arange(20) == 13, 99, 0))
    x = np.ones(20, np.float32)
    loop = baechi.foreach(halved, machine="host:2", ranks=2, workers=2)
    with pytest.raises(baechi.LoopError, match=r"'x' is read at 99 by entry 13 \(i = 13\)"):
        loop(entries, x, np.zeros(20, np.float32))


def test_errors_are_the_compilers():
    entries, arrays, options = case("relax")
    loop = baechi.foreach(programs(jnp)["relax"], machine="host:2@1KiB", ranks=2, **options)
    with pytest.raises(baechi.CompileError, match="1024|1 KiB|KiB"):
        loop(entries, *arrays)


@pytest.mark.parametrize("ranks", [0, 3, True, "2"])
def test_no_more_ranks_than_devices(ranks):
    with pytest.raises(ValueError, match=r"ranks is .*: give 1 to 2, as many as devices"):
        baechi.foreach(lambda i, _, x: None, machine="host:2", ranks=ranks)
