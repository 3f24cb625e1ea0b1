# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Temporary folders that are gone however the process ends (short of SIGKILL)."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import tempfile
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def folder(prefix: str) -> Iterator[pathlib.Path]:
    """A temporary folder, removed with what is in it at the end, also when the process is
    asked to end meanwhile (SIGTERM; of threads only the main one can listen)."""
    with _unwinding_on_sigterm(), tempfile.TemporaryDirectory(prefix=prefix) as name:
        yield pathlib.Path(name)


class _Terminated(BaseException):
    """SIGTERM has come."""


@contextlib.contextmanager
def _unwinding_on_sigterm() -> Iterator[None]:
    """Where SIGTERM would end the process at once, it ends it after the callers' own ends."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def unwind(number: int, frame: object) -> None:
        raise _Terminated

    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
