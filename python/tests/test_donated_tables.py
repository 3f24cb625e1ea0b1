# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of which a step changes some rows."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import needs  # noqa: E402
from baechi.compiling import tools  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

pytestmark = needs.tool("baechi-run")

TABLE = np.arange(800, dtype=np.float32).reshape(100, 8)
ROWS, UPDATE = np.int32([3, 99, 3]), np.arange(24, dtype=np.float32).reshape(3, 8)


def add_rows(table, rows, update):
    return table.at[rows].add(update)


def add_and_set_rows(table, rows, update):
    added = table.at[rows].add(update)
    mean = added[rows[1]].mean()
    return added.at[rows[0]].set(update[2]), mean


def write_slice(table, rows, update):
    return jax.lax.dynamic_update_slice(table, update, (rows[0], 0)), table[rows[1]].sum()


@pytest.mark.parametrize("machine", ["host:1@5KiB", "host:2@5KiB"])
@pytest.mark.parametrize("change", [add_rows, add_and_set_rows, write_slice])
def test_rows_of_a_donated_table_change_in_its_memory(change, machine):
    """The table takes 3200 bytes: there is no room for a second one."""
    step, reference = jit(change, machine=machine, donate_argnums=0), jax.jit(change)
    ours = theirs = TABLE
    for rows in (ROWS, ROWS[::-1], ROWS):
        found, expected = step(ours, rows, UPDATE), reference(theirs, rows, UPDATE)
        assert_close(found, expected)
        ours, theirs = (
            result[0] if isinstance(result, tuple) else result for result in (found, expected)
        )
    assert_close(TABLE[0], np.arange(8, dtype=np.float32))  # the caller's own is as it was


def test_a_table_that_is_kept_is_copied():
    step = jit(add_rows)
    assert_close(step(TABLE, ROWS, UPDATE), jax.jit(add_rows)(TABLE, ROWS, UPDATE))
    with pytest.raises(tools.CompileError, match="no placement can fit the memories"):
        jit(add_rows, machine="host:1@5KiB")(TABLE, ROWS, UPDATE)
