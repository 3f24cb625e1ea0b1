# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's values as what compares as they do, and what of objects is looked at."""

from __future__ import annotations

import collections
import enum
import functools
import math
import sys
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch._subclasses import FakeTensor

PLAIN = (
    bool, int, float, complex, str, bytes, type(None), enum.Enum, range,
    torch.dtype, torch.device, torch.Size,
)  # fmt: skip
MOST_ELEMENTS = 256  # of a container; larger ones are data, and count by their identity
DEEPEST = 8  # container or object within another
CONTAINERS = (list, tuple, collections.deque, set, frozenset)
_PACKAGES = ("site-packages", "dist-packages")


def frozen(value: Any, names: frozenset[str], depth: int = 0) -> tuple[Any, Any]:
    """(kind, content), which compare as the values do; what is not plain, by identity.
    Of a user's object, such as a configuration, the attributes that code `names`."""
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
    if isinstance(value, np.ndarray) and value.size <= MOST_ELEMENTS:
        return np.ndarray, (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, bytearray) and len(value) <= MOST_ELEMENTS:
        return bytearray, bytes(value)
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if depth < DEEPEST:
        within = functools.partial(frozen, names=names, depth=depth + 1)
        if isinstance(value, Mapping) and len(value) <= MOST_ELEMENTS:
            return type(value), tuple((within(k), within(v)) for k, v in value.items())
        if isinstance(value, set | frozenset) and len(value) <= MOST_ELEMENTS:
            return type(value), frozenset(within(x) for x in value)
        if isinstance(value, CONTAINERS) and len(value) <= MOST_ELEMENTS:
            return type(value), tuple(within(x) for x in value)
        if has_settings(value):
            read = [(name, within(x)) for name, x in settings(value).items() if name in names]
            return type(value), (_Same(value), *read)
    return object, _Same(value)


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
