# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop's program on devices of several processes (docs/runtime.md): `baechi-run`, started once a
rank, which meet at a port of this machine."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from baechi.common import temporary
from baechi.compiling import tools
from baechi.compiling.options import CompileOptions
from baechi.loops.module_text import LoopModule


class OnRanks:
    """As `OnDevices`, in processes of its own, which compile anew for each call; kernels of earlier
    ones are kept."""

    def __init__(self, module: LoopModule, options: CompileOptions, ranks: int):
        self._module, self._options, self._ranks = module, options, ranks
        self._said = ""

    def run(
        self, given: Sequence[np.ndarray], passes: int, check: Callable[[list[np.ndarray]], None]
    ) -> list[np.ndarray]:
        """What the arguments hold after all passes. check: of the same."""
        made = list(given)
        arguments = self._module.arguments
        if passes == 0:
            return made
        with temporary.folder("baechi-ranks-") as folder:
            model, inputs, outputs = (
                folder / name for name in ("model.mlir", "inputs.npz", "outputs.npz")
            )
            model.write_text(self._module.text)
            values = {
                f"arg{n}": np.reshape(np.asarray(value, argument.dtype), argument.shape)
                for n, (value, argument) in enumerate(zip(given, arguments, strict=True))
            }
            with inputs.open("wb") as file:
                np.savez(file, **values)  # type: ignore[arg-type]
            words = [f"--{word}" for word in self._options.words()]
            words += [f"--inputs={inputs}", f"--outputs={outputs}", f"--steps={passes}"]
            self._said = _run([str(model), *words, "--check-single=false"], self._ranks, folder)
            with np.load(outputs) as results:
                for n, argument in enumerate(arguments):
                    if argument.next_value is not None:
                        made[n] = results[f"out{argument.next_value}"].view(argument.dtype)
        check(made)
        return made

    def report(self) -> str:
        """Rank 0's of the last call."""
        return self._said


def _run(words: Sequence[str], ranks: int, folder: pathlib.Path) -> str:
    """Gives what rank 0 has said. Raises CompileError where one of them fails."""
    place = f"localhost:{_free_port()}"
    command = [str(tools.find("baechi-run")), *words]
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(_started(command, rank, ranks, place, folder))
            for rank in range(ranks)
        ]
        codes = [process.wait() for process in processes]
    failed = [rank for rank, code in enumerate(codes) if code != 0]
    if failed:
        # Rank 0 says it for all of them, unless it was lost.
        said = (folder / f"{0 if 0 in failed else failed[0]}.err").read_text(errors="replace")
        raise tools.error_of("baechi-run", said, folder / "model.mlir")
    return (folder / "0.out").read_text(errors="replace")


@contextlib.contextmanager
def _started(
    command: Sequence[str], rank: int, ranks: int, place: str, folder: pathlib.Path
) -> Iterator[subprocess.Popen[bytes]]:
    """One that does not outlive its use."""
    meeting = {"BAECHI_RANKS": str(ranks), "BAECHI_RANK": str(rank), "BAECHI_COORDINATOR": place}
    environment = {k: v for k, v in os.environ.items() if k not in tools.OF_LAUNCHERS}
    with (
        (folder / f"{rank}.out").open("wb") as output,
        (folder / f"{rank}.err").open("wb") as errors,
        subprocess.Popen(
            command, stdout=output, stderr=errors, env=environment | meeting
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])
