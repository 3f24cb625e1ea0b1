# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan of cuts as JAX's shardings, for `jax.jit` to execute."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from baechi.common import temporary
from baechi.compiling import compiler
from baechi.jax.lowered import Lowered

_AXIS = "devices"
_CHOICES = {"any": True, "none": False}


class Collective(NamedTuple):
    """What the devices tell each other once in a step.

    kind: `all-reduce` (partial results are joined), `all-gather` (pieces are put together)
        or `all-to-all` (pieces along one dimension become pieces along another).
    of: the operator or argument, as `step.names()` has it.
    dtype, shape: of the whole tensor, in MLIR's words (`f32`).
    """

    kind: str
    of: str
    dtype: str
    shape: tuple[int, ...]


class Shardings(NamedTuple):
    """arguments, results: a `NamedSharding` for each array, in the structures of the step's
    arguments that are not static and of its results; mesh: one axis, `devices`;
    collectives: what the plan needs."""

    arguments: Any
    results: Any
    mesh: Mesh
    collectives: list[Collective]


def shardings(
    step: Lowered,
    machine: str | os.PathLike[str] | None = None,
    *,
    splits: str = "any",
    devices: Sequence[jax.Device] | None = None,
) -> Shardings:
    """The cuts of a step as shardings for `jax.jit`, which then computes the same on JAX's
    devices (docs/shardy.md):

        plan = baechi.shardings(baechi.jit(f).lower(*args), "host:2")
        jax.jit(f, in_shardings=plan.arguments, out_shardings=plan.results)

    step: `step.lower(...)` of `baechi.jit`; what its `split` asks for is cut first.
    machine: `host:N` or a machine file; default: the step's.
    splits: `any`: what saves time is cut, too; `none`: what `split` asks for alone.
    devices: as many as the machine has; default: the first of `jax.devices()`.

    Raises CompileError for a plan that is not one program for all devices: uneven pieces,
    devices of several kinds, and where nothing is cut; ValueError for a step with pins or a
    placement, and where JAX has too few devices.
    """
    if not isinstance(step, Lowered):
        raise TypeError(
            f"baechi.shardings takes a lowered step, not {step!r}: baechi.jit(f).lower(*arguments)"
        )
    if splits not in _CHOICES:
        raise ValueError(f"splits is {splits!r}: give 'any' or 'none'")
    options = step.options
    if options.pin or options.placement is not None:
        raise ValueError(
            "the step has operators on devices of their own (pin, placement), and JAX's "
            "shardings give every device the same program: lower it without"
        )
    with temporary.folder("baechi-shardings-") as folder:
        passes = ["baechi-inline-step"]
        if cuts := options.cuts():
            passes.append(compiler.step("baechi-constrain", splits=cuts))
        file = folder / "plan.json"
        machine = os.fspath(options.machine if machine is None else machine)
        export = compiler.step(
            "baechi-export-sdy", machine=machine, choose=str(_CHOICES[splits]).lower(), plan=file
        )
        compiler.transform(step.as_text(), [*passes, export])
        plan = json.loads(file.read_text())
    mesh = _mesh(plan["devices"], jax.devices() if devices is None else devices)
    border = step.border

    def placed(dims: list[int | None], generators: Sequence[str | None]) -> list[NamedSharding]:
        # A random key's data are no dimension of its own.
        return [
            _sharding(mesh, None if generator is not None else dim)
            for dim, generator in zip(dims, generators, strict=True)
        ]

    return Shardings(
        jax.tree.unflatten(step.in_tree, placed(plan["arguments"], border.given)),
        jax.tree.unflatten(step.out_tree, placed(plan["results"], border.returned)),
        mesh,
        [
            Collective(each["kind"], each["of"], each["type"], tuple(each["shape"]))
            for each in plan["collectives"]
        ],
    )


def _mesh(count: int, devices: Sequence[jax.Device]) -> Mesh:
    if len(devices) < count:
        raise ValueError(
            f"the machine has {count} devices and JAX {len(devices)}: give it as many, on a "
            f"processor by XLA_FLAGS=--xla_force_host_platform_device_count={count} before JAX "
            "is imported"
        )
    return Mesh(np.array(devices[:count]), (_AXIS,))


def _sharding(mesh: Mesh, dim: int | None) -> NamedSharding:
    spec = () if dim is None else (*[None] * dim, _AXIS)
    return NamedSharding(mesh, PartitionSpec(*spec))  # type: ignore[no-untyped-call]
