# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.jit` in place of `jax.jit`: the same step on several devices."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import pathlib
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, ParamSpec, TypedDict, TypeVar, Unpack, overload

import jax

from baechi.checking.options import Check, CheckOptions, Tolerance
from baechi.common import progress, temporary
from baechi.compiling.options import CompileOptions, beside
from baechi.compiling.tools import CompileError
from baechi.importer.jax import replicas as written
from baechi.importer.jax.step import ImportedStep, import_step
from baechi.jax import random_keys
from baechi.jax.border import Border, is_wide
from baechi.jax.bound import Bound, Chosen, Way, bind, choose
from baechi.jax.calls import describe, no_array, type_of
from baechi.jax.jax_program import MISSED, JaxProgram, Quick
from baechi.jax.lowered import Lowered
from baechi.jax.overlap import why_separate
from baechi.jax.step_check import JaxCheck
from baechi.steps import resident_jax
from baechi.steps.compiled import Compiled, as_key
from baechi.steps.gpu_array import GpuArray
from baechi.steps.library import refuse_within_host_calls
from baechi.steps.resident import ResidentArray

resident_jax.register(ResidentArray)
resident_jax.register(GpuArray)

_flatten = jax.tree_util.default_registry.flatten

P = ParamSpec("P")
R = TypeVar("R")


class _Options(TypedDict, total=False):
    """What `jit` takes besides the step."""

    machine: str | os.PathLike[str]
    placer: str
    budget: str
    expert: Mapping[str, str] | str | os.PathLike[str] | None
    donate_argnums: int | Sequence[int]
    static_argnums: int | Sequence[int]
    donate_argnames: str | Sequence[str]
    static_argnames: str | Sequence[str]
    pin: Mapping[str, str] | None
    placement: str | os.PathLike[str] | None
    profile: str | os.PathLike[str] | None
    costs: str
    cuda_math: str
    cuda_convolutions: str
    splits: str
    split: Mapping[str, tuple[int, int] | str] | None
    replicas: int
    exchange: str | None
    slice_bytes: int | None
    objective: str
    transfers: str
    fit_memory: str
    check: Check
    check_tolerance: Tolerance
    verbose: bool | None
    async_dispatch: bool
    overlap_steps: bool


@overload
def jit(step: Callable[P, R], **options: Unpack[_Options]) -> Jitted[P, R]: ...


@overload
def jit(
    step: None = None, **options: Unpack[_Options]
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    step: Callable[..., Any] | None = None,
    *,
    machine: str | os.PathLike[str] = "host:2",
    placer: str = "msct",
    budget: str = "auto",
    expert: Mapping[str, str] | str | os.PathLike[str] | None = None,
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
    static_argnames: str | Sequence[str] = (),
    pin: Mapping[str, str] | None = None,
    placement: str | os.PathLike[str] | None = None,
    profile: str | os.PathLike[str] | None = None,
    costs: str = "measured",
    measure: str = "auto",
    cuda_math: str = "fp32",
    cuda_convolutions: str = "measured",
    splits: str = "none",
    split: Mapping[str, tuple[int, int] | str] | None = None,
    replicas: int = 1,
    exchange: str | None = None,
    slice_bytes: int | None = None,
    objective: str = "makespan",
    transfers: str = "lend",
    fit_memory: str = "auto",
    spill_to: str | None = None,
    check: Check = None,
    check_tolerance: Tolerance = None,
    verbose: bool | None = None,
    async_dispatch: bool = True,
    overlap_steps: bool = False,
) -> Any:
    """Compiles `step` for the devices of `machine`; usable as a decorator.

    machine: `host:N[@SIZE]` (`host:2`, `host:4@2GiB`: a memory limit for each
        device; `host:1@40MiB+pool:4GiB`: memory beside) or a machine file (docs/formats.md).
    placer, budget: as `baechi-run --placer --budget`.
    objective: `makespan`, the time of one call, or `period`, the time from one call to the
        next where they overlap (`overlap_steps`).
    expert: for the placer `expert`, and as a candidate of others: regular expressions of
        operators' names to devices, of which the first that matches decides, or an expert
        file (docs/formats.md).
    donate_argnums: arguments that the step returns the next values of. These
        stay on their devices; what is returned for them is a ResidentArray.
    static_argnums: hashable Python values; each set of them is a program.
        Negative positions, here and there, count from the end of a call's arguments.
    donate_argnames, static_argnames: the same by name.
    pin: patterns of operators' or arguments' names (`*`, `?`, `[...]`) to
        devices: `{"decoder/*": "host1"}`; `dev1` is any machine's second one.
    placement: a placement file with names; what it places stays there.
    profile: the file of measured kernels, which grows; default: one for this
        user, in the cache folder.
    costs: `measured`, or `roofline` to measure nothing.
    measure: how long kernels that the profile lacks are measured: `auto` (as long as about
        five steps, or a few seconds; the costliest first, what is left is estimated),
        seconds (`"30"`) or `all` (as long as it takes).
    cuda_math: what GPUs may round the factors of products to: `fp32` (nothing),
        `tf32`, `bf16` or `fp16`; sums are in single precision.
    cuda_convolutions: what computes convolutions on GPUs: `measured` (cuDNN where it was measured
        to be faster, else generated code), `generated` or `cudnn`.
    splits: how operators are cut into pieces that devices compute at once: `none`, `exact`
        (where the step is faster; no sum is cut and each has one order, the
        same bits on any number of host devices), `any` (where the step is
        faster, in micro-batches where it fits in no other way; sums are rounded in another
        order), `canonical:N` (always in N pieces, the same bits on any number of devices) or
        `micro:N` (N micro-batches that follow each other, in less memory, the same bits, too;
        docs/splitting.md).
    split: what is to be cut, by the patterns of pin: a dimension of an argument, or of an
        operator's first result, and the number of pieces, `{"tokens": (0, 2)}`; all that the
        cut can follow follows it. `{"head/*": "whole"}` keeps operators in one piece.
    replicas: N cuts the batch in N equal parts, each computed on a device of its own, adds
        their gradients in the replicas' order, and updates each parameter that is donated at
        one owner; the same bits on any number of devices. `split={"x": (0, N)}` names the
        batch's arguments where they are not found. A step of `jax.shard_map` or `jax.pmap` has
        as many as its mesh says (docs/replicas.md).
    exchange: between replicas, donated parameters are sent as soon as they are new and awaited
        by the next call, and messages go in this order: `fifo` (as they are ready), `slices`
        (the same, in slices), `tictac` (what the next call uses first) or `p3` (the same, in
        slices); None: owners send them at a call's start. The bits are the same.
        slice_bytes: of `p3` and `slices`, the largest slice.
    transfers: between host devices `lend` (the receiver reads the sender's tensor where it
        lies), `copy`, or `network` (a message takes what the machine's link says, as on a
        network of that speed, which is simulated); the results are the same.
    fit_memory: where the step does not fit the memories: `auto` (values are let go and
        computed again when they are needed, or wait in a pool, and operators that need too
        much by themselves are cut into pieces: slower, the same bits; docs/memory.md),
        `whole` (the same without cutting) or `never` (CompileError).
    spill_to: `pool:SIZE`, memory beside the machine's devices where tensors wait that do
        not fit them: `machine="host:1@40MiB", spill_to="pool:4GiB"` is
        `machine="host:1@40MiB+pool:4GiB"`. `disk:SIZE` is a file in the folder BAECHI_DISK.
    check: `"first"`, each program's first call, or N, that call and every Nth after it,
        is compared with `jax.jit` of the same function (docs/checking.md).
    check_tolerance: what may differ, as a part of a result's largest element, for all
        types or for each: `{"float32": 1e-4}`. Integers are equal.
    verbose: what is told of compiling, on the standard error: True, a line for each phase
        with its seconds; False, nothing; None, a bar after a second, on a terminal
        or in a notebook (where the package tqdm is there).
    async_dispatch: whether a call like an earlier one returns while its step runs, as
        `jax.jit`'s does: its results wait, and raise what went wrong, when they are looked at.
        False: every call is waited for, and raises its own errors.
    overlap_steps: whether calls that return at once overlap: a device begins its part of the
        next one when its own part of this one has ended, the same bits. `step.report()` has
        the reason where they run one by one (docs/jit.md).

    Arguments and results are any pytrees of arrays. A call with other shapes,
    types or static values compiles again. Raises ImportFailure (an operation
    that cannot be imported, with its source line), CompileError (no placement
    fits, a bad option), StepError (a step that failed) and CheckError (a checked call
    whose results are not `jax.jit`'s, with the first operation that differs).
    """
    if step is None:
        same = {key: value for key, value in locals().items() if key != "step"}
        return functools.partial(jit, **same)
    if overlap_steps and not async_dispatch:
        raise ValueError(
            "overlap_steps=True and async_dispatch=False: calls that are waited for cannot "
            "overlap; leave one of them out"
        )
    if objective == "period" and not overlap_steps:
        raise ValueError(
            "objective is 'period': it plans the time from one call to the next where calls "
            "overlap; give overlap_steps=True, too, or leave it out"
        )
    if not callable(step):
        raise TypeError(
            f"baechi.jit takes a function, not {step!r}; options are given by name: "
            "machine='host:2'"
        )
    options = CompileOptions(
        beside(machine, spill_to),
        placer,
        budget,
        expert,
        pin,
        placement,
        profile,
        costs,
        measure,
        cuda_math,
        cuda_convolutions,
        splits,
        split,
        transfers,
        fit_memory,
        verbose,
        replicas,
        exchange,
        slice_bytes,
        objective,
    )
    donated = choose(step, donate_argnums, donate_argnames, "donate")
    static = choose(step, static_argnums, static_argnames, "static")
    checks = CheckOptions(check, check_tolerance, cuda_math)
    return Jitted(step, donated, static, options, checks, async_dispatch, overlap_steps)


class _Call(NamedTuple):
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
    ):
        super().__init__()
        functools.update_wrapper(self, step)
        self._step = step
        self._options, self._checks = options, checks or CheckOptions()
        self._donated, self._static = donated, static
        self._dispatches, self._overlaps = dispatches, overlaps
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
        with self._whole_call(lambda: call.key in self._programs):
            self._settle()
            if call.key not in self._programs:
                with progress.shown(self._options.verbose, _identifier(self._step)):
                    self._programs[call.key] = self._compile(call)
            program = self._latest = self._programs[call.key]
            result = self._run(call, program, call.leaves)
            self._remember(call, program, args, kwargs)
            return result

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
        self, call: _Call, program: JaxProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Lets the next call like this one be quick, where it can."""
        if self._checks.check is not None or any(g is not None for g in call.generators):
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
        return f"<baechi.jit of {_identifier(self._step)} on {self._options.machine}: {compiled}>"

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
            _identifier(self._step),
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
        options = self._options.written_for(imported.replicas)
        return Lowered(border, imported.text, options, run, self._dispatches, self._overlaps)

    def _call_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        bound = bind(self._step, args, kwargs)
        static = bound.hashable(self._step, self._static)
        donated = bound.positions(self._donated)
        dynamic = [value for i, value in enumerate(bound.values) if i not in static]
        leaves, tree = jax.tree.flatten(tuple(dynamic))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise TypeError(
                f"'{_identifier(self._step)}' runs on devices of its own, not within jax.jit, "
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
        return _Call(key, bound, tree, leaves, generators, static, donated, kinds)

    def _import(self, call: _Call, by_shape: bool = False) -> tuple[ImportedStep, list[str | None]]:
        """The module, and the random generators of its results."""
        progress.phase("import")
        step = call.arguments.positional(self._step)
        step = _with_static(step, call.static) if call.static else step
        plain = random_keys.PlainStep(step, call.generators)
        arguments = jax.tree.unflatten(call.tree, call.leaves)
        name = _identifier(self._step)
        try:
            imported = import_step(
                plain, arguments, call.donated, name, by_shape=by_shape, host=True
            )
        except Exception as error:
            # JAX's own message names no argument of the step.
            error.add_note(f"called as {describe(self._step, call.arguments)}")
            raise
        return imported, plain.returned

    def _flat(self, call: _Call) -> Callable[..., list[Any]]:
        """The step of a call's leaves, with flat results."""
        step = call.arguments.positional(self._step)
        step = _with_static(step, call.static) if call.static else step
        plain = random_keys.PlainStep(step, call.generators)
        return written.unrolled(
            lambda *leaves: jax.tree.leaves(plain(*jax.tree.unflatten(call.tree, leaves)))
        )

    def _alone(
        self, program: JaxProgram, part: Callable[..., Any], leaves: Sequence[Any]
    ) -> list[Any]:
        """Runs a part of a step, where the program's operators are if it has any by name."""
        none = Chosen(frozenset(), frozenset())
        options = dataclasses.replace(self._options, pin=None, placement=None, budget="0")
        with temporary.folder("baechi-jit-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the placement is of more than the part
            placement = pathlib.Path(folder) / "placement.json"
            placement.write_text(program.placement_file())
            placed = dataclasses.replace(options, placement=placement)
            try:
                return jax.tree.leaves(Jitted(part, none, none, placed)(*leaves))
            except CompileError:
                return jax.tree.leaves(Jitted(part, none, none, options)(*leaves))

    def _run(self, call: _Call, program: JaxProgram, leaves: list[Any]) -> Any:
        """Calls the program, and compares the call with JAX's if one is due."""
        due = self._checks.is_due(program.calls)
        check = JaxCheck(self._flat(call), leaves, self._checks) if due else None
        result = program.run(leaves)
        if check is not None:
            alone = functools.partial(self._alone, program)
            check.compare(jax.tree.leaves(result), program.signature.results, alone)
        return result

    def _compile(self, call: _Call) -> JaxProgram:
        imported, returned = self._import(call)
        name, separate = _identifier(self._step), ""
        options = self._options.written_for(imported.replicas)
        if self._overlaps:
            checked = self._checks.check is not None
            generators = call.generators, returned
            separate = why_separate(name, *generators, imported.host_calls, options, checked)
        program = JaxProgram(
            imported.signature,
            returned,
            self._turn,
            imported.text,
            options,
            host_calls=imported.host_calls,
            name=name,
        )
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


def _identifier(step: Callable[..., Any]) -> str:
    name = getattr(step, "__name__", "step")
    return name if name.isidentifier() else "step"
