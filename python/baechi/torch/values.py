# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's values as what compares as they do, and what of objects is looked at."""

from __future__ import annotations

import array
import collections
import enum
import functools
import hashlib
import marshal
import math
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from torch._subclasses import FakeTensor

PLAIN = (
    bool, int, float, complex, str, bytes, type(None), enum.Enum, range,
    torch.dtype, torch.device, torch.Size,
)  # fmt: skip
DEEPEST = 8  # container or object within another
CONTAINERS = (list, tuple, collections.deque, set, frozenset)
FEW = 256  # elements that are kept; of larger containers and arrays a digest is
_MOST_PARTS = 100_000  # that are looked at one by one, within one value
_MOST_IN_BULK = 10_000_000  # that are counted, each as often as it is held
# What is written as bytes all at once. Of others equal values have several forms.
_IN_BULK = frozenset({bool, int, float, complex, str, bytes, type(None)})
_BY_VALUE = 2  # the version of marshal's format that knows no object a second time
_PACKAGES = ("site-packages", "dist-packages")


class TooManyParts(Exception):
    """A value has more parts than can be looked at before every call."""


class Parts:
    """What containers hold, as long as that can be looked at."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: Mapping | Sequence | Set) -> list[Any]:
        """The elements; of a mapping keys and values in turn."""
        self._count += len(value)
        if self._count > _MOST_PARTS:
            raise TooManyParts(f"holds more than {_MOST_PARTS:,} objects")
        if isinstance(value, Mapping):
            return [x for pair in value.items() for x in pair]
        return list(value)


class Digest:
    """Stands for many values, and compares as they do."""

    def __init__(self, content: Any):
        self._content = hashlib.blake2b(content).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        return self._content.hex()


def in_bulk(value: Any) -> bool:
    """Whether a container is large, and of numbers and strings alone, and lists of them."""
    if len(value) <= FEW:
        return False
    parts = chain(value.keys(), value.values()) if isinstance(value, Mapping) else value
    for _ in range(DEEPEST):
        parts = list(islice(parts, _MOST_IN_BULK + 1))
        if len(parts) > _MOST_IN_BULK:
            return False
        kinds = set(map(type, parts))
        if kinds <= _IN_BULK:
            return True
        if not kinds <= _IN_BULK | {list, tuple}:
            return False
        parts = chain.from_iterable(x for x in parts if type(x) in (list, tuple))
    return False


def frozen(
    value: Any, names: frozenset[str], depth: int = 0, parts: Parts | None = None
) -> tuple[Any, Any]:
    """(kind, content), which compare as the values do; what is not plain, by identity.
    Of a user's object, such as a configuration, the attributes that code `names`."""
    parts = parts or Parts()
    # Those that equal others, or not even themselves.
    if isinstance(value, float) and (math.isnan(value) or str(value) == "-0.0"):
        return type(value), str(value)
    if isinstance(value, complex):
        return complex, repr(value)
    if isinstance(value, slice):  # has no hash
        return slice, (value.start, value.stop, value.step)
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, FakeTensor):
        return object, FakeTensor
    if type(value) is functools.partial:
        value = [value.func, value.args, value.keywords]
    if isinstance(value, np.void) and value.dtype.hasobject:
        value = value.item()
    if isinstance(value, np.ma.MaskedArray):
        value = [value.data, np.ma.getmaskarray(value)]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        few = value.size <= FEW
        content = value.tobytes() if few else Digest(np.ascontiguousarray(value).view(np.uint8))
        return np.ndarray, (value.dtype.str, value.shape, content)
    if isinstance(value, bytearray | array.array):
        return type(value), (getattr(value, "typecode", "B"), Digest(value))
    if isinstance(value, np.generic) and not isinstance(value, np.object_):
        return type(value), value.tobytes()
    if depth < DEEPEST:
        within = functools.partial(frozen, names=names, depth=depth + 1, parts=parts)
        if isinstance(value, (Mapping, *CONTAINERS)):
            return type(value), _held(value, within, parts)
        if isinstance(value, np.ndarray):
            return np.ndarray, (value.shape, *map(within, parts.of(value.ravel())))
        if has_settings(value):
            read = [(name, within(x)) for name, x in settings(value).items() if name in names]
            return type(value), (_Same(value), *read)
    return object, _Same(value)


def _held(value: Mapping | Sequence | Set, within: Callable[[Any], Any], parts: Parts) -> Hashable:
    if in_bulk(value):
        whole: Any = list(value)
        if isinstance(value, Mapping):
            whole = [whole, list(value.values())]
        elif isinstance(value, Set):
            whole = frozenset(value)  # is written in an order of its own
        return Digest(marshal.dumps(whole, _BY_VALUE))
    held = map(within, parts.of(value))
    return frozenset(held) if isinstance(value, Set) else tuple(held)


class _Same:
    """Equal for one object alone. Not its number, which others get once it is gone."""

    def __init__(self, value: Any):
        self._number = id(value)
        try:
            self._get: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._get = lambda: value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same) or other._number != self._number:
            return False
        mine = self._get()
        return mine is not None and mine is other._get()

    def __hash__(self) -> int:
        return self._number


def has_settings(value: Any) -> bool:
    if isinstance(value, torch.Tensor | torch.nn.Module | torch.Generator):
        return False
    kind = type(value)
    return not kind.__module__.startswith("torch") and (
        hasattr(value, "__dict__") or bool(_slots(kind))
    )


def settings(value: Any) -> dict[str, Any]:
    """The attributes that an object has for itself, also in slots."""
    found = dict(getattr(value, "__dict__", {}))
    for name, slot in _slots(type(value)).items():
        try:
            found[name] = slot.__get__(value)
        except AttributeError:  # not set
            continue
    return found


@functools.cache
def _slots(kind: type) -> dict[str, types.MemberDescriptorType]:
    """Of a user's classes."""
    return {
        name: slot
        for each in reversed(kind.__mro__)
        if each is not object and is_users(each)
        for name, slot in vars(each).items()
        if isinstance(slot, types.MemberDescriptorType)
    }


def own_attributes(kind: type) -> dict[str, Any]:
    """What a user's class itself has for all of its objects: no functions, and nothing that
    computes what it gives but a user's descriptors."""
    if kind is object or not is_users(kind):
        return {}
    return {
        name: value
        for name, value in vars(kind).items()
        if not name.startswith("__")
        and (
            not hasattr(type(value), "__get__")
            or isinstance(type(value).__get__, types.FunctionType)
        )
    }


def is_users(owner: Any) -> bool:
    """Not the standard library's and no installed package's: those have no values that
    change what they compute, or too many to look at."""
    name = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    return name is None or _is_users_module(name)  # None: made by exec


@functools.cache
def _is_users_module(name: str) -> bool:
    if name.split(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or not any(folder in file for folder in _PACKAGES)
