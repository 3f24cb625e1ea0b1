# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program on devices of the processes that run the user's program together (mpirun, torchrun,
srun, all on one machine): each starts its own rank of `baechi-run`, the first has the calls, and
the others take the results from its folder."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import pathlib
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from baechi.common import board
from baechi.common.board import write as _write
from baechi.common.launch import Launch
from baechi.compiling.tools import CompileError
from baechi.steps import ranks

# All ranks make the same programs in the same order.
_numbers = itertools.count()


class Module(Protocol):
    """What is called. kind: of what it is, in a word. differs: what a rank calls it with that
    does otherwise than rank 0, and the mend."""

    @property
    def text(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def differs(self) -> str: ...
    def archive(self, given: Sequence[np.ndarray]) -> Mapping[str, np.ndarray]: ...
    def words(
        self, folder: pathlib.Path, model: pathlib.Path, inputs: pathlib.Path
    ) -> list[str]: ...


def join(module: Module, launch: Launch) -> First | Other:
    """This rank's part in the calls of a program. `call` gives the file of the results and rank
    0's report; `taken` is told when they were read, `end` when nobody calls any more."""
    return Other(module, launch) if launch.rank else First(module, launch)


class First:
    """Rank 0: makes the folder, and calls."""

    def __init__(self, module: Module, launch: Launch):
        self._module, self._launch = module, launch
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="baechi-launched-"))
        self._board = board.place_of(launch, "launch", next(_numbers))
        self._place = f"localhost:{ranks.free_port()}"
        self._calls = 0
        self._started: ranks.Ranks | None = None
        self._remove = weakref.finalize(self, _remove, self._board, self._folder)

    def call(self, given: Sequence[np.ndarray], passes: int) -> tuple[pathlib.Path, str]:
        self._calls += 1
        outputs = self._folder / f"out-{self._calls}.npz"
        said: dict[str, Any] = {}
        try:
            said["report"] = self._run(given, outputs, passes)
        except BaseException as error:
            said["error"] = str(error) or type(error).__name__
            with contextlib.suppress(OSError):  # of a full disk, say: they see the folder go
                self._say(said)
            raise
        self._say(said)
        return outputs, said["report"]

    def _run(self, given: Sequence[np.ndarray], outputs: pathlib.Path, passes: int) -> str:
        """Rank 0's report of a call that has been made."""
        _clear(self._folder)
        inputs, model = self._folder / f"in-{self._calls}.npz", self._folder / "model.mlir"
        digest = _digest(self._module, given, passes)
        ranks.write_inputs(self._module.archive(given), inputs)
        if self._started is None:
            model.write_text(self._module.text)
            words = self._module.words(self._folder, model, inputs)
            _write(
                self._board,
                {
                    "pid": os.getpid(),
                    "folder": str(self._folder),
                    "place": self._place,
                    "words": words,
                },
            )
            self._started = ranks.Ranks(words, [0], self._launch.ranks, self._place)
        for rank in range(1, self._launch.ranks):
            if self._asked(rank)["digest"] != digest:
                raise CompileError(f"rank {rank} calls {self._module.differs}")
        return self._started.call(inputs, outputs, passes, model)

    def _asked(self, rank: int) -> dict[str, Any]:
        """What another rank calls with: an error of one is an error of all before anything runs.
        It may come late, as long as it lives."""
        looks = board.looks()
        while True:
            waited = next(looks)
            joined = board.read(self._folder / f"joined-{rank}.json")
            asked = board.read(self._folder / f"asked-{self._calls}-{rank}.json")
            if asked is not None:
                return asked
            if (self._folder / f"left-{rank}.json").exists():
                raise CompileError(f"rank {rank} has given the {self._module.kind} up")
            if joined is not None and not board.lives(joined["pid"]):
                raise CompileError(f"rank {rank} has ended and not called the {self._module.kind}")
            if joined is None and waited > board.PATIENCE:
                raise CompileError(
                    f"rank {rank} has not called the {self._module.kind} after "
                    f"{board.PATIENCE:.0f} s: all ranks call it"
                )

    def _say(self, said: dict[str, Any]) -> None:
        _write(self._folder / f"said-{self._calls}.json", said)

    def taken(self) -> None:
        pass  # it keeps the folder

    def end(self) -> None:
        if self._started is not None:
            self._started.end()
        self._remove()


class Other:
    """Another rank: follows."""

    def __init__(self, module: Module, launch: Launch):
        self._module, self._launch, self._calls = module, launch, 0
        place = board.place_of(launch, "launch", next(_numbers))
        self._first = self._wait(place, f"has not called the {module.kind}")
        self._folder = pathlib.Path(self._first["folder"])
        try:
            _write(self._folder / f"joined-{launch.rank}.json", {"pid": os.getpid()})
        except FileNotFoundError:
            raise self._error(self._given_up()) from None
        self._started = ranks.Ranks(
            self._first["words"], [launch.rank], launch.ranks, self._first["place"]
        )

    def end(self) -> None:
        self._started.end()
        with contextlib.suppress(FileNotFoundError):  # nobody waits for it
            _write(self._folder / f"left-{self._launch.rank}.json", {})

    def call(self, given: Sequence[np.ndarray], passes: int) -> tuple[pathlib.Path, str]:
        self._calls += 1
        try:
            asked = self._folder / f"asked-{self._calls}-{self._launch.rank}.json"
            _write(asked, {"digest": _digest(self._module, given, passes)})
        except FileNotFoundError:
            raise self._error(self._given_up()) from None
        said = self._wait(self._folder / f"said-{self._calls}.json", "has not made the call")
        if "error" in said:
            raise CompileError(said["error"])
        return self._folder / f"out-{self._calls}.npz", said["report"]

    def taken(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # then nobody waits for it
            _write(self._folder / f"taken-{self._calls}-{self._launch.rank}.json", {})

    def _wait(self, file: pathlib.Path, what: str) -> dict[str, Any]:
        """What rank 0 writes. The call itself may take as long as it does while rank 0 lives."""
        looks = board.looks()
        while True:
            waited = next(looks)
            said = board.read(file)
            if said is not None and board.lives(
                said.get("pid", os.getpid())
            ):  # not an earlier job's
                return said
            known = getattr(self, "_first", None)
            if known is None and waited > board.PATIENCE:
                raise self._error(f"rank 0 {what} after {board.PATIENCE:.0f} s: all ranks call it")
            if known is not None and not board.lives(known["pid"]) and board.read(file) is None:
                raise self._error("rank 0 has ended")
            if known is not None and not file.parent.exists():
                raise self._error(self._given_up())

    def _given_up(self) -> str:
        kind = self._module.kind
        return (
            f"rank 0 has given the {kind} up, for the error that it says, or as its function is "
            f"gone: call the {kind} on all ranks again"
        )

    def _error(self, why: str) -> CompileError:
        started = getattr(self, "_started", None)
        said = started.ended() if started else None
        return CompileError(f"rank {self._launch.rank}: {why}" + (f"\n{said}" if said else ""))


def _digest(module: Module, given: Sequence[np.ndarray], passes: int) -> str:
    made = hashlib.blake2b(f"{passes}\n{module.text}".encode(), digest_size=16)
    for value in given:
        made.update(np.ascontiguousarray(value).view(np.uint8).data)
    return made.hexdigest()


def _pending(folder: pathlib.Path) -> set[str]:
    """Numbers of calls whose results a rank that lives has not taken."""
    numbers = {each.stem.removeprefix("said-") for each in folder.glob("said-*.json")}
    files = folder.glob("joined-*.json")
    joined = {each.stem.removeprefix("joined-"): board.read(each) for each in files}
    living = {rank for rank, said in joined.items() if said and board.lives(said["pid"])}
    return {
        number
        for number in numbers
        if any(not (folder / f"taken-{number}-{rank}.json").exists() for rank in living)
    }


def _clear(folder: pathlib.Path) -> None:
    pending = _pending(folder)
    for file in [*folder.glob("in-*.npz"), *folder.glob("out-*.npz")]:
        if file.stem.partition("-")[2] not in pending:
            file.unlink()


def _remove(place: pathlib.Path, folder: pathlib.Path) -> None:
    begun = time.monotonic()
    while _pending(folder) and time.monotonic() - begun < board.PATIENCE:
        time.sleep(0.01)
    place.unlink(missing_ok=True)
    # At once: while it is emptied a rank could write into it, and wait there for an answer.
    gone = folder.with_name(f"{folder.name}.gone")
    with contextlib.suppress(OSError):
        folder = folder.rename(gone)
    shutil.rmtree(folder, ignore_errors=True)
