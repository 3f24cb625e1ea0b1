# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.jit` in place of `jax.jit`: the same step on several devices."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from baechi import random_keys
from baechi.compiled import Compiled, as_key
from baechi.importer.jax import ImportedStep, import_step
from baechi.importer.signature import is_weak
from baechi.program import CompileOptions, Program
from baechi.resident import ResidentArray, Residents


def jit(
    step: Callable | None = None,
    *,
    machine: str = "host:2",
    placer: str = "msct",
    budget: str = "auto",
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
    static_argnames: str | Sequence[str] = (),
    pin: Mapping[str, str] | None = None,
    placement: str | os.PathLike | None = None,
    profile: str | os.PathLike | None = None,
    costs: str = "measured",
) -> Any:
    """Compiles `step` for the devices of `machine`; usable as a decorator.

    machine: `host:N[@SIZE]` (`host:2`, `host:4@2GiB`: a memory limit for each
        device) or a machine file (docs/formats.md).
    placer, budget: as `baechi-run --place --budget`.
    donate_argnums: arguments that the step returns the next values of. These
        stay on their devices; what is returned for them is a ResidentArray.
    static_argnums: hashable Python values; each set of them is a program.
        Negative positions, here and there, count from the end of a call's arguments.
    donate_argnames, static_argnames: the same by name.
    pin: patterns of operators' or arguments' names (`*`, `?`, `[...]`) to
        devices: `{"decoder/*": "host1"}`.
    placement: a placement file with names; what it places stays there.
    profile: the file of measured kernels, which grows; default: one for this
        user, in the cache folder.
    costs: `measured`, or `roofline` to measure nothing.

    Arguments and results are any pytrees of arrays. A call with other shapes,
    types or static values compiles again. Raises ImportFailure (an operation
    that cannot be imported, with its source line), CompileError (no placement
    fits, a bad option) and StepError (a step that failed).
    """
    if step is None:
        options = {key: value for key, value in locals().items() if key != "step"}
        return functools.partial(jit, **options)
    options = CompileOptions(machine, placer, budget, pin, placement, profile, costs)
    donated = _positions(donate_argnums) + _named(step, donate_argnames)
    static = _positions(static_argnums) + _named(step, static_argnames)
    return Jitted(step, donated, static, options)


class Jitted(Compiled["_Program"]):
    """A step that runs on several devices; see `jit`."""

    def __init__(
        self,
        step: Callable,
        donated: list[int],
        static: list[int],
        options: CompileOptions,
    ):
        super().__init__()
        functools.update_wrapper(self, step)
        self._step = step
        self._options = options
        self._donated, self._static = donated, static
        self._programs: dict[Any, _Program] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._program_for(args, kwargs) as (program, leaves):
            return program.run(leaves)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method of a class, whose `self` is the first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> str:
        """The imported module as MLIR text, for these arguments."""
        with self._program_for(args, kwargs) as (program, _):
            return program.imported.text

    @contextlib.contextmanager
    def _program_for(self, args, kwargs):
        """The program and the leaves of its arguments, while this thread has its turn."""
        if kwargs:
            bound = inspect.signature(self._step).bind(*args, **kwargs)
            if bound.kwargs:
                raise TypeError(f"keyword-only arguments are not taken: {', '.join(bound.kwargs)}")
            args = bound.args
        static = {i: args[i] for i in _from_start(self._static, len(args))}
        donated = _from_start(self._donated, len(args))
        dynamic = [value for i, value in enumerate(args) if i not in static]
        leaves, tree = jax.tree.flatten(tuple(dynamic))
        generators = [random_keys.kind(leaf) for leaf in leaves]
        leaves = [random_keys.data_of(leaf) for leaf in leaves]
        donated = [d - sum(s < d for s in static) for d in donated if d not in static]
        kinds = tuple(map(_type, leaves))
        fixed = tuple((i, as_key(value)) for i, value in static.items())
        key = (tree, kinds, tuple(generators), fixed, tuple(donated))
        for leaf in leaves:
            if isinstance(leaf, ResidentArray):
                leaf.leave(self._turn)
        with self._whole_call(lambda: key in self._programs):
            if key not in self._programs:
                self._programs[key] = self._compile(tree, leaves, generators, static, donated)
            self._latest = self._programs[key]
            yield self._latest, leaves

    def _compile(self, tree, leaves, generators, static, donated) -> _Program:
        step = _with_static(self._step, static) if static else self._step
        plain = random_keys.PlainStep(step, generators)
        arguments = jax.tree.unflatten(tree, leaves)
        imported = import_step(plain, arguments, donated, name=_identifier(self._step))
        return _Program(imported, plain.returned, self._options, self._turn)


class _Program(Program):
    """The step for one set of shapes, types and static values."""

    def __init__(
        self,
        imported: ImportedStep,
        generators: list[str | None],
        options: CompileOptions,
        turn: threading.RLock,
    ):
        super().__init__(imported.text, options)
        self.imported, self._generators = imported, generators
        self._residents = Residents(self.library, turn)

    def run(self, leaves: list[Any]) -> Any:
        signature = self.imported.signature
        updated = {i for i, a in enumerate(signature.arguments) if a.updated_by is not None}
        moved = {
            i: self._as_argument(i, leaf)
            for i, leaf in enumerate(leaves)
            if not self._residents.holds(i, leaf)
        }
        self._residents.before_step({i: leaves[i] for i in updated})
        for i, value in moved.items():
            self.library.set_argument(i, value)
        self.step()
        results: list[Any] = [None] * len(signature.results)
        for i in updated:
            k = signature.arguments[i].updated_by
            results[k] = self._residents.after_step(i, signature.result_types[k].dtype)
        for k, result in enumerate(results):
            if result is None:
                value = self.library.result(k)
                # The compiler's integers have no sign.
                results[k] = jax.numpy.asarray(value.view(signature.result_types[k].dtype))
        for k, generator in enumerate(self._generators):
            if generator is not None:
                results[k] = random_keys.wrap(np.asarray(results[k]), generator)
        return jax.tree.unflatten(signature.result_tree, results)

    def _as_argument(self, index: int, leaf: Any) -> np.ndarray:
        expected = self.imported.signature.arguments[index].init
        return np.ascontiguousarray(np.asarray(leaf), expected.dtype).reshape(expected.shape)


def _type(leaf: Any) -> tuple[tuple[int, ...], np.dtype, bool]:
    """Shape and type as JAX has them, and whether the type is weak: without its x64
    mode, 64 bits become 32."""
    weak = is_weak(leaf)
    if not hasattr(leaf, "dtype"):
        leaf = jax.numpy.asarray(leaf)
    return tuple(leaf.shape), jax.dtypes.canonicalize_dtype(leaf.dtype), weak


def _positions(given: int | Sequence[int]) -> list[int]:
    return [given] if isinstance(given, int) else sorted(set(given))


def _named(step: Callable, names: str | Sequence[str]) -> list[int]:
    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:  # a builtin may have no signature
        return []
    known = list(inspect.signature(step).parameters)
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(
            f"the step has no argument '{unknown[0]}'; its arguments: {', '.join(known)}"
        )
    return [known.index(name) for name in wanted]


def _from_start(positions: list[int], count: int) -> list[int]:
    """The positions among `count` arguments; those of left-off ones are none."""
    found = (p + count if p < 0 else p for p in positions)
    return sorted({p for p in found if 0 <= p < count})


def _with_static(step: Callable, static: dict[int, Any]) -> Callable:
    """The step of the other arguments, which keep their names."""

    def dynamic_step(*dynamic):
        rest = iter(dynamic)
        total = len(dynamic) + len(static)
        return step(*(static[i] if i in static else next(rest) for i in range(total)))

    parameters = list(inspect.signature(step).parameters.values())
    kept = [parameter for i, parameter in enumerate(parameters) if i not in static]
    dynamic_step.__signature__ = inspect.Signature(kept)
    return dynamic_step


def _identifier(step: Callable) -> str:
    name = getattr(step, "__name__", "step")
    return name if name.isidentifier() else "step"
