# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of a step's arguments and results, and which result updates which."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from baechi import init
from baechi.importer.errors import ImportFailure
from baechi.importer.module import Argument


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
        def types(group):
            return [(leaf.shape, np.dtype(leaf.dtype)) for leaf in group.leaves]

        return self.tree == other.tree and types(self) == types(other)

    def names(self) -> list[str]:
        return [f"{self.name}/{path}" if path else self.name for path in self.paths]


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
    return names


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


def _as_init(name: str, leaf: Any, seed: int) -> init.Init:
    if isinstance(leaf, init.Init):
        return leaf
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


def _match_updates(arguments: list[_Group], results: list[_Group], donated: set[int]):
    """Maps donated arguments to the results of the same structure: first those
    of the same name, then in order. (JAX's own aliasing only matches shapes,
    so it may pair a weight with another weight's new value.)"""
    updates, free = {}, list(results)

    def claim(index, candidates):
        found = next((r for r in candidates if arguments[index].matches(r)), None)
        if found is not None:
            updates[index] = found
            free.remove(found)

    waiting = [i for i in sorted(donated) if arguments[i].leaves]
    for i in waiting:
        claim(i, [r for r in free if r.name == arguments[i].name])
    for i in [i for i in waiting if i not in updates]:
        claim(i, free)
        if i not in updates:
            raise ImportFailure(
                f"argument '{arguments[i].name}' is donated, but no result has its "
                "structure, shapes and types: return its next value"
            )
    return updates


def describe(step: Callable, args: Sequence[Any], donate_argnums: Sequence[int]):
    """Flattens the arguments and traces `step` on their shapes.

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
    inits = [_as_init(name, leaf, seed=i + 1) for i, (name, leaf) in enumerate(zip(names, leaves))]

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
    for index, result in _match_updates(typed, results, donated).items():
        for k in range(len(result.leaves)):
            updated_by[groups[index].first + k] = result.first + k
            result_names[result.first + k] = names[groups[index].first + k]
    arguments = [Argument(*fields) for fields in zip(names, inits, updated_by)]
    types, result_tree = jax.tree.flatten(traced.out_info)
    return Signature(arguments, result_names, tree, result_tree, types), traced
