# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's garbage collector, while many objects are made that stay."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_paused = 0
_was_enabled = False


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Without collections: a traced step has hundreds of thousands of objects that reach each
    other, and each collection visits them all to find that none can go. Threads may pause it at
    the same time; who had it switched off before has it so after."""
    global _paused, _was_enabled
    with _lock:
        if _paused == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _paused += 1
    try:
        yield
    finally:
        with _lock:
            _paused -= 1
            if _paused == 0 and _was_enabled:
                gc.enable()
