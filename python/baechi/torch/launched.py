# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step whose devices are divided among the processes that mpirun, torchrun or srun has
started (docs/jit.md): all of them make its calls with the same state, and change it alike."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import torch

from baechi.common.bytecode import Bytecode, text_of
from baechi.common.launch import Launch
from baechi.compiling.options import CompileOptions
from baechi.importer.common.module import Argument
from baechi.steps.launched_step import LaunchedProgram, launch_for
from baechi.steps.roll import roll_of
from baechi.torch.step_program import StepProgram
from baechi.torch.training_trace import TrainingTrace


class RankSteps:
    """Of a step of ranks="launcher", by its name. Alone it is as any other."""

    def __init__(self, name: str, options: CompileOptions):
        self._name, self._options = name, options
        self._launch: Launch | None = None
        self._looked, self._has_met = False, False

    def are_there(self) -> bool:
        if not self._looked:
            self._launch, self._looked = launch_for(self._name), True
        return self._launch is not None

    def program(
        self, module: str | Bytecode, traced: TrainingTrace, device: torch.device
    ) -> RankProgram:
        if device.type != "cpu":
            raise ValueError(
                f"ranks is 'launcher' and the model is on {device}: a step's arrays go to the "
                "ranks by files; move the model to the CPU (model.cpu())"
            )
        assert self._launch is not None
        kinds = [argument.init for argument in traced.arguments]
        ranks = LaunchedProgram(self._name, text_of(module), self._options, kinds, self._launch)
        return RankProgram(module, self._options, traced, RanksLibrary(ranks, traced, self))

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """A call. What fails before all ranks have met is told to the others in its place."""
        self._has_met = False
        try:
            yield
        except BaseException as error:
            if not self._has_met:
                assert self._launch is not None
                roll_of(self._launch).fail(error)
            raise

    def meet(self, ranks: LaunchedProgram) -> None:
        assert self._launch is not None
        self._has_met = True
        ranks.meet(roll_of(self._launch))


class RanksLibrary:
    """The part of a step's library (`StepLibrary`) that a call on the CPU asks for."""

    def __init__(self, ranks: LaunchedProgram, traced: TrainingTrace, steps: RankSteps):
        self._ranks, self._steps = ranks, steps
        self._arguments: list[Argument] = traced.arguments
        self._found: dict[int, np.ndarray] = {}  # the last call's results
        self.program: dict[str, Any] = {"devices": [], "queues": []}
        self.wall_ns = 0

    @property
    def said(self) -> str:
        return self._ranks.said

    def call(
        self,
        arguments: Mapping[int, np.ndarray],
        results: Mapping[int, np.ndarray],
        lent: Collection[int] = (),
    ) -> None:
        self._steps.meet(self._ranks)
        began = time.monotonic_ns()
        with self._ranks.called([arguments[i] for i in range(len(self._arguments))]) as found:
            self._found = {int(name.removeprefix("out")): found[name] for name in found}
        self.wall_ns = time.monotonic_ns() - began

    def result(self, index: int) -> np.ndarray:
        return _signed(self._found[index])

    def argument(self, index: int) -> np.ndarray:
        """Its next value."""
        update = self._arguments[index].updated_by
        assert update is not None
        return self._found[update].view(self._arguments[index].init.dtype)

    def read_argument(self, index: int, into: np.ndarray) -> None:
        np.copyto(into, self.argument(index).reshape(into.shape), casting="no")


class RankProgram(StepProgram):
    """Its plan is the ranks'."""

    library: Any

    def __init__(
        self,
        module: str | Bytecode,
        options: CompileOptions,
        traced: TrainingTrace,
        library: RanksLibrary,
    ):
        super().__init__(module, options, traced, library)

    def report(self) -> str:
        said: str = self.library.said
        return said

    def placement(self) -> NoReturn:
        self._refuse()

    def memory(self) -> NoReturn:
        self._refuse()

    def picture(self) -> NoReturn:
        self._refuse()

    def source(self) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            "the plan of a step on several ranks is theirs, and report() is what they say: for "
            "more look at the same step without ranks, whose devices are the same"
        )

    def _type(self, index: int) -> Any:
        return self.traced.arguments[index].init.dtype


def _signed(value: np.ndarray) -> np.ndarray:
    """The compiler's integers have no sign; PyTorch's have."""
    return value.view(f"i{value.dtype.itemsize}") if value.dtype.kind == "u" else value
