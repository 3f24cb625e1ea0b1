# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop's program on devices of the processes that run the user's program together
(`baechi.steps.launched`)."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from baechi.common import progress
from baechi.common.launch import Launch
from baechi.compiling.options import CompileOptions
from baechi.loops import ranks
from baechi.loops.module_text import LoopModule
from baechi.steps import launched


@dataclasses.dataclass(frozen=True)
class _Called:
    """A loop's module, as ranks call it."""

    module: LoopModule
    options: CompileOptions
    kind: str = "loop"
    differs: str = (
        "the loop with another body, other entries, arrays or passes than rank 0: give all ranks "
        "the same, from the same seeds"
    )

    @property
    def text(self) -> str:
        return self.module.text

    def archive(self, given: Sequence[np.ndarray]) -> Mapping[str, np.ndarray]:
        return self.module.archive(given)

    def words(self, folder: pathlib.Path, model: pathlib.Path, inputs: pathlib.Path) -> list[str]:
        return ranks.words_of(self.options, folder, model, inputs)


class OnLaunched(ranks.OfRanks):
    """As `OnRanks`. Every rank calls it with the same arguments, and gets the results."""

    def __init__(self, module: LoopModule, options: CompileOptions, launch: Launch):
        self._module, self._launch = module, launch
        self._called, self._verbose = _Called(module, options), options.verbose
        self._joined: launched.First | launched.Other | None = None

    def run(
        self, given: Sequence[np.ndarray], passes: int, check: Callable[[list[np.ndarray]], None]
    ) -> list[np.ndarray]:
        """What the arguments hold after all passes. check: of the same."""
        made = list(given)
        if passes == 0:
            return made
        with progress.shown(self._verbose, "loop"):
            if self._joined is None:
                self._joined = launched.join(self._called, self._launch)
            try:
                outputs, self._said = self._joined.call(given, passes)
                ranks.take_outputs(self._module, outputs, made)
            except BaseException:
                self._joined.taken()
                self._joined.end()
                self._joined = None
                raise
            self._joined.taken()
        check(made)
        return made
