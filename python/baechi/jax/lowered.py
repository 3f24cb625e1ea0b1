# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step ahead of its calls: a module, then a program."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from baechi.common import progress
from baechi.common.bytecode import Bytecode, text_of
from baechi.compiling.modules import graph_of
from baechi.compiling.options import CompileOptions
from baechi.jax import overlap, saved
from baechi.jax.border import Border, is_wide
from baechi.jax.jax_program import MISSED, JaxProgram, Quick
from baechi.steps import compiled
from baechi.steps.host_calls import refuse_within_host_calls
from baechi.steps.library import StepLibrary
from baechi.steps.resident import ResidentArray

Run = Callable[[JaxProgram, list[Any]], Any]


class Lowered:
    """A step as a module, as `jax.stages.Lowered`: for one set of shapes, types and
    static values. Nothing of it is measured, placed or compiled yet."""

    def __init__(
        self,
        border: Border,
        module: str | Bytecode,
        options: CompileOptions,
        run: Run | None = None,
        dispatches: bool = False,
        overlaps: bool = False,
    ):
        """run: calls the program, with flat arguments; None: nothing but `program.run`.
        dispatches: calls return while the step runs; overlaps: and overlap."""
        self._border, self._module, self._options, self._run = border, module, options, run
        self._dispatches, self._overlaps = dispatches, overlaps

    def as_text(self) -> str:
        """The module in MLIR (docs/import.md)."""
        return text_of(self._module)

    __str__ = as_text

    def __repr__(self) -> str:
        return f"<'{self._border.name}' lowered for {self._options.machine}, not compiled>"

    @property
    def border(self) -> Border:
        """Names, types and structures of what the step takes and returns."""
        return self._border

    @property
    def options(self) -> CompileOptions:
        """What it will be compiled with."""
        return self._options

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments that are not static, a tuple."""
        return self._border.signature.tree

    @property
    def out_tree(self) -> Any:
        return self._border.signature.result_tree

    @property
    def out_info(self) -> Any:
        """Shapes and types of what the step returns, in its structure; of random keys
        those of their data."""
        return jax.tree.unflatten(self.out_tree, self._border.signature.result_types)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Among the arguments that are not static."""
        return self._border.donated

    def names(self) -> list[str]:
        """Of the operators and arguments, as the placement will have them: what the
        patterns of `pin` match. Raises CompileError."""
        return [operator["name"] for operator in graph_of(self)["ops"]]

    def compile(self) -> Compiled:
        """Measures, places and compiles. Raises CompileError and StepError."""
        with progress.shown(self._options.verbose, self._border.name):
            return Compiled(
                self._border,
                self._module,
                self._options,
                self._run,
                dispatches=self._dispatches,
                overlaps=self._overlaps,
            )


class Compiled(compiled.Compiled[JaxProgram]):
    """A compiled step, as `jax.stages.Compiled`: called with the arguments that are not
    static. Others than it was compiled for are a TypeError; it never compiles again."""

    def __init__(
        self,
        border: Border,
        module: str | Bytecode | None,
        options: CompileOptions | None,
        run: Run | None = None,
        library: StepLibrary | None = None,
        dispatches: bool = False,
        overlaps: bool = False,
    ):
        super().__init__()
        self._border = border
        self._run = run or _run
        separate = ""
        if overlaps:
            generators = border.given, border.returned
            separate = overlap.why_separate(
                border.name, *generators, border.host_calls, options, run is not None
            )
        with self._whole_call(lambda: library is not None):
            self._program = self._latest = JaxProgram(
                border.signature,
                border.returned,
                self._turn,
                module,
                options,
                library,
                border.host_calls,
                border.name,
            )
        self._program.returns_early = dispatches
        if overlaps:
            self._program.overlap_calls(separate)
        self._quick: Quick | None = None
        if run is None and all(generator is None for generator in border.given):
            kinds = [
                (a.init.shape, np.dtype(a.init.dtype), None) for a in border.signature.arguments
            ]
            self._quick = self._program.quick_for(kinds, dispatches)
        self._is_wide = is_wide()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._quick and not kwargs and (result := self._call_quickly(args)) is not MISSED:
            return result
        leaves = self._border.leaves(args, kwargs)
        for leaf in leaves:
            if isinstance(leaf, ResidentArray):
                leaf.leave(self._turn)
        with self._turn:
            return self._run(self._program, leaves)

    def _call_quickly(self, args: tuple[Any, ...]) -> Any:
        """MISSED where the longer way must say what is wrong, if anything is."""
        leaves, tree = jax.tree.flatten(args)
        if tree != self._border.signature.tree or is_wide() != self._is_wide:
            return MISSED
        refuse_within_host_calls("a compiled step is called")
        with self._turn:
            return self._quick(leaves) if self._quick else MISSED

    def __repr__(self) -> str:
        devices = [device["name"] for device in self._program.library.program["devices"]]
        return f"<'{self._border.name}' compiled for {', '.join(devices)}>"

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments, a tuple."""
        return self._border.signature.tree

    @property
    def out_tree(self) -> Any:
        return self._border.signature.result_tree

    def as_text(self) -> str:
        """The module in MLIR; RuntimeError if the step was loaded from a file."""
        return text_of(self._program.source()[0])

    def save(self, file: str | os.PathLike[str]) -> pathlib.Path:
        """Writes the step as one file, which `baechi.load_step` takes on machines with
        this one's processor features: it is there whole or not at all.

        Raises ValueError for arguments or results in containers that a file cannot say
        (docs/ahead.md), OSError where it cannot be written."""
        return saved.write(pathlib.Path(file), self._border, self._program.library)


def load_step(
    file: str | os.PathLike[str], async_dispatch: bool = True, overlap_steps: bool = False
) -> Compiled:
    """The step that `save` wrote, ready to be called: nothing is traced or compiled.

    It is machine code, which this process will run: take files of people you trust.
    One that is damaged, that others may write, of another version or for another kind of
    machine is refused by a StepError with the reason, before any of its code is mapped.
    async_dispatch, overlap_steps: as for `baechi.jit`.
    """
    overlap.check_dispatch(async_dispatch, overlap_steps)
    border, library = saved.read(pathlib.Path(file))
    return Compiled(
        border, None, None, library=library, dispatches=async_dispatch, overlaps=overlap_steps
    )


def _run(program: JaxProgram, leaves: list[Any]) -> Any:
    return program.run(leaves)
