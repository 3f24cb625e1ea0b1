# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled step whose devices are divided among the processes that mpirun, torchrun or srun has
started: what the front ends share of it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from baechi.common.launch import Launch, find_launch
from baechi.compiling.options import CompileOptions
from baechi.init import Init
from baechi.steps import launched
from baechi.steps.ranks import words_of
from baechi.steps.roll import Roll

_SHOWN = 4  # of the arguments, the last ones: what comes before is mostly parameters


def check_ranks(ranks: str | None, refused: Mapping[str, bool]) -> None:
    """refused: what cannot be with them, and whether it is given."""
    if ranks is None:
        return
    if ranks != "launcher":
        raise ValueError(
            f"ranks is {ranks!r}: give 'launcher' for the processes that mpirun, torchrun, srun or "
            "jax.distributed has started, or None for this one"
        )
    for option, given in refused.items():
        if given:
            raise ValueError(
                f"ranks is 'launcher' and {option} given: calls of several ranks are waited for, "
                "and not compared; leave one of them out"
            )


def launch_for(name: str) -> Launch | None:
    """The processes that share a step. Raises ValueError where these are of several machines."""
    launch = find_launch()
    if launch is not None and launch.here < launch.ranks:
        raise ValueError(
            f"'{name}' has ranks='launcher', and {launch.launcher} has started {launch.ranks} "
            f"processes, {launch.here} of them on this machine: a step's arrays go to them by "
            "files; start all on one machine, or run the step's module with baechi-run"
        )
    return launch


@dataclasses.dataclass(frozen=True)
class _Module:
    """A step's module, as ranks call it."""

    text: str
    options: CompileOptions
    kind: str = "step"
    differs: str = (
        "another step, or the step with other arguments, than rank 0: give all ranks the same, "
        "from the same seeds"
    )

    def archive(self, given: Sequence[np.ndarray]) -> Mapping[str, np.ndarray]:
        return {f"arg{n}": value for n, value in enumerate(given)}

    def words(self, folder: pathlib.Path, model: pathlib.Path, inputs: pathlib.Path) -> list[str]:
        return words_of(self.options, model, inputs)


class LaunchedProgram:
    """A step's program for one set of shapes, types and static values. said: by rank 0, of its
    last call."""

    def __init__(
        self,
        name: str,
        text: str,
        options: CompileOptions,
        arguments: Sequence[Init],
        launch: Launch,
    ):
        self._module = _Module(text, dataclasses.replace(options, replan="never"))
        self._arguments, self._launch = arguments, launch
        self._digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        kinds = [f"{a.dtype}{list(a.shape)}" for a in arguments]
        more = f" and {len(kinds) - _SHOWN} more" if len(kinds) > _SHOWN else ""
        self._what = f"'{name}' of {', '.join(kinds[-_SHOWN:]) or 'nothing'}{more}"
        self._joined: launched.First | launched.Other | None = None
        self.said = ""

    def meet(self, roll: Roll) -> None:
        """Before a call: all ranks make the same one, and join anew where one has left."""
        if roll.meet(self._digest, self._what, self._joined is None):
            self.leave()

    def leave(self) -> None:
        """All ranks join anew."""
        if self._joined is not None:
            self._joined.taken()
            self._joined.end()
            self._joined = None

    @contextlib.contextmanager
    def called(self, values: Sequence[object]) -> Iterator[Mapping[str, np.ndarray]]:
        """The results of a call (`out0`, ...), as long as they are read."""
        given = [
            np.ascontiguousarray(np.asarray(value), each.dtype).reshape(each.shape)
            for value, each in zip(values, self._arguments, strict=True)
        ]
        if self._joined is None:
            self._joined = launched.join(self._module, self._launch)
        try:
            outputs, self.said = self._joined.call(given, 1)
            with np.load(outputs) as found:
                yield found
        except BaseException:
            self.leave()
            raise
        self._joined.taken()
