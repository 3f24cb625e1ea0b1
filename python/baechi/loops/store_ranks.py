# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers in processes of their own: each asks the one that has the store for what it shares.

    python -m baechi.loops.store_ranks

It reads a key, and writes the socket that it listens at. A process is a rank: the workers of the
same number, modulo the ranks, are threads of it. It is kept from call to call.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any

from baechi.loops.block_program import BlockForm, BlockProgram
from baechi.loops.pace import Work, go

if TYPE_CHECKING:
    from baechi.loops.board import Board

# What a worker asks for; `ready` and `device` are its own process's.
_ASKED = ("take", "give", "get", "add", "clock", "add_sum", "check", "finish")


class StoreRanks:
    """Processes with an opened block program each worker."""

    def __init__(self, ranks: int, devices: int, form: BlockForm, library: bytes):
        self._ranks, self._form, self._library = ranks, form, library
        # Devices are divided as evenly as they can be.
        self._devices = [devices * (r + 1) // ranks - devices * r // ranks for r in range(ranks)]
        self._connections: list[list[Connection]] = []  # by rank, of its workers
        self._processes: list[subprocess.Popen[str]] = []

    def run(self, works: Sequence[Work], board: Board) -> None:
        """Raises what a worker has raised."""
        if not self._connections:
            self._start(len(works))

        def worker(work: Work) -> Callable[[], None]:
            rank, place = work.worker % self._ranks, work.worker // self._ranks
            return functools.partial(_serve, self._connections[rank][place], work, board, rank)

        try:
            board.run([(work.worker, worker(work)) for work in works])
        except BaseException:
            self.close()  # their workers are somewhere in between
            raise

    def close(self) -> None:
        for connections in self._connections:
            for connection in connections:
                connection.close()
        self._connections = []
        if hasattr(self, "_end"):
            self._end()

    def _start(self, workers: int) -> None:
        key = secrets.token_bytes(32)
        processes = self._processes = []
        self._end = weakref.finalize(self, _end, processes)
        folders = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {"PYTHONPATH": folders}
        command = [sys.executable, "-m", "baechi.loops.store_ranks"]
        pipe = subprocess.PIPE
        for _ in range(self._ranks):
            processes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=pipe,
                    stdout=pipe,
                    text=True,
                    start_new_session=True,  # what interrupts this process is not theirs
                )
            )
        for rank, process in enumerate(processes):
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(key.hex() + "\n")
            place = process.stdout.readline().rstrip("\n")
            if not place:
                self.close()
                raise RuntimeError(f"rank {rank} of the loop has ended before it could begin")
            mine = len(range(rank, workers, self._ranks))
            with Client(place, authkey=key) as first:
                first.send((self._form, self._library, self._devices[rank], mine))
                self._connections.append([Client(place, authkey=key) for _ in range(mine)])


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _serve(connection: Connection, work: Work, board: Board, rank: int) -> None:
    """Does what one worker asks for, until it has finished."""
    try:
        connection.send(work)
        name = ""
        while name != "finish":
            name, arguments = connection.recv()
            if name == "raise":
                raise arguments
            if name not in _ASKED:
                raise RuntimeError(f"a worker asks for '{name}'")
            connection.send(getattr(board, name)(*arguments))
    except (EOFError, OSError) as error:
        raise RuntimeError(
            f"rank {rank} of the loop has ended, with worker {work.worker}: call the loop again"
        ) from error


class _Remote:
    """`pace.Shared` of a worker, by a connection."""

    def __init__(self, connection: Connection, devices: threading.Semaphore):
        self._connection, self._devices = connection, devices

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _ASKED:
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            self._connection.send((name, arguments))
            return self._connection.recv()

        return ask

    def ready(self, array: int, part: int, turn: int) -> bool:
        return True

    def device(self) -> threading.Semaphore:
        return self._devices


def _work(
    connection: Connection, form: BlockForm, library: bytes, devices: threading.Semaphore
) -> None:
    program = BlockProgram(form, library)
    shared: Any = _Remote(connection, devices)
    while True:
        try:
            work: Work = connection.recv()
            for _ in go(work, form, program, shared):
                pass
        except (EOFError, OSError):
            return  # the one with the store is gone, or wants no more
        except Exception as error:
            connection.send(("raise", RuntimeError(f"{type(error).__name__}: {error}")))
            return


def main() -> None:
    key = bytes.fromhex(sys.stdin.readline())
    # A message to a port in two parts would wait for the first one's receipt.
    with Listener(family="AF_UNIX", authkey=key) as listener:
        print(listener.address, flush=True)
        with listener.accept() as first:
            form, library, devices, workers = first.recv()
            connections = [listener.accept() for _ in range(workers)]
    at_once = threading.Semaphore(max(devices, 1))
    threads = [
        threading.Thread(target=_work, args=(connection, form, library, at_once))
        for connection in connections
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
