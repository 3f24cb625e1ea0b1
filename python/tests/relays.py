# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a network and a busy machine do to processes: links that keep what is sent, or are cut, and
processes that run one part in ten of their time."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator


class Relay:
    """A port whose callers reach another one, until it is closed."""

    def __init__(self, target: int):
        self._target, self._ends = target, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._left = float("inf")  # bytes that still come through
        self._links: list[list[socket.socket]] = []
        self.holds_something = False
        self._thread = threading.Thread(target=self._move, daemon=True)
        self._thread.start()

    def hold_after(self, count: int) -> None:
        """After so many bytes more nothing comes through, in the middle of a message or not."""
        self._left = count

    def let_go(self) -> None:
        self._left = float("inf")

    def cut(self) -> None:
        """All ends see that the others have gone."""
        for link in self._links:
            for each in link:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._ends = True
        self._thread.join()
        for each in [self._listener, *sum(self._links, [])]:
            each.close()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _move(self) -> None:
        while not self._ends:
            others = {one: link[1 - n] for link in self._links for n, one in enumerate(link)}
            ready, _, _ = select.select([self._listener, *others], [], [], 0.005)
            if self._listener in ready:
                ready.remove(self._listener)
                caller, _ = self._listener.accept()
                with contextlib.suppress(OSError):  # nobody is there yet: who calls calls again
                    called = socket.create_connection(("127.0.0.1", self._target))
                    self._links.append([caller, called])
                    continue
                caller.close()
            self.holds_something = self._left <= 0 and bool(ready)
            if self._left <= 0:
                time.sleep(0.005)
                continue
            for one in ready:
                self._pass(one, others[one])

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        some = b""
        with contextlib.suppress(OSError):
            some = one.recv(int(min(self._left, 1 << 16)))
            other.sendall(some)
        self._left -= len(some)
        if not some:
            for link in [link for link in self._links if one in link]:
                self._links.remove(link)
                one.close()
                other.close()


@contextlib.contextmanager
def slowed(process: int) -> Iterator[None]:
    """Lets a process run 20 ms of each 200."""
    ends = threading.Event()

    def stop_and_go() -> None:
        with contextlib.suppress(ProcessLookupError):
            while not ends.is_set():
                os.kill(process, signal.SIGSTOP)
                ends.wait(0.18)
                os.kill(process, signal.SIGCONT)
                ends.wait(0.02)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
