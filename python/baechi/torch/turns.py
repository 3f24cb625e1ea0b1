# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling by turns, also with PyTorch's own compiler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeVar

from torch._dynamo.convert_frame import compile_lock

from baechi.steps.compiled import Compiled
from baechi.steps.program import Program

P = TypeVar("P", bound=Program)


class CompiledOfTorch(Compiled[P]):
    """What PyTorch traces when it is compiled.

    Its tracers change what all threads see: while they run, `torch.nn.Module` has their
    `__call__` and `__getattr__`, which torch.compile in another thread would follow into. Its own
    backends trace while it compiles, so its lock is all that keeps it from this; here graphs are
    traced when they are first called. It comes before the turn of all front ends, as it does where
    what torch.compile follows is a step of ours.
    """

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        with compile_lock, super()._compiling():
            yield
