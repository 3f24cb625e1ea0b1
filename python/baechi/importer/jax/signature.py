# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of a step's arguments and results, and which result updates which."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from baechi import init
from baechi.common import users
from baechi.importer.common.errors import ImportFailure
from baechi.importer.common.module import Argument


@dataclasses.dataclass(frozen=True)
class Signature:
    """The flat arguments and results of a step."""

    arguments: list[Argument]
    results: list[str]
    tree: Any  # the arguments' tree structure
    result_tree: Any
    result_types: list[jax.ShapeDtypeStruct]

    def initial_values(self) -> list[np.ndarray]:
        return [argument.init.value() for argument in self.arguments]


@dataclasses.dataclass(frozen=True)
class _Group:
    """A top-level argument or result: neighbours in the flat order."""

    name: str
    first: int
    leaves: list
    paths: list[str]
    tree: Any

    def matches(self, other: _Group) -> bool:
        return self.tree == other.tree and all(map(_same_type, self.leaves, other.leaves))

    def names(self) -> list[str]:
        return [f"{self.name}/{path}" if path else self.name for path in self.paths]


def _same_type(leaf: Any, other: Any) -> bool:
    return leaf.shape == other.shape and np.dtype(leaf.dtype) == np.dtype(other.dtype)


def _groups(named: Sequence[tuple[str, Any]]) -> list[_Group]:
    groups, first = [], 0
    for name, value in named:
        leaves, tree = tree_flatten_with_path(value)
        paths = [keystr(path, simple=True, separator="/") for path, _ in leaves]
        groups.append(_Group(name, first, [leaf for _, leaf in leaves], paths, tree))
        first += len(leaves)
    return groups


def argument_names(step: Callable, count: int) -> list[str]:
    """Of a step's first `count` arguments; those of `*layers` are layers0, layers1, …"""
    names = []
    for parameter in inspect.signature(step).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{i}" for i in range(count - len(names))]
        elif len(names) < count:
            names.append(parameter.name)
    # More than the step takes: it says so when it is called.
    return names + [f"argument {i}" for i in range(len(names), count)]


def _named_results(result: Any) -> list[tuple[str, Any]]:
    """The top level of a result: fields or keys by name, others by position."""
    children, _ = tree_flatten_with_path(result, is_leaf=lambda node: node is not result)
    named = []
    for path, child in children:
        name = keystr(path, simple=True)
        named.append(("result" + name if name == "" or name.isdigit() else name, child))
    return named


def is_weak(leaf: Any) -> bool:
    """Whether JAX gives a result the other operand's type: Python's numbers do."""
    number = isinstance(leaf, int | float | complex) and not isinstance(leaf, bool | np.generic)
    return number or bool(getattr(leaf, "weak_type", False))


def _as_init(name: str, leaf: Any, seed: int, by_shape: bool) -> init.Init:
    if isinstance(leaf, init.Init):
        return leaf
    kind = getattr(leaf, "dtype", type(leaf))
    if kind is complex or jax.numpy.issubdtype(kind, np.complexfloating):
        raise ImportFailure(f"argument '{name}' is complex: give its real and imaginary part")
    if kind == jax.dtypes.float0:
        raise ImportFailure(f"argument '{name}' is a float0, which has no values: leave it out")
    if (short := str(kind)).startswith(("float8", "float4", "int4", "int2", "uint4", "uint2")):
        raise ImportFailure(
            f"argument '{name}' is of {short}, which steps do not take: give it as bfloat16, "
            "float16 or int8, and convert it in the step"
        )
    if isinstance(leaf, jax.ShapeDtypeStruct) and by_shape:
        # JAX's own: without its x64 mode, 64 bits become 32.
        dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
        if jax.numpy.issubdtype(dtype, np.floating):
            return init.Uniform(tuple(leaf.shape), str(dtype), 0.0, 1.0, seed)
        return init.Constant(tuple(leaf.shape), str(dtype), 0.0)  # a valid index
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise ImportFailure(
            f"argument '{name}' has a shape but no value; give an array or an "
            "initial value (baechi.init), so that the module can run"
        )
    try:
        # JAX's own conversion: without its x64 mode, 64 bits become 32.
        return init.from_example(jax.numpy.asarray(leaf), seed)
    except TypeError as error:
        raise ImportFailure(f"argument '{name}' is not an array: {error}") from error


# Of a result's parts that donated arguments are looked for in: `((params, optimizer), loss)`.
_DEEPEST = 2


def _subtrees(name: str, value: Any, first: int, depth: int) -> Iterator[tuple[int, _Group]]:
    """A result and its parts down to a depth, each with how deep it is."""
    [group] = _groups([(name, value)])
    yield depth, dataclasses.replace(group, first=first)
    for name, child in _named_results(value) if depth < _DEEPEST else []:
        if child is not value:
            yield from _subtrees(name, child, first, depth + 1)
            first += len(jax.tree.leaves(child))


def _match_updates(
    arguments: list[_Group], result: Any, donated: set[int]
) -> tuple[dict[int, int], list[str]]:
    """Maps the leaves of donated arguments to those of a result, or of a part of one, that
    has the argument's structure: first of the same name, then in order. (JAX's own aliasing
    only matches shapes, so it may pair a weight with another weight's new value.)

    Also gives the names of donated leaves without a next value.
    """
    by_depth = sorted(_subtrees("", result, 0, depth=0), key=lambda found: found[0])
    parts = [part for _, part in by_depth]
    updates: dict[int, int] = {}

    def claim(argument: _Group, fits: Callable[[_Group], bool]) -> bool:
        for part in parts:
            taken = {part.first + k for k in range(len(part.leaves))} & set(updates.values())
            if not fits(part) or taken or part.tree != argument.tree:
                continue
            for k, (old, new) in enumerate(zip(argument.leaves, part.leaves, strict=True)):
                if _same_type(old, new):
                    updates[argument.first + k] = part.first + k
            return True
        return False

    waiting = [arguments[i] for i in sorted(donated) if arguments[i].leaves]
    for fits in (
        lambda a, part: a.matches(part) and a.name == part.name,
        lambda a, part: a.matches(part),
        lambda a, part: any(map(_same_type, a.leaves, part.leaves)),
    ):
        waiting = [a for a in waiting if not claim(a, functools.partial(fits, a))]
    lost = [
        name
        for i in sorted(donated)
        for k, name in enumerate(arguments[i].names())
        if arguments[i].first + k not in updates
    ]
    return updates, lost


def refuse_given_twice(
    names: Sequence[str], leaves: Sequence[Any], updated: Collection[int]
) -> None:
    """Arrays that are given for two arguments, as JAX does: the place of one that is updated is
    its next value's. Raises ValueError."""
    seen: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, jax.Array) and not hasattr(leaf, "__jax_array__"):
            continue
        other = seen.setdefault(id(leaf), i)
        if other == i or (other not in updated and i not in updated):
            continue
        donated = names[other] if other in updated else names[i]
        raise ValueError(
            f"the arguments '{names[other]}' and '{names[i]}' are the same array, and "
            f"'{donated}' is donated: give one of them a copy (jax.numpy.copy), or do not "
            "donate it"
        )


def describe(
    step: Callable, args: Sequence[Any], donate_argnums: Sequence[int], by_shape: bool = False
):
    """Flattens the arguments and traces `step` on their shapes.

    by_shape: an argument may be a jax.ShapeDtypeStruct, and starts with numbers from 0 to 1,
        or zeros where it is not of floating point.

    Returns the Signature and what `jax.jit(step).trace` returned.
    """
    donated = {donate_argnums} if isinstance(donate_argnums, int) else set(donate_argnums)
    if not donated <= set(range(len(args))):
        raise ImportFailure(
            f"donate_argnums={sorted(donated)}, but the step has {len(args)} arguments"
        )
    groups = _groups(list(zip(argument_names(step, len(args)), args)))
    names = [name for group in groups for name in group.names()]
    leaves = [leaf for group in groups for leaf in group.leaves]
    inits = [
        _as_init(name, leaf, seed=i + 1, by_shape=by_shape)
        for i, (name, leaf) in enumerate(zip(names, leaves))
    ]

    tree = jax.tree.structure(tuple(args))
    shapes = [
        jax.ShapeDtypeStruct(i.shape, i.dtype, weak_type=is_weak(leaf))
        for i, leaf in zip(inits, leaves)
    ]
    traced = jax.jit(step, keep_unused=True).trace(*jax.tree.unflatten(tree, shapes))
    results = _groups(_named_results(traced.out_info))

    typed = [
        dataclasses.replace(g, leaves=shapes[g.first : g.first + len(g.leaves)]) for g in groups
    ]
    result_names = [name for group in results for name in group.names()]
    updated_by = [None] * len(inits)
    updates, lost = _match_updates(typed, traced.out_info, donated)
    refuse_given_twice(names, leaves, updates)
    for i, k in updates.items():
        updated_by[i], result_names[k] = k, names[i]
    if lost:
        users.warn(
            f"donated arguments are not updated in place: {', '.join(lost)}: no result has "
            "their structure, shapes and types"
        )
    arguments = [Argument(*fields) for fields in zip(names, inits, updated_by)]
    types, result_tree = jax.tree.flatten(traced.out_info)
    return Signature(arguments, result_names, tree, result_tree, types), traced
