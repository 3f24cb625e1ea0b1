# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop's program on devices of several processes, which its first call starts
(docs/runtime.md)."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from baechi.common import progress, temporary
from baechi.compiling.options import CompileOptions
from baechi.loops.module_text import LoopModule
from baechi.pictures.picture import Picture
from baechi.steps import ranks


class OfRanks:
    """What several ranks do is told by rank 0."""

    _said = ""

    def report(self, given: Sequence[np.ndarray]) -> str:
        """Rank 0's of all calls."""
        return self._said

    def picture(self, given: Sequence[np.ndarray]) -> Picture:
        raise RuntimeError(
            "the plan of a loop on several ranks is theirs: draw that of the same loop without "
            "ranks, whose devices are the same"
        )


class OnRanks(OfRanks):
    """As `OnDevices`, in processes of its own, which the first call starts."""

    def __init__(self, module: LoopModule, options: CompileOptions, count: int):
        self._module, self._options, self._ranks = module, options, count
        self._started: ranks.Ranks | None = None

    def run(
        self, given: Sequence[np.ndarray], passes: int, check: Callable[[list[np.ndarray]], None]
    ) -> list[np.ndarray]:
        """What the arguments hold after all passes. check: of the same."""
        made = list(given)
        if passes == 0:
            return made
        with (
            progress.shown(self._options.verbose, "loop"),
            temporary.folder("baechi-ranks-") as folder,
        ):
            inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
            ranks.write_inputs(self._module.archive(given), inputs)
            model = folder / "model.mlir"
            if self._started is None:
                model.write_text(self._module.text)
                words = words_of(self._options, folder, model, inputs)
                place = f"localhost:{ranks.free_port()}"
                self._started = ranks.Ranks(words, range(self._ranks), self._ranks, place)
            try:
                self._said = self._started.call(inputs, outputs, passes, model)
            except BaseException:
                self._started.end()
                self._started = None
                raise
            take_outputs(self._module, outputs, made)
        check(made)
        return made


def take_outputs(module: LoopModule, outputs: pathlib.Path, made: list[np.ndarray]) -> None:
    """Puts what the arguments hold then in the place of what they held."""
    with np.load(outputs) as results:
        for n, argument in enumerate(module.arguments):
            if argument.next_value is not None:
                made[n] = results[f"out{argument.next_value}"].view(argument.dtype)


def words_of(
    options: CompileOptions, folder: pathlib.Path, model: pathlib.Path, inputs: pathlib.Path
) -> list[str]:
    # What blocks take follows from the entries. Other loops' profile is not theirs.
    options = dataclasses.replace(options, costs="measured", profile=folder / "profile.json")
    return ranks.words_of(options, model, inputs)
