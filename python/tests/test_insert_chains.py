# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many arguments that become parts of one tensor (lib/Conversion/Kernels/Common/InsertChains.cpp)
against numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

import baechi
import needs

pytestmark = needs.tool("baechi-run")
PARTS = [np.arange(6 * (k + 1), dtype=np.float32).reshape(k + 1, 6) - 3 * k for k in range(20)]
ALIKE = [np.full((3, 4), k, np.float32) for k in range(20)]


@pytest.mark.parametrize(
    ("join", "parts", "expected"),
    [
        (jnp.concatenate, PARTS, np.concatenate(PARTS)),
        (jnp.stack, ALIKE, np.stack(ALIKE)),
        (lambda xs: jnp.stack(xs, axis=1), ALIKE, np.stack(ALIKE, axis=1)),
        (lambda xs: jnp.concatenate(xs, axis=1), ALIKE, np.concatenate(ALIKE, axis=1)),
        # The same one more than once, and what is read beside.
        (
            lambda xs: jnp.concatenate([*xs, xs[0], *xs]) * 2 + 1,
            ALIKE,
            np.concatenate([*ALIKE, ALIKE[0], *ALIKE]) * 2 + 1,
        ),
        (
            lambda xs: (jnp.stack(xs), jnp.stack(xs[::-1]), xs[0] + xs[1]),
            ALIKE,
            (np.stack(ALIKE), np.stack(ALIKE[::-1]), ALIKE[0] + ALIKE[1]),
        ),
    ],
)
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_joined_arguments_are_numpys(join, parts, expected, machine):
    step = baechi.jit(join, machine=machine, costs="roofline", budget="0")
    found = step(parts)
    pairs = (
        zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    )
    for one, other in pairs:
        np.testing.assert_array_equal(np.asarray(one), other)


def test_what_is_written_over_keeps_its_order():
    """The last of several writes to one place stays, and the places of donated tensors are left."""

    def step(table, rows):
        for k, row in enumerate(rows):
            table = table.at[k // 2].set(row)
        return table

    rows = [np.full(5, k, np.float32) for k in range(20)]
    table = np.full((12, 5), -1, np.float32)
    expected = table.copy()
    for k, row in enumerate(rows):
        expected[k // 2] = row
    for donated in ((), (0,)):
        compiled = baechi.jit(step, machine="host:1", costs="roofline", donate_argnums=donated)
        np.testing.assert_array_equal(np.asarray(compiled(jnp.asarray(table), rows)), expected)
