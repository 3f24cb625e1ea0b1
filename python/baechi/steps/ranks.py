# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of `baechi-run` that run one program's calls together, a rank each (docs/runtime.md):
they meet at a port of this machine and stay for the next call."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

import numpy as np

from baechi.common import progress
from baechi.compiling import compiler, tools
from baechi.compiling.options import CompileOptions

_NOTE = re.compile(r"baechi-run: note: ")
# Seconds in which a rank ends once another was lost.
_PATIENCE = 15.0


def write_inputs(values: Mapping[str, np.ndarray], inputs: pathlib.Path) -> None:
    """Arguments (`arg0`, ...) as `baechi-run --inputs` takes them."""
    with inputs.open("wb") as file:
        np.savez(file, **values)  # type: ignore[arg-type]


def words_of(options: CompileOptions, model: pathlib.Path, inputs: pathlib.Path) -> list[str]:
    """What `baechi-run` is started with."""
    return [str(model), *(f"--{word}" for word in options.words()), f"--inputs={inputs}"]


class Ranks:
    """Processes that wait for calls. They end with this object."""

    def __init__(self, words: Sequence[str], mine: Sequence[int], ranks: int, place: str):
        """mine: those of all ranks that are started here. place: where they meet."""
        words = [*words, "--check-single=false", "--calls"]
        if progress.is_shown():
            words.append("--progress=lines")
        command = [str(tools.find("baechi-run")), *words]
        self._processes: list[subprocess.Popen[str]] = []
        self.end = weakref.finalize(self, _end, self._processes)
        # What others than the first say matters where that one is lost.
        self._files: list[IO[str]] = []
        for rank in mine:
            pipe = subprocess.PIPE
            said = pipe if rank == 0 else self._file()
            self._processes.append(
                subprocess.Popen(
                    command,
                    stdin=pipe if rank == 0 else subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    env=_environment(rank, ranks, place),
                    start_new_session=True,  # what interrupts this process is not theirs
                )
            )

    def call(
        self, inputs: pathlib.Path, outputs: pathlib.Path, steps: int, model: pathlib.Path
    ) -> str:
        """Gives what rank 0 has said. Raises CompileError where one of them fails."""
        first = self._processes[0]
        assert first.stdin is not None and first.stdout is not None
        try:
            first.stdin.write(f"{inputs}\t{outputs}\t{steps}\n")
            first.stdin.flush()
        except BrokenPipeError:
            pass  # it says why
        said: list[str] = []
        with self._ending_the_first():
            for line in first.stdout:
                if line == "call ended\n":
                    return "".join(said)
                if not compiler.hears_progress(line) and not _NOTE.match(line):
                    said.append(line)
        raise tools.error_of("baechi-run", self._why("".join(said)), model)

    @contextlib.contextmanager
    def _ending_the_first(self) -> Iterator[None]:
        """Ends rank 0 where another has ended and it does not say why: it is stopped, say."""
        first, *others = self._processes
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.2):
                if any(other.poll() is not None for other in others):
                    if not ended.wait(_PATIENCE):
                        first.kill()
                    return

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()

    def _why(self, said: str) -> str:
        """What rank 0 says for all, unless it was lost."""
        if "error:" in said:
            return said
        for rank, file in enumerate(self._files, start=1):
            with contextlib.suppress(subprocess.TimeoutExpired):  # it is stopped
                self._processes[rank].wait(_PATIENCE)
            if "error:" in (found := _read(file)):
                return found
        return said + f"baechi-run: error: rank 0 has ended with {self._processes[0].wait()}\n"

    def ended(self) -> str | None:
        """What a rank has said that is alone here, and not the first, if it has ended."""
        if self._processes[0].poll() is None:
            return None
        return _read(self._files[0]) or "it has said nothing"

    def _file(self) -> IO[str]:
        self._files.append(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
        return self._files[-1]


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _environment(rank: int, ranks: int, place: str) -> dict[str, str]:
    meeting = {"BAECHI_RANKS": str(ranks), "BAECHI_RANK": str(rank), "BAECHI_COORDINATOR": place}
    # BAECHI_JOB tells jobs at one place apart, and this place is of these ranks alone.
    others = {*tools.OF_LAUNCHERS, "BAECHI_JOB"}
    return {k: v for k, v in os.environ.items() if k not in others} | meeting


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])
