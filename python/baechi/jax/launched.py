# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of `baechi.jit` whose devices are divided among the processes that mpirun, torchrun or
srun has started (docs/jit.md): all of them make its calls, and get the results."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from baechi.common import progress
from baechi.common.launch import Launch, find_launch
from baechi.compiling.options import CompileOptions
from baechi.compiling.tools import CompileError
from baechi.importer.jax.signature import Signature, refuse_given_twice
from baechi.jax import random_keys
from baechi.jax.jax_program import JaxProgram
from baechi.jax.jitted import Call, Jitted, identifier
from baechi.steps import launched, resident_jax
from baechi.steps.ranks import words_of
from baechi.steps.roll import roll_of

P = ParamSpec("P")
R = TypeVar("R")
_SHOWN = 4  # of the arguments, the last ones: what comes before is mostly parameters


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
            self._launch, self._looked = _launch_for(identifier(self._step)), True
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
                if roll.meet(program.digest, program.what, not program.is_joined):
                    program.leave()
                result: R = program.run(call.leaves)
            return result

    def report(self) -> str:
        """Rank 0's, of the program called last."""
        return super().report() if self._last is None else self._last.said

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
        step = _Step(imported.text, dataclasses.replace(options, replan="never"))
        return _Program(identifier(self._step), step, imported.signature, returned, launch)


def _launch_for(name: str) -> Launch | None:
    launch = find_launch()
    if launch is not None and launch.here < launch.ranks:
        raise ValueError(
            f"'{name}' has ranks='launcher', and {launch.launcher} has started {launch.ranks} "
            f"processes, {launch.here} of them on this machine: a step's arrays go to them by "
            "files; start all on one machine, or run the step's module with baechi-run"
        )
    return launch


@dataclasses.dataclass(frozen=True)
class _Step:
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


class _Program:
    """For one set of shapes, types and static values. said: by rank 0, of its last call."""

    def __init__(
        self,
        name: str,
        step: _Step,
        signature: Signature,
        returned: Sequence[str | None],
        launch: Launch,
    ):
        self._step, self._launch = step, launch
        self.digest = hashlib.blake2b(step.text.encode(), digest_size=16).hexdigest()
        kinds = [f"{a.init.dtype}{list(a.init.shape)}" for a in signature.arguments]
        more = f" and {len(kinds) - _SHOWN} more" if len(kinds) > _SHOWN else ""
        self.what = f"'{name}' of {', '.join(kinds[-_SHOWN:]) or 'nothing'}{more}"
        self._signature, self._returned = signature, returned
        self._updated = {
            i: a.updated_by for i, a in enumerate(signature.arguments) if a.updated_by is not None
        }
        self._joined: launched.First | launched.Other | None = None
        self.said = ""

    @property
    def is_joined(self) -> bool:
        return self._joined is not None

    def leave(self) -> None:
        """All ranks join anew."""
        if self._joined is not None:
            self._joined.taken()
            self._joined.end()
            self._joined = None

    def run(self, leaves: Sequence[Any]) -> Any:
        arguments = self._signature.arguments
        names = [argument.name for argument in arguments]
        refuse_given_twice(names, leaves, self._updated)
        given = [
            np.ascontiguousarray(np.asarray(leaf), each.init.dtype).reshape(each.init.shape)
            for leaf, each in zip(leaves, arguments, strict=True)
        ]
        if self._joined is None:
            self._joined = launched.join(self._step, self._launch)
        try:
            outputs, self.said = self._joined.call(given, 1)
            with np.load(outputs) as found:
                results = [self._result(k, found) for k in range(len(self._returned))]
        except BaseException:
            self.leave()
            raise
        self._joined.taken()
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
