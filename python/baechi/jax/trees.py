# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Structures of arguments and results as data, to be read without running anything."""

from __future__ import annotations

import collections
import dataclasses
import sys
from typing import Any

import jax

_CONTAINERS: dict[str, type] = {
    "tuple": tuple,
    "list": list,
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "None": type(None),
}
_NAMES = {kind: name for name, kind in _CONTAINERS.items()}
_TREE: Any = type(jax.tree.structure(0))
_REGISTRY = jax.tree_util.default_registry


def to_data(tree: Any, what: str) -> Any:
    """As JSON. Raises ValueError, with `what` it is of, for containers that only the
    program that made them can make again."""
    found = tree.node_data()
    if found is None:
        return "*"
    kind, extra = found
    children = [to_data(child, what) for child in tree.children()]
    if kind in _NAMES:
        return [_NAMES[kind], _plain(extra, kind, what), children]
    place = f"{kind.__module__}:{kind.__qualname__}"
    if _class_at(place) is not kind:
        raise ValueError(
            f"{what} have a {kind.__qualname__}, which no file can name: define it in a module, "
            "not within a function"
        )
    return [place, _fields(kind) or _plain(extra, kind, what), children]


def from_data(data: Any) -> Any:
    """Raises ValueError for what `to_data` does not give, and for classes that no module
    of this process has: none is imported for a file."""
    # Of an object: JAX does not check structures that are put together without one.
    return jax.tree.structure(_example(data))


def _example(data: Any) -> Any:
    """An object of the structure, with zeros in it."""
    if data == "*":
        return 0
    if not isinstance(data, list) or len(data) != 3 or not isinstance(data[2], list):
        raise ValueError(f"{str(data)[:80]} is no structure")
    place, extra, children = str(data[0]), data[1], [_example(child) for child in data[2]]
    kind = _CONTAINERS.get(place)
    if kind in (dict, collections.OrderedDict):
        keys = _value(extra)
        if not isinstance(keys, list | tuple) or len(set(keys)) != len(children):
            raise ValueError(f"{keys} are no keys of {len(children)} values")
        return kind(zip(keys, children, strict=True))
    if kind is type(None):
        return None
    if kind is not None:
        return kind(children)
    found = _class_at(place)
    if not isinstance(found, type):
        raise ValueError(
            f"its arguments or results are in a {place}, which this process does not have: "
            "import the module that defines it before the step is loaded"
        )
    if fields := _fields(found):
        if fields != extra or len(fields[1]) != len(children):
            raise ValueError(f"{place} has other fields here")
        return found(*children)
    if dataclasses.is_dataclass(found):
        return _dataclass(found, _value(extra), children)
    structures = [jax.tree.structure(child) for child in children]
    node = found, _value(extra)
    try:
        tree = _TREE.from_node_data_and_children(_REGISTRY, node, structures)
    except RuntimeError as error:
        raise ValueError(f"{place} is no pytree of JAX's: {error}") from error
    return tree.unflatten([0] * tree.num_leaves)


def _dataclass(kind: type, fixed: Any, children: list[Any]) -> Any:
    """An instance; fixed: the values of the fields that are no arrays."""
    names = [field.name for field in dataclasses.fields(kind)]
    probe = _instance(kind, dict(zip(names, names, strict=True)))
    held = jax.tree.leaves(probe)
    tree: Any = jax.tree.structure(probe)
    found = tree.node_data()
    others = found[1] if found is not None else None
    if not isinstance(others, tuple) or not isinstance(fixed, tuple):
        raise ValueError(f"{kind.__qualname__} has no fields to be known by")
    if len(held) != len(children) or len(others) != len(fixed) or {*held, *others} - {*names}:
        raise ValueError(f"{kind.__qualname__} has other fields here")
    values = dict(zip(held, children, strict=True)) | dict(zip(others, fixed, strict=True))
    return _instance(kind, values)


def _instance(kind: type, values: dict[str, Any]) -> Any:
    """Without a call of its own code, which may check or change values."""
    made: Any = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _fields(kind: type) -> list[Any] | None:
    """Of a named tuple."""
    names = getattr(kind, "_fields", None)
    return ["fields", list(names)] if issubclass(kind, tuple) and names is not None else None


def _class_at(place: str) -> Any:
    module, _, name = place.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _plain(value: Any, kind: type, what: str) -> Any:
    """Values of a structure's own, with tuples told from lists."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (tuple, list):
        return [type(value).__name__, [_plain(each, kind, what) for each in value]]
    raise ValueError(
        f"{what} have a {kind.__qualname__} with {value!r} of type '{type(value).__name__}' in its "
        "structure, which a file cannot hold: let the step take and return the arrays in "
        "dictionaries, tuples, named tuples or dataclasses of arrays"
    )


def _value(data: Any) -> Any:
    if data is None or type(data) in (bool, int, float, str):
        return data
    if type(data) is list and len(data) == 2 and type(data[1]) is list:
        values = [_value(each) for each in data[1]]
        if data[0] in ("tuple", "list"):
            return tuple(values) if data[0] == "tuple" else values
    raise ValueError(f"{str(data)[:80]} is no value")
