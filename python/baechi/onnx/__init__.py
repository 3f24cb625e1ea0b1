# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models on several devices. See docs/onnx.md."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

try:
    import onnx as _onnx  # noqa: F401
    import torch_mlir as _torch_mlir  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"baechi.onnx needs the package '{error.name}': pip install '.[onnx]' in a "
        "checkout of Baechi",
        name=error.name,
    ) from error

import numpy as np

from baechi.common import progress
from baechi.compiling import compiler
from baechi.compiling.options import limited, replan_of
from baechi.compiling.tools import CompileError
from baechi.importer.common.errors import ImportFailure
from baechi.importer.onnx.model import ImportedModel, import_model
from baechi.steps.compiled import Compiled
from baechi.steps.library_file import StepError
from baechi.steps.program import CompileOptions, Program

if TYPE_CHECKING:
    import onnx

__all__ = [
    "CompileError",
    "CompiledModel",
    "ImportFailure",
    "ImportedModel",
    "StepError",
    "compile",
    "import_model",
]


_MODEL = "model"


def compile(
    model: str | os.PathLike | onnx.ModelProto,
    *,
    sizes: Mapping[str, int] | None = None,
    machine: str = "host:2",
    placer: str = "msct",
    budget: str = "auto",
    expert: Mapping[str, str] | str | os.PathLike | None = None,
    pin: Mapping[str, str] | None = None,
    placement: str | os.PathLike | None = None,
    profile: str | os.PathLike | None = None,
    costs: str = "measured",
    measure: str = "auto",
    cuda_math: str = "fp32",
    cuda_convolutions: str = "measured",
    splits: str = "auto",
    split: Mapping[str, tuple[int, int] | str] | None = None,
    replan: str | None = None,
    transfers: str = "lend",
    fit_memory: str = "auto",
    unroll: str = "auto",
    memory: str | int | None = None,
    spill_to: str | None = None,
    verbose: bool | None = None,
) -> CompiledModel:
    """Compiles a model (a file or what `onnx.load` gives) for the devices of `machine`.

    sizes: of the inputs' named dimensions, such as `{"batch": 8}`.
    machine, placer, budget, expert, pin, placement, profile, costs, measure, cuda_math,
        cuda_convolutions, splits, split, replan, transfers, fit_memory, unroll, memory,
        spill_to, verbose: as for `baechi.jit`; names are the initializers' and the nodes'.
    Raises ImportFailure (all nodes that cannot be lowered), ValueError (a machine that is none, as
    other options) and CompileError.
    """
    options = CompileOptions(
        machine=limited(machine, memory, spill_to),
        placer=placer,
        budget=budget,
        expert=expert,
        pin=pin,
        placement=placement,
        profile=profile,
        costs=costs,
        measure=measure,
        cuda_math=cuda_math,
        cuda_convolutions=cuda_convolutions,
        splits=splits,
        split=split,
        transfers=transfers,
        fit_memory=fit_memory,
        unroll=unroll,
        verbose=verbose,
        replan=replan_of(replan),
    )
    with progress.shown(verbose, _MODEL):
        progress.phase("import")
        compiler.preload()
        return CompiledModel(import_model(model, sizes), options)


class CompiledModel(Compiled[Program]):
    """A model that runs on several devices; its weights stay there. See `compile`."""

    def __init__(self, imported: ImportedModel, options: CompileOptions):
        super().__init__()
        self._imported, self._verbose = imported, options.verbose
        self._program = self._latest = Program(imported.text, options)
        self._types = [argument.init for argument in imported.arguments]
        names = [argument.name for argument in imported.arguments]
        self._places = {name: i for i, name in enumerate(names)}
        self._set_weights()
        self.inputs = [name for name in names if name not in imported.weights]
        self.outputs = imported.results
        self._defaults = {self._places[name] for name in imported.defaults}
        self._other: set[str] = set()  # the inputs that have not their defaults

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs for inputs given by position or by name: an array, or a
        tuple of them where the model has several. Inputs with defaults are given
        by name, for this call."""
        if len(args) > len(self.inputs):
            raise TypeError(f"the model has {len(self.inputs)} inputs, got {len(args)}")
        given = dict(zip(self.inputs, args))
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"input '{min(twice)}' is given twice")
        given |= kwargs
        if settled := sorted(given.keys() & set(self._imported.settled)):
            raise TypeError(
                f"input '{settled[0]}' has a default that the compiled program is made for: "
                "remove its initializer from the model, or give the initializer that value"
            )
        defaults = self._imported.defaults
        if unknown := given.keys() - set(self.inputs) - set(defaults):
            names = ", ".join([*self.inputs, *defaults])
            raise TypeError(f"the model has no input '{min(unknown)}'; its inputs: {names}")
        if missing := [name for name in self.inputs if name not in given]:
            raise TypeError(f"input '{missing[0]}' is missing")
        with self._whole_call(lambda: not self._program.is_measured()):
            if self._program.is_measured():
                with progress.shown(self._verbose, _MODEL):
                    self._program = self._latest = self._program.replanned(_MODEL)
                self._set_weights()
            for name in self._other - given.keys():
                self._set(name, self._imported.weights[name])
            self._other = given.keys() & set(defaults)
            values = {self._places[name]: self._value(name, x) for name, x in given.items()}
            # What has a default keeps its place for it.
            self._program.step(values, lent=values.keys() - self._defaults)
            results = tuple(
                # The compiler's integers have no sign.
                self._program.library.result(i).view(dtype)
                for i, dtype in enumerate(self._imported.result_types)
            )
        return results[0] if len(results) == 1 else results

    def lower(self) -> str:
        """The imported module as MLIR text."""
        return self._imported.text

    def _set_weights(self) -> None:
        for name, value in self._imported.weights.items():
            self._set(name, value)

    def _set(self, name: str, given: Any) -> None:
        self._program.library.set_argument(self._places[name], self._value(name, given))

    def _value(self, name: str, given: Any) -> np.ndarray:
        """What an argument of that name is given, as it takes it."""
        index = self._places[name]
        kind, value = self._types[index], np.asarray(given)
        if value.shape != kind.shape:
            raise ValueError(f"input '{name}' has shape {value.shape}, expected {kind.shape}")
        # Python's own numbers are of no type.
        if hasattr(given, "dtype") and not np.can_cast(value.dtype, kind.dtype):
            raise TypeError(
                f"input '{name}' is {value.dtype}, expected {kind.dtype}: give "
                f"{name}.astype('{kind.dtype}')"
            )
        return np.asarray(value, kind.dtype, order="C")
