# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model and a loss read of Python: attributes, closures and globals.

A trace has such values in its code: a dropout's probability, a loss's weight that is
annealed, a module's temperature. They are looked at before every call, as part of what a
program fits, so that a step is compiled again where PyTorch would compute otherwise.
What forward itself leaves behind is refused: it runs in the trace alone.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import inspect
import math
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

from baechi.importer.errors import ImportFailure
from baechi.torch.gradients import Elsewhere

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), enum.Enum, range,
    torch.dtype, torch.device, torch.Size,
)  # fmt: skip
_NUMBERS = (int, float, complex)
# What every module has, and who else looks at it: the parameters, buffers and hooks.
_OWN = frozenset(vars(torch.nn.Module())) | {"_is_full_backward_hook"}
_MOST_ELEMENTS = 256  # of a container; larger ones are data, and count by their identity
_DEEPEST = 4
_PACKAGES = ("site-packages", "dist-packages")

Snapshot = Mapping[str, Any]


def snapshot(model: torch.nn.Module, functions: Mapping[str, Callable | None]) -> Snapshot:
    """Plain values by the path that a person would write: `model.1.p`, `loss: weight`."""
    looking = _Looking()
    looking.at_module("model", model)
    for name, function in functions.items():
        if function is not None:
            looking.at_function(name, function)
    return looking.found


@contextlib.contextmanager
def without_draws() -> Iterator[None]:
    """Raises ImportFailure where the body draws from Python's or NumPy's random numbers:
    a program would have the first ones for good."""
    python, numpy = random.getstate(), np.random.get_state(legacy=False)
    yield
    for name, changed in (
        ("Python's random", random.getstate() != python),
        ("numpy.random", repr(np.random.get_state(legacy=False)) != repr(numpy)),
    ):
        if changed:
            random.setstate(python)
            np.random.set_state(numpy)
            raise ImportFailure(
                f"forward or the loss draws a number from {name}, which a compiled step would "
                "not draw again: use torch.rand, or give it to the step as an argument"
            )


def put_back(attributes: Iterable[tuple[torch.nn.Module, dict[str, Any]]]) -> None:
    """Gives modules the attributes that they had (`attributes_of`)."""
    for module, before in attributes:
        for name in set(vars(module)) - _OWN - set(before):
            del vars(module)[name]
        for name, (value, content) in before.items():
            vars(module)[name] = value
            if content is not None:  # in the container that others may hold
                value.clear()
                value.extend(content) if isinstance(value, list) else value.update(content)


def guard_computed(model: torch.nn.Module) -> None:
    """Takes the tensors of a trace that hooks left in a library's modules: a pruned
    layer's `weight`."""
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, FakeTensor):
                vars(module)[name] = Elsewhere(value)


def attributes_of(model: torch.nn.Module) -> list[tuple[torch.nn.Module, dict[str, Any]]]:
    """Attributes as they are now, with what lists, dictionaries and sets hold."""

    def kept(value: Any) -> tuple[Any, Any]:
        return value, copy.copy(value) if type(value) in (list, dict, set) else None

    return [
        (module, {name: kept(x) for name, x in vars(module).items() if name not in _OWN})
        for module in model.modules()
    ]


def check_unchanged(before: Snapshot, after: Snapshot) -> None:
    """Raises ImportFailure for a number or a tensor that forward or the loss left behind."""
    for path, value in after.items():
        if value == before.get(path):
            continue
        if _holds_traced(value):
            raise ImportFailure(
                f"forward or the loss keeps a tensor in '{path}'; a compiled step does not run "
                "them again: return it beside the loss (outputs=), or make it a buffer"
            )
        old = before.get(path, (None, None))
        if isinstance(value[1], tuple | frozenset) and _numbers(value) != _numbers(old):
            raise ImportFailure(
                f"forward or the loss changes '{path}'; a compiled step does not run them again: "
                "keep numbers that change in buffers, or return them (outputs=)"
            )
        if value[0] in _NUMBERS and old[0] in _NUMBERS:
            raise ImportFailure(
                f"forward or the loss changes '{path}', which was {old[1]}; a compiled step does "
                "not run them again: keep such a number in a buffer"
            )


def difference(before: Snapshot, after: Snapshot) -> str:
    """The first value that is another, in words."""
    for path in [*after, *before]:
        old, new = before.get(path), after.get(path)
        if old != new:
            return f"'{path}' is {_told(new)} and was {_told(old)}"
    return "nothing"


def _told(value: Any) -> str:
    if value is None:
        return "nothing"
    kind, content = value
    plain = isinstance(content, _PLAIN) and kind is not object
    return repr(content) if plain else "another object"


def _numbers(value: Any) -> list[str]:
    """The numbers within a container, in any order of a set's."""
    if not isinstance(value, tuple | frozenset):
        return []
    if len(value) == 2 and value[0] in _NUMBERS:
        return [repr(value[1])]
    found = [number for part in value for number in _numbers(part)]
    return sorted(found) if isinstance(value, frozenset) else found


def _holds_traced(value: Any) -> bool:
    return any(leaf is FakeTensor for leaf in pytree.tree_leaves(value))


class _Looking:
    """Collects values along the functions that a step runs."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._modules: set[int] = set()
        self._functions: dict[types.FunctionType, frozenset[str]] = {}

    def at_module(self, path: str, module: torch.nn.Module) -> None:
        for name, part in module.named_modules():
            self._at_one(f"{path}.{name}" if name else path, part)

    def _at_one(self, path: str, module: torch.nn.Module) -> None:
        if id(module) in self._modules:
            return
        self._modules.add(id(module))
        self.found[path] = (type, type(module))
        forward = type(module).forward
        # A library's module names its attributes in code that is not looked at. What
        # it has for itself (an LSTM's list of its weights) follows its parameters.
        names = self.at_function(path, forward, type(module)) if _is_users(forward) else None
        for name, value in vars(module).items():
            if names is None:  # what hooks make for it is read within the trace alone
                wanted = not name.startswith("_") and not isinstance(value, torch.Tensor)
            else:
                wanted = name in names
            if wanted and name not in _OWN:
                self.found[f"{path}.{name}"] = frozen(value, names or frozenset())
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for hook in hooks.values():
                self.at_function(f"{path}'s hook", hook)

    def at_function(self, path: str, function: Any, owner: type | None = None) -> frozenset[str]:
        """What a function reads of its closure and of globals, and what it names: also
        through methods of the class `owner`."""
        if isinstance(function, functools.partial):
            names = self.at_function(path, function.func, owner)
            given = [function.args, function.keywords]
            self.found[f"{path}: arguments"] = frozen(given, names)
            return names
        if isinstance(function, torch.nn.Module):
            self.at_module(path, function)
            return frozenset()
        if isinstance(function, types.MethodType):
            kept = function.__self__
            names = self.at_function(path, function.__func__, type(kept))
            self._at_value(path, kept, names)
            return names
        function = inspect.unwrap(function)
        if not isinstance(function, types.FunctionType):
            call = getattr(type(function), "__call__", None)
            if not isinstance(call, types.FunctionType):
                return frozenset()
            names = self.at_function(path, call, type(function))
            self._at_value(path, function, names)
            return names
        if not _is_users(function):
            return frozenset()
        if function not in self._functions:
            self._functions[function] = _names(function.__code__)  # ends recursion
            self._functions[function] |= self._at_code(path, function, owner)
        return self._functions[function]

    def _at_code(
        self, path: str, function: types.FunctionType, owner: type | None
    ) -> frozenset[str]:
        names = _names(function.__code__)
        methods = []
        for name in sorted(names):
            method = None if owner is None else inspect.getattr_static(owner, name, None)
            method = method.fget if isinstance(method, property) else method
            if isinstance(method, types.FunctionType) and name not in function.__globals__:
                methods.append(self.at_function(path, method, owner))
        names = names.union(*methods)
        for name, value in _given(function):
            self._at_value(f"{path}: {name}", value, names)
        for name in sorted(names & set(function.__globals__)):
            self._at_global(f"{path}: {name}", function.__globals__[name], names)
        return names

    def _at_global(self, path: str, value: Any, names: frozenset[str]) -> None:
        """A global; of a module or a class the plain values that a function names."""
        if not isinstance(value, types.ModuleType | type):
            self._at_value(path, value, names)
        elif _is_users(value):
            for name in sorted(names & set(vars(value))):
                if not isinstance(vars(value)[name], types.ModuleType | type):
                    self._at_value(f"{path}.{name}", vars(value)[name], names)

    def _at_value(self, path: str, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, torch.nn.Module):
            self.at_module(path, value)
        elif isinstance(value, types.FunctionType | types.MethodType | functools.partial):
            self.at_function(path, value)
        elif not isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
            self.found[path] = frozen(value, names)


def frozen(value: Any, names: frozenset[str], depth: int = 0) -> tuple[Any, Any]:
    """(kind, content), which compare as the values do; what is not plain, by identity.
    Of a user's object, such as a configuration, the attributes that code `names`."""
    if isinstance(value, float) and math.isnan(value):
        return float, "nan"
    if isinstance(value, slice):  # has no hash
        return slice, (value.start, value.stop, value.step)
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, FakeTensor):
        return object, FakeTensor
    if isinstance(value, np.ndarray) and value.size <= _MOST_ELEMENTS:
        return np.ndarray, (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if depth < _DEEPEST:
        within = functools.partial(frozen, names=names, depth=depth + 1)
        if isinstance(value, Mapping) and len(value) <= _MOST_ELEMENTS:
            return type(value), tuple((within(k), within(v)) for k, v in value.items())
        if isinstance(value, list | tuple) and len(value) <= _MOST_ELEMENTS:
            return type(value), tuple(within(x) for x in value)
        if isinstance(value, set | frozenset) and len(value) <= _MOST_ELEMENTS:
            return type(value), frozenset(within(x) for x in value)
        if _has_settings(value):
            read = [name for name in vars(value) if name in names]
            return type(value), (id(value), *((name, within(vars(value)[name])) for name in read))
    return object, id(value)


def _has_settings(value: Any) -> bool:
    if isinstance(value, torch.Tensor | torch.nn.Module | torch.Generator):
        return False
    return hasattr(value, "__dict__") and not type(value).__module__.startswith("torch")


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """Globals and attributes that code names, with those of functions within it."""
    inner = (_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return frozenset(code.co_names).union(*inner)


def _given(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The closure's values and the defaults of a function, by name."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet filled
            continue
    code, defaults = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    yield from zip(positional[len(positional) - len(defaults) :], defaults)
    yield from (function.__kwdefaults__ or {}).items()


def _is_users(owner: Any) -> bool:
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
