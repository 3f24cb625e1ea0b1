# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of `jax.shard_map` and `jax.pmap` as programs of all replicas (docs/replicas.md).

What a replica computes is written once for each, side by side, and a collective is what it
computes of their values. Values that are the same for several replicas, as what a `psum` gives,
are one, and so is what is computed of them alone: a parameter's update stands there once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax._src import source_info_util  # the scopes and lines of equations
from jax._src.core import NamedAxisEffect
from jax.extend import core

from baechi.common import users
from baechi.importer.common.errors import ImportFailure, Unsupported
from baechi.importer.jax import collectives, jaxprs, lockstep
from baechi.importer.jax.collectives import Mesh
from baechi.importer.jax.parts import (
    Elementwise,
    Item,
    Parts,
    Sources,
    Spec,
    spec_of,
    split,
    whole,
)

# One for each replica; those that are the same are the same object.
Values = list[Any]

_CONTROL_FLOW = {"scan", "while", "cond"}
_MOST = 64  # replicas: the compiler has a bit for each
_SHARDINGS = ("sharding", "out_sharding")
# What comes before a batch is cut, as its scaling, is computed of the parts.
_ELEMENTWISE = {
    *("add", "sub", "mul", "div", "neg", "abs", "sign", "max", "min", "clamp", "integer_pow"),
    *("pow", "square", "sqrt", "rsqrt", "exp", "log", "tanh", "logistic", "floor", "round"),
    *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select_n", "convert_element_type"),
}


def needed(jaxpr: core.Jaxpr) -> bool:
    """Whether a part of a step is written for replicas."""
    return _has(jaxpr, lambda eqn: eqn.primitive.name == "shard_map")


def _has(jaxpr: core.Jaxpr, what: Callable[[Any], bool]) -> bool:
    return any(
        what(eqn) or any(_has(body, what) for body in jaxprs.bodies(eqn)) for eqn in jaxpr.eqns
    )


class Unrolled:
    """A step of flat arguments with what each replica computes. What is known after tracing:

    replicas: how many have parts of their own; batched: by the positions of arguments that are
    cut, for each dimension the parts along it, each the replicas that have it, a bit for each.
    """

    def __init__(self, closed: core.ClosedJaxpr):
        self._closed = closed
        self.replicas = 1
        self.batched: dict[int, list[list[int]]] = {}

    def __call__(self, *args: Any) -> list[Any]:
        evaluator = _Step()
        jaxpr = self._closed.jaxpr
        consts = [[each] for each in self._closed.consts]
        results = evaluator.evaluate(jaxpr, consts, [[arg] for arg in args])
        if meshes := evaluator.cut_meshes or evaluator.whole_meshes:
            mesh, eqn = max(meshes, key=lambda each: each[0].count)
            if mesh.count > _MOST:
                raise _refused(
                    eqn,
                    f"it is of {mesh.count} replicas, and a step can have 1 to {_MOST}: give its "
                    "mesh fewer, each with more of the batch",
                )
            self.replicas = mesh.count
            for value, spec in evaluator.cut:
                for i, arg in enumerate(args):
                    if arg is value and spec.is_of(mesh):
                        self.batched.setdefault(i, spec.members(mesh))
        return [whole(result) for [result] in results]


def unrolled(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step of flat arguments and results that JAX computes on one device of its own, however
    many devices its meshes have."""

    def alone(*args: Any) -> Any:
        closed = jax.make_jaxpr(step)(*args)
        return Unrolled(closed)(*args) if needed(closed.jaxpr) else step(*args)

    return alone


def agreements(step: Callable[..., Any], args: Sequence[Any]) -> tuple[list[bool], Any]:
    """Of a step that is one shard_map: for each flat result whether it is one value for all
    replicas, and the results' types in their structure."""
    closed, result = jax.make_jaxpr(step, return_shape=True)(*args)
    evaluator = _Step()
    evaluator.same = {}

    def alone(*leaves: Any) -> list[Any]:
        consts = [[each] for each in closed.consts]
        results = evaluator.evaluate(closed.jaxpr, consts, [[leaf] for leaf in leaves])
        return [whole(value) for [value] in results]

    jax.eval_shape(alone, *jax.tree.leaves(tuple(args)))
    return [evaluator.same.get(v, True) for v in closed.jaxpr.outvars], result


def explain(error: Exception) -> None:
    """Says what to do about an error of tracing a step that is written for replicas: raises
    ImportFailure, or adds a note where it may be of something else."""
    text = str(error)
    if isinstance(error, NameError) and "unbound axis name" in text:
        raise ImportFailure(
            f"{users.told(error)}: the step is what one replica computes, and nothing says how "
            "many there are: give baechi.jit replicas=N, axis_name='batch' and in_axes=(None, 0), "
            "None for each argument that all replicas have and the dimension of others that is "
            "cut; or the step within jax.shard_map(step, "
            "mesh=jax.sharding.AbstractMesh((N,), ('batch',)), in_specs=…, out_specs=…), whose "
            "specs say the same (docs/replicas.md)"
        ) from error
    if isinstance(error, ValueError) and "should match the mesh passed to shard_map" in text:
        raise ImportFailure(
            f"{users.raised_at(error)}: a jax.shard_map or jax.pmap of other replicas is within "
            "another, or within a step of replicas=N and axis_name=: give one all of the axes "
            "(docs/replicas.md)"
        ) from error
    if isinstance(error, ValueError) and "squeeze out which has size not equal to one" in text:
        error.add_note(
            "of jax.pmap: it needs a device of JAX's for each replica, and JAX has "
            f"{jax.local_device_count()}; jax.config.update('jax_num_cpu_devices', N) before "
            "JAX's first use gives it as many, and jax.shard_map over "
            "jax.sharding.AbstractMesh((N,), ('batch',)) needs none (docs/replicas.md)"
        )


class _Evaluator:
    """Evaluates equations for some replicas at once."""

    def __init__(self, mesh: Mesh, members: Sequence[int]):
        self.mesh, self.members = mesh, list(members)

    def evaluate(
        self, jaxpr: core.Jaxpr, consts: Sequence[Values], args: Sequence[Values]
    ) -> list[Values]:
        values: dict[Any, Values] = dict(zip(jaxpr.constvars, consts, strict=True))
        values |= zip(jaxpr.invars, args, strict=True)

        def read(v: Any) -> Values:
            return [v.val] * len(self.members) if isinstance(v, core.Literal) else values[v]

        for eqn in jaxpr.eqns:
            results = self.apply(eqn, [read(v) for v in eqn.invars])
            values |= zip(eqn.outvars, results, strict=True)
        return [read(v) for v in jaxpr.outvars]

    def apply(self, eqn: Any, operands: list[Values]) -> list[Values]:
        name = eqn.primitive.name
        if name in collectives.TYPES_ALONE:
            return operands
        if (closed := jaxprs.called_by(eqn)) is not None:
            consts = [[each] * len(self.members) for each in closed.consts]
            with _named(eqn):
                return self.evaluate(closed.jaxpr, consts, operands)
        if name in _CONTROL_FLOW and self.is_rewritten(eqn):
            with _named(eqn):
                return self.control(eqn, operands)
        return self.plain(eqn, operands)

    def is_rewritten(self, eqn: Any) -> bool:
        """Whether what a loop or a branch holds has to be traced again."""
        raise NotImplementedError

    def control(self, eqn: Any, operands: list[Values]) -> list[Values]:
        raise NotImplementedError

    def plain(self, eqn: Any, operands: list[Values]) -> list[Values]:
        """What needs no other replica: once for those whose operands are the same."""
        params = {k: None if k in _SHARDINGS else v for k, v in eqn.params.items()}
        made: dict[tuple[int, ...], Sequence[Any]] = {}
        results: list[Sequence[Any]] = []
        for replica, own in zip(self.members, _transposed(operands, len(self.members))):
            key = (replica,) if _has_effects(eqn) else tuple(map(id, own))
            if key not in made:
                with _named(eqn):
                    made[key] = jaxprs.bind(eqn, params, [whole(value) for value in own])
            results.append(made[key])
        return _transposed(results, len(eqn.outvars))


class _Step(_Evaluator):
    """Around what is written for replicas: values are those of the step."""

    def __init__(self) -> None:
        super().__init__(Mesh({}), [0])
        # Of all shard_maps, with their equations, the axes along which replicas differ, and those
        # of shard_maps whose replicas are all the same.
        self.cut_meshes: list[tuple[Mesh, Any]] = []
        self.whole_meshes: list[tuple[Mesh, Any]] = []
        self.cut: list[tuple[Any, Spec]] = []  # what is cut, and how
        self._sources = Sources()
        # Where it is asked for, which results of shard_maps all replicas have; then there are no
        # errors of those that differ.
        self.same: dict[Any, bool] | None = None

    def apply(self, eqn: Any, operands: list[Values]) -> list[Values]:
        if eqn.primitive.name == "shard_map":
            return [[result] for result in self._replicated(eqn, [v for [v] in operands])]
        return super().apply(eqn, operands)

    def plain(self, eqn: Any, operands: list[Values]) -> list[Values]:
        shapes = {v.aval.shape for v in eqn.invars if v.aval.shape}
        if eqn.primitive.name not in _ELEMENTWISE or shapes != {eqn.outvars[0].aval.shape}:
            return super().plain(eqn, operands)

        def compute(*values: Any) -> Any:
            [[result]] = super(_Step, self).plain(eqn, [[value] for value in values])
            return result

        return [[Elementwise(compute, [value for [value] in operands])]]

    def is_rewritten(self, eqn: Any) -> bool:
        return any(map(needed, jaxprs.bodies(eqn)))

    def control(self, eqn: Any, operands: list[Values]) -> list[Values]:
        if lockstep.is_short(eqn, 1):
            return lockstep.turns(eqn, operands, self.evaluate, 1, Item)
        _tell_whole(eqn, 1)
        wholes = [[whole(value)] for [value] in operands]
        return lockstep.apply(eqn, wholes, self._within, 1)

    def _within(self, jaxpr: Any, consts: Any, args: Sequence[Values]) -> list[Values]:
        return [[whole(v)] for [v] in self.evaluate(jaxpr, consts, args)]

    def _replicated(self, eqn: Any, operands: list[Any]) -> list[Any]:
        manual = eqn.params.get("newly_manual_axes", eqn.params.get("manual_axes"))  # before 0.10
        mesh = Mesh({n: size for n, size in eqn.params["mesh"].shape.items() if n in manual})
        body: core.Jaxpr = eqn.params["jaxpr"]
        args = []
        differ = {name for axes in _indexed(body) for name in axes}
        for value, given, inner in zip(operands, eqn.params["in_specs"], body.invars, strict=True):
            spec = spec_of(given, inner.aval.ndim)
            args.append(split(value, spec, mesh))
            differ |= spec.names()
            self.cut += self._sources.of(value, spec.without_ones(mesh), mesh)
        apart = {name: n for name, n in mesh.axes.items() if name in differ and n > 1}
        if apart:
            self.cut_meshes.append((Mesh(apart), eqn))
        else:
            self.whole_meshes.append((mesh, eqn))
        with _named(eqn):
            results = _Replicas(mesh, range(mesh.count)).evaluate(body, [], args)
        specs = [
            spec_of(given, v.aval.ndim)
            for given, v in zip(eqn.params["out_specs"], body.outvars, strict=True)
        ]
        if self.same is not None:
            self.same |= {v: _agree(values) for v, values in zip(eqn.outvars, results)}
        for variable, values, spec in zip(body.outvars, results, specs, strict=True):
            if self.same is None:
                _check_same(eqn, variable, values, spec, mesh)
        return [Parts(values, spec, mesh) for values, spec in zip(results, specs, strict=True)]


class _Replicas(_Evaluator):
    """Of a shard_map's body: a value for each replica, or, within control flow without
    collectives, for one."""

    def apply(self, eqn: Any, operands: list[Values]) -> list[Values]:
        name = eqn.primitive.name
        if name == "axis_index":
            axes = collectives.names_of(eqn.params)
            numbers = [self.mesh.index(r, axes) for r in self.members]
            made = {number: jax.numpy.int32(number) for number in numbers}
            return [[made[number] for number in numbers]]
        if name in collectives.RULES:
            with _named(eqn):
                return [self._exchanged(eqn, operand) for operand in operands]
        if name == "shard_map":
            raise _refused(eqn, "it is within another: give one all of the axes")
        return super().apply(eqn, operands)

    def plain(self, eqn: Any, operands: list[Values]) -> list[Values]:
        if _names_axes(eqn, self.mesh) or any(
            _has(body, lambda inner: _names_axes(inner, self.mesh)) for body in jaxprs.bodies(eqn)
        ):
            raise _refused(
                eqn,
                "replicas have no rule for it: psum, pmean, pmax, pmin, all_gather, psum_scatter, "
                "all_to_all, ppermute and axis_index are known",
            )
        return super().plain(eqn, operands)

    def _exchanged(self, eqn: Any, values: Values) -> Values:
        try:
            return collectives.apply(self.mesh, eqn.primitive.name, values, eqn.params)
        except collectives.UnknownForm as form:
            raise _refused(eqn, str(form)) from None

    def is_rewritten(self, eqn: Any) -> bool:
        return True  # JAX's types within name the axes

    def control(self, eqn: Any, operands: list[Values]) -> list[Values]:
        if any(_has(body, _is_collective) for body in jaxprs.bodies(eqn)):
            if lockstep.is_short(eqn, len(self.members)):
                return lockstep.turns(eqn, operands, self.evaluate, len(self.members))
            _tell_whole(eqn, len(self.members))
            try:
                return lockstep.apply(eqn, operands, self.evaluate, len(self.members))
            except lockstep.Diverged as where:
                raise _refused(eqn, str(where)) from None
        asked = {axes for body in jaxprs.bodies(eqn) for axes in _indexed(body)}
        made: dict[tuple[int, ...], list[Values]] = {}
        results = []
        for replica, own in zip(self.members, _transposed(operands, len(self.members))):
            numbers = [self.mesh.index(replica, axes) for axes in sorted(asked)]
            key = (replica,) if _has_effects(eqn) else (*numbers, *map(id, own))
            if key not in made:
                alone = _Replicas(self.mesh, [replica])
                made[key] = lockstep.apply(eqn, [[v] for v in own], alone.evaluate, 1)
            results.append([value for [value] in made[key]])
        return _transposed(results, len(eqn.outvars))


def _has_effects(eqn: Any) -> bool:
    """Others than that it names axes."""
    return any(not isinstance(effect, NamedAxisEffect) for effect in eqn.effects)


def _is_collective(eqn: Any) -> bool:
    return eqn.primitive.name in collectives.RULES


def _indexed(jaxpr: core.Jaxpr) -> Iterator[tuple[str, ...]]:
    """The axes that a body asks a replica's number along."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "axis_index":
            yield collectives.names_of(eqn.params)
        for body in jaxprs.bodies(eqn):
            yield from _indexed(body)


def _names_axes(eqn: Any, mesh: Mesh) -> bool:
    if eqn.primitive.name in collectives.TYPES_ALONE:
        return False
    return bool(set(mesh.axes) & set(collectives.names_of(eqn.params)))


def _agree(values: Values) -> bool:
    return all(value is values[0] for value in values)


def _check_same(eqn: Any, variable: Any, values: Values, spec: Spec, mesh: Mesh) -> None:
    """Raises where an axis is not in an output's spec and its value depends on it."""
    first: dict[Any, Any] = {}
    for replica, value in enumerate(values):
        if first.setdefault(spec.at(replica, mesh), value) is not value:
            break
    else:
        return
    makers = [e for e in eqn.params["jaxpr"].eqns if variable in e.outvars]
    names = [name for name in mesh.axes if name not in spec.names()]
    raise _refused(
        makers[0] if makers else eqn,
        f"what it makes is a result whose out_specs leave {', '.join(map(repr, names))} out, as "
        "if all replicas had one value, but each computes its own: return lax.pmean(…) or "
        "lax.psum(…) of it, or name the axis in out_specs",
    )


def _refused(eqn: Any, reason: str) -> ImportFailure:
    where = Unsupported(eqn.primitive.name, jaxprs.name_of(eqn), jaxprs.source_of(eqn), reason)
    return ImportFailure(f"{where} (docs/replicas.md)")


def _tell_whole(eqn: Any, count: int) -> None:
    """Warns of a loop or a branch that replicas do not share, as they exchange values in it."""
    mends = {
        "cond": "compute both and choose by jnp.where, or exchange values before it or after it",
        "while": "where the number of its turns is known, lax.fori_loop with numbers of Python's "
        "or lax.scan can be written turn by turn",
    }
    if eqn.primitive.name == "scan":
        fit = lockstep.short_turns(eqn, count)
        mends["scan"] = (
            f"turn by turn it would be {lockstep.operators_in_turns(eqn, count):,} operators, of "
            f"at most {lockstep.LARGEST_UNROLLED:,}, unless unroll=True asks for it: "
            + (
                f"let a call do at most {fit:,} of its {eqn.params['length']:,} turns, or "
                * (fit > 0)
            )
            + "exchange values after the loop"
        )
    reason = (
        "replicas exchange values in it, so it is one operator of all of them, on one device; "
        + mends[eqn.primitive.name]
    )
    where = Unsupported(eqn.primitive.name, jaxprs.name_of(eqn), jaxprs.source_of(eqn), reason)
    users.warn(f"{where} (docs/replicas.md)")


def _transposed(rows: Sequence[Sequence[Any]], count: int) -> list[list[Any]]:
    """The columns of some rows, `count`, also where there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


@contextlib.contextmanager
def _named(eqn: Any) -> Iterator[None]:
    """An equation's names and line, without the mesh that it was traced in."""
    stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
    with source_info_util.user_context(eqn.source_info.traceback, name_stack=stack):
        yield
