# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which steps have calls that overlap: those that are one call into C."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from baechi.compiling.options import CompileOptions
from baechi.importer.jax.host_calls import HostCall


def check_dispatch(async_dispatch: bool, overlap_steps: bool) -> None:
    """Raises TypeError for what is neither true nor false, ValueError where one of the two
    forbids the other."""
    for name, value in (("async_dispatch", async_dispatch), ("overlap_steps", overlap_steps)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}: give True or False")
    if overlap_steps and not async_dispatch:
        raise ValueError(
            "overlap_steps=True and async_dispatch=False: calls that are waited for cannot "
            "overlap; leave one of them out"
        )


def why_separate(
    name: str,
    given: Sequence[str | None],
    returned: Sequence[str | None],
    host_calls: Sequence[HostCall],
    options: CompileOptions | None,
    is_checked: bool,
) -> str:
    """Why no two calls of a step overlap; empty: some may.

    given, returned: random generators of its flat arguments and results.
    Raises ValueError for a step that is to be planned as if they did."""
    why = ""
    if is_checked:
        why = "calls that are checked are waited for"
    elif any(generator is not None for generator in given):
        why = "the arguments have random keys"
    elif any(generator is not None for generator in returned):
        why = "the results have random keys"
    elif host_calls:
        why = "JAX computes a part of each"
    elif find_spec("baechi._placement") is None:
        why = "the extension is not built"
    if why and options is not None and options.objective == "period":
        raise ValueError(
            f"objective is 'period', and calls of '{name}' do not overlap: {why}; leave "
            "objective out"
        )
    return why
