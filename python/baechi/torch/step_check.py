# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled training step beside the same step of eager PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from baechi.checking.compare import Difference, Disturbed, first_difference
from baechi.checking.options import CheckError, CheckOptions
from baechi.compiling.options import CompileOptions
from baechi.torch.arrays import to_numpy
from baechi.torch.bisect import Parts
from baechi.torch.eager import Snapshot, run_eagerly, values_of
from baechi.torch.inputs import Inputs
from baechi.torch.short_types import shortened
from baechi.torch.state import State
from baechi.torch.step_program import StepProgram
from baechi.torch.training_trace import Phase, Recipe

_DRAWS = 2
_REFERENCE = "PyTorch"


@dataclasses.dataclass
class StepCheck:
    """One call of a program, which is compared."""

    program: StepProgram
    state: State
    inputs: Inputs
    phase: Phase
    recipe: Recipe
    options: CheckOptions
    compile: CompileOptions

    def run(self) -> tuple[torch.Tensor, Any, torch.Tensor | None]:
        """The step's own results. Raises CheckError, and whatever the step raises: then
        nothing has changed."""
        before = self._snapshot()
        failed: Exception | None = None
        try:
            theirs = self._eager()
        except Exception as error:  # then the step's own is to be raised
            failed, theirs = error, {}
        finally:
            eager_random = torch.get_rng_state()
            before.restore()
        start = self._start()
        result = self.program.run(self.state, self.inputs, self.phase, self.recipe.gradients)
        try:
            if failed is not None:
                raise CheckError(
                    f"PyTorch's own step raises {type(failed).__name__}: {failed}; the compiled "
                    "one does not",
                    "loss",
                    float("inf"),
                    0.0,
                ) from failed
            ours = self._values(result, start)
            self._compare(before, theirs, ours, eager_random)
        except BaseException:
            before.restore()
            raise
        return result

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.state, self.recipe, self.program.traced.constants.values())

    def _eager(self, tensors: list[torch.Tensor] | None = None) -> dict[str, np.ndarray]:
        given = self.inputs.tensors if tensors is None else tensors
        copies = [tensor.detach().clone() for tensor in given]  # a model may change them
        start = self._start()
        result = run_eagerly(self.state, self.recipe, self.inputs, self.phase, copies)
        return self._values(result, start)

    def _start(self) -> dict[str, torch.Tensor]:
        """Parameters whose update is all that shows their gradient: the optimizer keeps
        nothing of it, and beside a large parameter a wrong one is small."""
        plain = [c for c in self.phase.cohorts if not c.group.rule.tensors]
        names = [name for cohort in plain for name in cohort.parameters]
        return {name: self.state.parameters[name].detach().clone() for name in names}

    def _values(self, result: Any, start: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
        changed = self.program.traced.constants.values()
        found = values_of(self.state, self.phase, result, changed)
        return found | {
            f"{name} (its change)": to_numpy(self.state.parameters[name].detach() - old)
            for name, old in start.items()
        }

    def _compare(
        self,
        before: Snapshot,
        theirs: dict[str, np.ndarray],
        ours: dict[str, np.ndarray],
        random: torch.Tensor,
    ) -> None:
        names = [name for name in theirs if name in ours]

        def kept(runs: Callable[[], Sequence[Sequence[np.ndarray]]]) -> Disturbed:
            """With all as it is now afterwards."""

            def run() -> Sequence[Sequence[np.ndarray]]:
                after = self._snapshot()
                try:
                    return runs()
                finally:
                    before.restore()
                    after.restore()

            return run

        def of(found: dict[str, np.ndarray]) -> list[np.ndarray]:
            return [found[name] for name in names]

        def disturbed() -> list[list[np.ndarray]]:
            inputs = self.inputs.tensors
            return [of(self._eager(before.disturb(inputs, seed))) for seed in range(_DRAWS)]

        def rounded() -> list[np.ndarray]:
            before.restore()
            return of(self._eager())

        found = first_difference(
            of(ours),
            of(theirs),
            self.options,
            _REFERENCE,
            kept(disturbed),
            kept(lambda: shortened(rounded)),
        )
        if found is None:
            return
        name = names[found.index]
        if not torch.equal(random, torch.get_rng_state()):
            note = "\nthe step has drawn other random numbers than PyTorch (docs/torch.md, dropout)"
        else:
            note = ""
        before.restore()
        raise self._error(before, name, found, theirs[name], note)

    def _error(
        self, before: Snapshot, name: str, found: Difference, expected: np.ndarray, note: str
    ) -> CheckError:
        """With the first operation that differs, where there is one."""
        traced = self.program.traced
        given = self.program.given(self.state, self.inputs, self.phase, self.recipe.gradients)
        before.restore()  # what was drawn
        names = [argument.name for argument in traced.arguments]
        placement = self.program.placement_file()
        parts = Parts(traced.graph, names, given, self.options, self.compile, placement)
        suspect = parts.first_wrong()
        message = f"'{name}' after the step is not PyTorch's: {found.text}{note}"
        if suspect is not None:
            message += f"\n{suspect}"
            operator, source = suspect.operator, suspect.source
            return CheckError(message, name, found.error, found.allowed, operator, source)
        if name in traced.results:
            value = parts.results()[traced.results.index(name)]
            allowed = dataclasses.replace(self.options, tolerance=found.allowed)
            again = first_difference([value], [expected], allowed, _REFERENCE, list)
            if again is not None:
                message += (
                    "\nthe operations that were traced give it too, computed by PyTorch one by "
                    "one: the trace is of another step than the model's"
                )
                return CheckError(message, name, found.error, found.allowed)
        message += "\nno operation is to blame: cut into parts, the step gives PyTorch's values"
        return CheckError(message, name, found.error, found.allowed)
