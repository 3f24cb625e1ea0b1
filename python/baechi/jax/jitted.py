# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of `baechi.jit`: its programs, and its calls."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pathlib
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

import jax

from baechi.checking.options import CheckOptions
from baechi.common import progress, temporary
from baechi.common.launch import warn_of_whole
from baechi.compiling import compiler
from baechi.compiling.kept import kept_bytes
from baechi.compiling.options import CompileOptions
from baechi.compiling.tools import CompileError
from baechi.importer.jax import replicas as written
from baechi.importer.jax.step import ImportedStep, import_step
from baechi.jax import random_keys
from baechi.jax.border import Border, is_wide
from baechi.jax.bound import Bound, Chosen, Way, bind
from baechi.jax.calls import describe, no_array, type_of
from baechi.jax.jax_program import MISSED, JaxProgram, Quick
from baechi.jax.lowered import Lowered
from baechi.jax.one_replica import OneReplica
from baechi.jax.overlap import why_separate
from baechi.jax.step_check import JaxCheck
from baechi.steps import resident_jax
from baechi.steps.compiled import Compiled, as_key
from baechi.steps.gpu_array import GpuArray
from baechi.steps.host_calls import refuse_within_host_calls
from baechi.steps.resident import ResidentArray

resident_jax.register(ResidentArray)
resident_jax.register(GpuArray)

_flatten = jax.tree_util.default_registry.flatten

P = ParamSpec("P")
R = TypeVar("R")


class Call(NamedTuple):
    """A call's arguments apart, and what tells its program from others."""

    key: Any
    arguments: Bound
    tree: Any
    leaves: list[Any]
    generators: list[str | None]
    static: dict[int, Any]
    donated: list[int]
    kinds: tuple[Any, ...]


class Jitted(Compiled[JaxProgram], Generic[P, R]):
    """A step that runs on several devices; see `jit`."""

    def __init__(
        self,
        step: Callable[P, R],
        donated: Chosen,
        static: Chosen,
        options: CompileOptions,
        checks: CheckOptions | None = None,
        dispatches: bool = False,
        overlaps: bool = False,
        alone: OneReplica | None = None,
    ):
        super().__init__()
        functools.update_wrapper(self, step)
        self._step = step
        self._options, self._checks = options, checks or CheckOptions()
        self._donated, self._static = donated, static
        self._dispatches, self._overlaps = dispatches, overlaps
        self._one_replica = alone
        self._programs: dict[Any, JaxProgram] = {}
        self._ways: dict[Any, Way] = {}
        # What may be called without a longer look at the arguments.
        self._quick: dict[Any, list[tuple[JaxProgram, Quick]]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._quick and (result := self._call_quickly(args, kwargs)) is not MISSED:
            return result
        call = self._call_of(args, kwargs)
        for leaf in call.leaves:
            if isinstance(leaf, ResidentArray):
                leaf.leave(self._turn)
        with self._whole_call(lambda: self._has_program_for(call)):
            self._settle()
            if not self._has_program_for(call):
                with progress.shown(self._options.verbose, identifier(self._step)):
                    self._programs[call.key] = self._compile_or_plan(call)
            program = self._latest = self._programs[call.key]
            result = self._run(call, program, call.leaves)
            self._remember(call, program, args, kwargs)
            return result

    def _has_program_for(self, call: Call) -> bool:
        """Whether it can be called as it is."""
        program = self._programs.get(call.key)
        return program is not None and not program.is_measured()

    def _compile_or_plan(self, call: Call) -> JaxProgram:
        program = self._programs.get(call.key)
        return self._compile(call) if program is None else program.replanned(identifier(self._step))

    def _call_quickly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call like an earlier one; MISSED where none was like it, or
        something is wrong with it, which the longer way tells."""
        try:
            key, leaves = self._quick_key(args, kwargs)
            known = self._quick.get(key, ())
        except (KeyError, TypeError, ValueError):
            return MISSED
        if not known:
            return MISSED
        refuse_within_host_calls("a compiled step is called")
        with self._turn:
            for program, run in known:
                if program is not self._latest:
                    self._settle()  # steps run in the order of their calls
                if (result := run(leaves)) is not MISSED:
                    self._latest = program
                    return result
        return MISSED

    def _quick_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        """What tells programs apart but for the types of the arguments, and these."""
        named = (len(args), *kwargs)
        way = self._ways[named]
        leaves, tree = _flatten(way.dynamic(args, kwargs))
        fixed = tuple(map(as_key, way.fixed(args, kwargs))) if way.static else ()
        return (named, tree, fixed, is_wide()), leaves

    def _remember(
        self, call: Call, program: JaxProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Lets the next call like this one be quick, where it can."""
        if self._checks.check is not None or any(g is not None for g in call.generators):
            return
        if program.measures():
            return
        named = (len(args), *kwargs)
        if named not in self._ways:
            self._ways[named] = Way(self._step, len(args), tuple(kwargs), self._static)
        known = self._quick.setdefault(self._quick_key(args, kwargs)[0], [])
        if all(program is not each for each, _ in known):
            if (run := program.quick_for(call.kinds, self._dispatches)) is not None:
                known.append((program, run))

    def _settle(self) -> None:
        if self._latest is not None:
            self._latest.settle()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method of a class, whose `self` is the first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        count = len(self._programs)
        compiled = f"{count} program{'s' * (count != 1)} compiled" if count else "not compiled yet"
        return f"<baechi.jit of {identifier(self._step)} on {self._options.machine}: {compiled}>"

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """The step as a module, for these arguments, of which `jax.ShapeDtypeStruct` has
        shape and type alone; nothing is compiled before its `compile()` (docs/ahead.md)."""
        call = self._call_of(args, kwargs)
        with self._whole_call(lambda: False):
            imported, returned = self._import(call, by_shape=True)
        # What is called later is the step, not with these values.
        bound = Bound((None,) * len(call.arguments.values), call.arguments.keywords)
        later = call._replace(arguments=bound, leaves=[])
        names = later.arguments.names(self._step)
        border = Border(
            identifier(self._step),
            imported.signature,
            call.generators,
            returned,
            [name for i, name in enumerate(names) if i not in call.static],
            {names[i]: repr(value) for i, value in call.static.items()},
            tuple(call.donated),
            imported.host_calls,
        )
        checked = self._checks.check is not None
        run = functools.partial(self._run, later) if checked else None
        options = dataclasses.replace(self._options.written_for(imported.replicas), replan="never")
        return Lowered(border, imported.module, options, run, self._dispatches, self._overlaps)

    def _call_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        bound = bind(self._step, args, kwargs)
        static = bound.hashable(self._step, self._static)
        donated = bound.positions(self._donated)
        dynamic = [value for i, value in enumerate(bound.values) if i not in static]
        leaves, tree = jax.tree.flatten(tuple(dynamic))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise TypeError(
                f"'{identifier(self._step)}' runs on devices of its own, not within jax.jit, "
                "jax.grad or jax.vmap: write baechi.jit around these, as in "
                "baechi.jit(jax.grad(step))"
            )
        generators = [random_keys.kind(leaf) for leaf in leaves]
        leaves = [random_keys.data_of(leaf) for leaf in leaves]
        donated = [d - sum(s < d for s in static) for d in donated if d not in static]
        try:
            kinds = tuple(map(type_of, leaves))
        except (TypeError, ValueError) as error:
            raise no_array(self._step, bound, dynamic, static) from error
        fixed = tuple((i, as_key(value)) for i, value in static.items())
        key = (tree, bound.keywords, kinds, tuple(generators), fixed, tuple(donated))
        return Call(key, bound, tree, leaves, generators, static, donated, kinds)

    def _dynamic(self, call: Call) -> Callable[..., Any]:
        """The step, of all replicas, of a call's arguments that are not static."""
        step = call.arguments.positional(self._step)
        step = _with_static(step, call.static) if call.static else step
        if self._one_replica is None:
            return step
        return self._one_replica.of_all(step, call.arguments, call.static)

    def _import(self, call: Call, by_shape: bool = False) -> tuple[ImportedStep, list[str | None]]:
        """The module, and the random generators of its results."""
        progress.phase("import")
        compiler.preload()
        plain = random_keys.PlainStep(self._dynamic(call), call.generators)
        arguments = jax.tree.unflatten(call.tree, call.leaves)
        name = identifier(self._step)
        try:
            # The first values of what is lowered are part of it.
            store = None if by_shape else kept_bytes()
            imported = import_step(
                plain, arguments, call.donated, name, by_shape=by_shape, host=True, store=store
            )
        except Exception as error:
            # JAX's own message names no argument of the step.
            error.add_note(f"called as {describe(self._step, call.arguments)}")
            raise
        return imported, plain.returned

    def _flat(self, call: Call) -> Callable[..., list[Any]]:
        """The step of a call's leaves, with flat results."""
        plain = random_keys.PlainStep(self._dynamic(call), call.generators)
        return written.unrolled(
            lambda *leaves: jax.tree.leaves(plain(*jax.tree.unflatten(call.tree, leaves)))
        )

    def _alone(
        self, program: JaxProgram, part: Callable[..., Any], leaves: Sequence[Any]
    ) -> list[Any]:
        """Runs a part of a step, where the program's operators are if it has any by name."""
        none = Chosen(frozenset(), frozenset())
        options = dataclasses.replace(
            self._options, pin=None, placement=None, budget="0", replan="never"
        )
        with temporary.folder("baechi-jit-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the placement is of more than the part
            placement = pathlib.Path(folder) / "placement.json"
            placement.write_text(program.placement_file())
            placed = dataclasses.replace(options, placement=placement)
            try:
                return jax.tree.leaves(Jitted(part, none, none, placed)(*leaves))
            except CompileError:
                return jax.tree.leaves(Jitted(part, none, none, options)(*leaves))

    def _run(self, call: Call, program: JaxProgram, leaves: list[Any]) -> Any:
        """Calls the program, and compares the call with JAX's if one is due."""
        due = self._checks.is_due(program.calls)
        check = JaxCheck(self._flat(call), leaves, self._checks) if due else None
        result = program.run(leaves)
        if check is not None:
            alone = functools.partial(self._alone, program)
            check.compare(jax.tree.leaves(result), program.signature.results, alone)
        return result

    def _compile(self, call: Call) -> JaxProgram:
        imported, returned = self._import(call)
        name, separate = identifier(self._step), ""
        options = self._options.written_for(imported.replicas)
        warn_of_whole(options.replicas, "give ranks='launcher', and they share its devices")
        if self._overlaps:
            options = dataclasses.replace(options, replan="never")
            checked = self._checks.check is not None
            generators = call.generators, returned
            separate = why_separate(name, *generators, imported.host_calls, options, checked)
        program = JaxProgram(
            imported.signature,
            returned,
            self._turn,
            imported.module,
            options,
            host_calls=imported.host_calls,
            name=name,
        )
        program.returns_early = self._dispatches
        if self._overlaps:
            program.overlap_calls(separate)
        return program


def _with_static(step: Callable[..., Any], static: dict[int, Any]) -> Callable[..., Any]:
    """The step of the other arguments, which keep their names."""

    def dynamic_step(*dynamic: Any) -> Any:
        rest = iter(dynamic)
        total = len(dynamic) + len(static)
        return step(*(static[i] if i in static else next(rest) for i in range(total)))

    parameters = list(inspect.signature(step).parameters.values())
    kept = [parameter for i, parameter in enumerate(parameters) if i not in static]
    vars(dynamic_step)["__signature__"] = inspect.Signature(kept)
    return dynamic_step


def identifier(step: Callable[..., Any]) -> str:
    name = getattr(step, "__name__", "step")
    return name if name.isidentifier() else "step"
