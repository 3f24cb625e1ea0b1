# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of `baechi.jit` whose devices are divided among the processes that mpirun, torchrun or
srun has started (docs/jit.md): all of them make its calls, and get the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from baechi.common import progress
from baechi.common.launch import Launch
from baechi.compiling.tools import CompileError
from baechi.importer.jax.signature import Signature, refuse_given_twice
from baechi.jax import random_keys
from baechi.jax.jax_program import JaxProgram
from baechi.jax.jitted import Call, Jitted, identifier
from baechi.steps import resident_jax
from baechi.steps.launched_step import LaunchedProgram, launch_for
from baechi.steps.roll import roll_of

P = ParamSpec("P")
R = TypeVar("R")


class LaunchedStep(Jitted[P, R]):
    """A step of ranks="launcher"; see `jit`. Alone it is as any other."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._launch: Launch | None = None
        self._looked = False
        self._known: dict[Any, _Program] = {}
        self._last: _Program | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self._looked:
            # Not before: a program may call jax.distributed.initialize after it has made the step.
            self._launch, self._looked = launch_for(identifier(self._step)), True
        if self._launch is None:
            return super().__call__(*args, **kwargs)
        roll = roll_of(self._launch)
        with roll.failing():
            call = self._call_of(args, kwargs)
        with self._whole_call(lambda: call.key in self._known):
            with progress.shown(self._options.verbose, identifier(self._step)):
                with roll.failing():
                    if call.key not in self._known:
                        self._known[call.key] = self._program_of(call, self._launch)
                program = self._last = self._known[call.key]
                program.ranks.meet(roll)
                result: R = program.run(call.leaves)
            return result

    def report(self) -> str:
        """Rank 0's, of the program called last."""
        return super().report() if self._last is None else self._last.ranks.said

    def _called(self) -> JaxProgram:
        if self._last is None:
            return super()._called()
        raise RuntimeError(
            "the plan of a step on several ranks is theirs, and report() is what they say: for "
            "more look at the same step without ranks, whose devices are the same"
        )

    def _program_of(self, call: Call, launch: Launch) -> _Program:
        # Values come with each call, so nothing of these is in the module.
        shape_of: Any = jax.ShapeDtypeStruct
        shapes = [shape_of(shape, dtype, weak_type=weak) for shape, dtype, weak in call.kinds]
        imported, returned = self._import(call._replace(leaves=shapes), by_shape=True)
        if imported.host_calls:
            operations = [str(each) for one in imported.host_calls for each in one.operations]
            raise CompileError(
                "ranks is 'launcher', and JAX computes what has no lowering in the process that "
                "calls the step, which several ranks do not do yet:\n  " + "\n  ".join(operations)
            )
        options = self._options.written_for(imported.replicas)
        kinds = [argument.init for argument in imported.signature.arguments]
        ranks = LaunchedProgram(identifier(self._step), imported.text, options, kinds, launch)
        return _Program(ranks, imported.signature, returned)


class _Program:
    """For one set of shapes, types and static values."""

    def __init__(
        self,
        ranks: LaunchedProgram,
        signature: Signature,
        returned: Sequence[str | None],
    ):
        self.ranks = ranks
        self._signature, self._returned = signature, returned
        self._updated = {
            i: a.updated_by for i, a in enumerate(signature.arguments) if a.updated_by is not None
        }

    def run(self, leaves: Sequence[Any]) -> Any:
        names = [argument.name for argument in self._signature.arguments]
        refuse_given_twice(names, leaves, self._updated)
        with self.ranks.called(leaves) as found:
            results = [self._result(k, found) for k in range(len(self._returned))]
        return jax.tree.unflatten(self._signature.result_tree, results)

    def _result(self, k: int, found: Mapping[str, np.ndarray]) -> Any:
        kind = self._signature.result_types[k]
        if kind.dtype == jax.dtypes.float0:  # the derivative by what is no real number
            return np.zeros(kind.shape, kind.dtype)
        # The compiler's integers have no sign.
        value = found[f"out{k}"].view(kind.dtype)
        generator = self._returned[k]
        return (
            resident_jax.as_array(value, kind.weak_type)
            if generator is None
            else random_keys.wrap(value, generator)
        )
