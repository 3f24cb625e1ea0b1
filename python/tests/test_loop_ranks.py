# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops on devices of several processes."""

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
