# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.jit` in place of `jax.jit`: the same step on several devices."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from baechi.checking.options import Check, CheckOptions, Tolerance
from baechi.compiling.options import CompileOptions, limited, replan_of
from baechi.jax.bound import choose
from baechi.jax.jitted import Jitted
from baechi.jax.launched import LaunchedStep
from baechi.jax.one_replica import NOT_GIVEN, one_replica
from baechi.jax.overlap import check_dispatch
from baechi.steps.launched_step import check_ranks

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
    axis_name: str | None
    in_axes: Any
    exchange: str | None
    slice_bytes: int | None
    factors: str
    objective: str
    replan: str | None
    transfers: str
    fit_memory: str
    unroll: str
    check: Check
    check_tolerance: Tolerance
    verbose: bool | None
    async_dispatch: bool
    overlap_steps: bool
    ranks: str | None


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
    splits: str = "auto",
    split: Mapping[str, tuple[int, int] | str] | None = None,
    replicas: int = 1,
    axis_name: str | None = None,
    in_axes: Any = NOT_GIVEN,
    exchange: str | None = None,
    slice_bytes: int | None = None,
    factors: str = "none",
    objective: str = "makespan",
    replan: str | None = None,
    transfers: str = "lend",
    fit_memory: str = "auto",
    unroll: str = "auto",
    memory: str | int | None = None,
    spill_to: str | None = None,
    check: Check = None,
    check_tolerance: Tolerance = None,
    verbose: bool | None = None,
    async_dispatch: bool = True,
    overlap_steps: bool = False,
    ranks: str | None = None,
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
    splits: how operators are cut into pieces that devices compute at once: `auto` (`exact`,
        but nothing is cut where operators are pinned or a `placement` is of whole operators;
        `none` where there are GPUs, replicas or `split`), `none`, `exact` (where the step is
        faster; no sum is cut and each has one order, the same bits on any number of host
        devices), `any` (where the step is faster, in micro-batches where it fits in no other way;
        sums are rounded in another order), `canonical:N` (always in N pieces, the same bits on any
        number of devices) or `micro:N` (N micro-batches that follow each other, in less memory,
        the same bits, too; docs/splitting.md).
    split: what is to be cut, by the patterns of pin: a dimension of an argument, or of an
        operator's first result, and the number of pieces, `{"tokens": (0, 2)}`; all that the
        cut can follow follows it. `{"head/*": "whole"}` keeps operators in one piece.
    replicas: N cuts the batch in N equal parts, each computed on a device of its own, adds
        their gradients in the replicas' order, and updates each parameter that is donated at
        one owner; the same bits on any number of devices. `split={"x": (0, N)}` names the
        batch's arguments where they are not found. A step of `jax.shard_map` or `jax.pmap` has
        as many as its mesh says (docs/replicas.md).
    axis_name, in_axes: the step is what one of the replicas computes, `lax.psum` and others
        along this axis exchange values, and in_axes says for each argument the dimension that
        is cut, or None for what all have, as of `jax.vmap`: `replicas=2, axis_name="batch",
        in_axes=(None, 0, 0)`. Results that differ lie one after the other along the first
        dimension.
    exchange: between replicas, donated parameters are sent as soon as they are new and awaited
        by the next call, and messages go in this order: `fifo` (as they are ready), `slices`
        (the same, in slices), `tictac` (what the next call uses first) or `p3` (the same, in
        slices); None: owners send them at a call's start. The bits are the same.
        slice_bytes: of `p3` and `slices`, the largest slice.
    factors: of replicas' gradients, `none` (they are sent) or `smaller`: where a gradient is a
        product whose factors are fewer bytes, as of large dense layers, they are sent, and the
        parameter's owner computes the products; the bits are the same.
    replan: `auto`: where nothing is known of what kernels take within a step, the first calls
        run on one device, whose times are recorded, and the plan is made of these before a
        later call, with the same kernels and bits. `never`: steps are measured before the
        first call. None: what the environment variable BAECHI_REPLAN says, else `auto`
        (docs/jit.md).
    transfers: between host devices `lend` (the receiver reads the sender's tensor where it
        lies), `copy`, or `network` (a message takes what the machine's link says, as on a
        network of that speed, which is simulated); the results are the same.
    fit_memory: where the step does not fit the memories: `auto` (values are let go and
        computed again when they are needed, or wait in a pool, and operators that need too
        much by themselves are cut into pieces: slower, the same bits, but for last digits
        where loops are written out; docs/memory.md),
        `whole` (the same without cutting) or `never` (CompileError).
    unroll: whether loops that count from one constant to another (`lax.scan`,
        `lax.fori_loop`) are written out, so that devices share their turns: `auto` (where the
        step is predicted to be faster so, or only fits so; docs/splitting.md), `always` or
        `never`.
    memory: what each of the machine's devices has, `40MiB` or a number of bytes:
        `machine="host:2", memory="40MiB"` is `machine="host:2@40MiB"`.
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
    ranks: "launcher", the devices are divided among the processes that mpirun, torchrun, srun or
        `jax.distributed` has started this program in, on one machine. All of them make the same
        calls with the same arguments, and get the same results, which are waited for
        (docs/jit.md#several-processes). None: this process has all devices.

    Arguments and results are any pytrees of arrays. A call with other shapes,
    types or static values compiles again. Raises TypeError and ValueError for options that
    no step could be compiled with (a machine that is none is told by the first call),
    ImportFailure (an operation that cannot be imported, with its source line), CompileError
    (no placement fits, a name that nothing has), StepError (a step that failed) and CheckError
    (a checked call whose results are not `jax.jit`'s, with the first operation that differs).
    """
    if step is None:
        same = {key: value for key, value in locals().items() if key != "step"}
        return functools.partial(jit, **same)
    check_dispatch(async_dispatch, overlap_steps)
    check_ranks(ranks, {"overlap_steps": overlap_steps, "check": check is not None})
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
        replicas=replicas,
        exchange=exchange,
        slice_bytes=slice_bytes,
        factors=factors,
        objective=objective,
        replan=replan_of(replan),
    )
    donated = choose(step, donate_argnums, donate_argnames, "donate")
    static = choose(step, static_argnums, static_argnames, "static")
    checks = CheckOptions(check, check_tolerance, cuda_math)
    alone = one_replica(axis_name, in_axes, replicas)
    kind = Jitted if ranks is None else LaunchedStep
    return kind(step, donated, static, options, checks, async_dispatch, overlap_steps, alone)
