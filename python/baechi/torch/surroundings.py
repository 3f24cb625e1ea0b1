# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model and a loss read of Python: attributes, closures and globals.

A trace has such values in its code: a dropout's probability, a loss's weight that is
annealed, a module's temperature. They are looked at before every call, as part of what a
program fits, so that a step is compiled again where PyTorch would compute otherwise.
"""

from __future__ import annotations

import dis
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from baechi.importer.common.errors import ImportFailure
from baechi.torch.values import (
    CONTAINERS,
    DEEPEST,
    FEW,
    PLAIN,
    Parts,
    TooManyParts,
    frozen,
    has_settings,
    in_bulk,
    is_users,
    own_attributes,
    settings,
)

# What every module has, and who else looks at it: the parameters, buffers and hooks.
OWN = frozenset(vars(torch.nn.Module())) | {"_is_full_backward_hook"}
_FUNCTIONS = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial
)  # fmt: skip
# Methods that run without being named; not those that compare, print or copy, which name all
# attributes of an object.
_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_IMPLICIT = frozenset(
    f"__{name}__"
    for name in [*_OPERATORS, *(f"r{name}" for name in _OPERATORS)]
    + "call getattr getattribute getitem len iter next contains bool float int index complex "
    "neg pos abs invert enter exit missing".split()
)
# Where attributes are read by strings, those that stand in the code are names.
_BY_STRINGS = frozenset({"getattr", "vars", "__dict__", "asdict", "attrgetter"})
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")

Snapshot = Mapping[str, Any]
# What is found at a path, and what the code that reads it names.
Objects = Mapping[str, tuple[Any, frozenset[str]]]


class Surroundings:
    """Looks again and again at the same model: most of it is as it was."""

    def __init__(self) -> None:
        self._attributes: dict[int, _Attributes] = {}

    def look(
        self, model: torch.nn.Module, functions: Mapping[str, Callable | None]
    ) -> tuple[Snapshot, Objects]:
        """Plain values by the path that a person would write, `model.1.p`, `loss: weight`, and
        the objects that are no plain values."""
        looking = _Looking(self._attributes)
        looking.at_module("model", model)
        for name, function in functions.items():
            if function is not None:
                looking.at_function(name, function)
        self._attributes = looking.attributes
        return looking.found, looking.objects


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
    if kind is types.CodeType:
        return "another function"
    plain = isinstance(content, PLAIN) and kind is not object
    return repr(content) if plain else "another object"


class _Attributes:
    """What was found of a module's attributes: values that cannot change are the same as long
    as the attribute holds the same object. All others are looked at each time.

    names: those that the user's code has; None: the module is a library's. What such a one
    has for itself (an LSTM's list of its weights) follows its parameters.
    """

    def __init__(self, path: str, names: frozenset[str] | None, attributes: dict[str, Any]):
        self._path, self._names, self._keys = path, names, list(attributes)
        self._constants: dict[str, Any] = {}
        self.others: list[str] = []
        for name, value in attributes.items():
            wanted = not name.startswith("_") if names is None else name in names
            if wanted and name not in OWN:
                if _is_constant(value):
                    self._constants[name] = value
                else:
                    self.others.append(name)
        nothing: frozenset[str] = frozenset()
        self.found = {f"{path}.{name}": frozen(x, nothing) for name, x in self._constants.items()}

    def fits(self, path: str, names: frozenset[str] | None, attributes: dict[str, Any]) -> bool:
        if path != self._path or names != self._names or list(attributes) != self._keys:
            return False
        now = map(attributes.__getitem__, self._constants)
        return all(map(operator.is_, now, self._constants.values()))


def _is_constant(value: Any) -> bool:
    return isinstance(value, PLAIN) or (
        type(value) is tuple
        and len(value) <= FEW
        and all(isinstance(part, PLAIN) for part in value)
    )


class _Looking:
    """Collects values along the functions that a step runs.

    before: what the last look found, by the numbers of modules. (A module that has another's
    number has attributes of its own, which is seen.)
    """

    def __init__(self, before: Mapping[int, _Attributes]) -> None:
        self.found: dict[str, Any] = {}
        self.objects: dict[str, tuple[Any, frozenset[str]]] = {}
        self.attributes: dict[int, _Attributes] = {}
        self._before = before
        self._modules: dict[int, str] = {}  # the paths by which they were found first
        self._named: dict[type, frozenset[str] | None] = {}  # by modules of these classes
        self._functions: dict[tuple[types.FunctionType, type | None], frozenset[str]] = {}
        self._depth = 0  # of functions that are being looked at
        # By an object's number and the names before: it, to keep the number, the names
        # with those of its methods, and what it is frozen as.
        self._known: dict[tuple[int, frozenset[str]], tuple[Any, frozenset[str], Any]] = {}
        self._shared: dict[tuple[type, frozenset[str]], dict[str, Any]] = {}

    def _put(self, path: str, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, PLAIN):
            self.found[path] = frozen(value, names)
            return
        key = id(value), names
        if (known := self._known.get(key)) is None:
            try:
                all_names = self._with_methods(path, value, names)
                known = value, all_names, frozen(value, all_names)
            except TooManyParts as error:
                raise ImportFailure(
                    f"forward or the loss reads '{path}', which {error}, too many to look for "
                    "changes before every call: give what it needs to the step as an argument"
                ) from None
            if self._depth == 0:  # else methods may name more
                self._known[key] = known
        self.objects[path] = value, known[1]
        self.found[path] = known[2]

    def _with_methods(self, path: str, value: Any, names: frozenset[str]) -> frozenset[str]:
        """The names, with those that methods have which code names of a user's object."""
        while True:
            more = names
            for kind in _kinds(value, names):
                for name in sorted(names | _implicit(kind)):
                    for method in _methods(kind, name):
                        more |= self.at_function(path, method, kind)
            if more == names:
                return names
            names = more

    def at_module(self, path: str, module: torch.nn.Module) -> None:
        if (first := self._modules.setdefault(id(module), path)) is not path:
            self.found.setdefault(path, (torch.nn.Module, first))
            return
        self._at_one(path, module)
        for name, part in module._modules.items():
            if part is not None:
                self.at_module(f"{path}.{name}", part)

    def _at_one(self, path: str, module: torch.nn.Module) -> None:
        kind, attributes = type(module), vars(module)
        self.found[path] = (type, kind)
        names = self._named_by(path, kind)
        before = self._before.get(id(module))
        if before is None or not before.fits(path, names, attributes):
            before = _Attributes(path, names, attributes)
        self.attributes[id(module)] = before
        self.found.update(before.found)
        for name in before.others:
            value = attributes[name]
            # What hooks make for a library's module is read within the trace alone.
            if names is not None or not isinstance(value, torch.Tensor):
                self._put(f"{path}.{name}", value, names or frozenset())
        if names:
            for name, value in self._of_class(kind, names).items():
                if name not in attributes:
                    self._put(f"{path}.{name}", value, names)
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for hook in hooks.values():
                self.at_function(f"{path}'s hook", hook)

    def _named_by(self, path: str, kind: type) -> frozenset[str] | None:
        """What the forward of a class names. A library's names its attributes in code that is
        not looked at: None."""
        if kind in self._named:
            return self._named[kind]
        names = None
        if is_users(kind.forward):
            names = self.at_function(path, kind.forward, kind)
            for name in sorted(_implicit(kind)):
                for method in _methods(kind, name):
                    names |= self.at_function(path, method, kind)
        if self._depth == 0:  # else they may not be all
            self._named[kind] = names
        return names

    def _of_class(self, kind: type, names: frozenset[str]) -> dict[str, Any]:
        """What a module finds in its classes that code names."""
        key = kind, names
        if key not in self._shared:
            self._shared[key] = {
                name: value
                for each in reversed(kind.__mro__)
                for name, value in own_attributes(each).items()
                if name in names
            }
        return self._shared[key]

    def at_function(self, path: str, function: Any, owner: type | None = None) -> frozenset[str]:
        """What a function reads of its closure and of globals, and what it names: also
        through methods of the class `owner`."""
        if isinstance(function, functools.partial):
            names = self.at_function(path, function.func, owner)
            given = [function.args, function.keywords]
            self._put(f"{path}: arguments", given, names)
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
        if not is_users(function):
            return frozenset()
        key = function, owner  # the methods that it calls are its owner's
        if key not in self._functions:
            self._functions[key] = _names(function.__code__)  # ends recursion
            # Whoever replaces it, or the method of a class, has other code run.
            where = f"{path}: {function.__qualname__}()"
            same_name = self.found.get(where, (None, ()))[1]
            self.found[where] = types.CodeType, (*same_name, function.__code__)
            self._depth += 1
            self._functions[key] |= self._at_code(path, function, owner)
            self._depth -= 1
        return self._functions[key]

    def _at_code(
        self, path: str, function: types.FunctionType, owner: type | None
    ) -> frozenset[str]:
        names = _names(function.__code__)
        # What it calls names attributes of what it is given, such as the model.
        called = []
        for name in sorted(names):
            for method in _methods(owner, name, by_super="super" in names):
                called.append(self.at_function(path, method, owner))
        values = [(f"{path}: {name}", value, None) for name, value in _given(function)]
        for name in sorted(_globals(function.__code__)):
            if name in function.__globals__:
                values += _of_global(f"{path}: {name}", function.__globals__[name], names)
        for where, value, kind in values:
            if isinstance(value, types.FunctionType | types.MethodType | functools.partial):
                called.append(self.at_function(where, value, kind))
        names = names.union(*called)
        for where, value, _ in values:
            self._at_value(where, value, names)
            if isinstance(value, types.FunctionType):
                for name in sorted(names & vars(value).keys()):
                    self._put(f"{where}.{name}", vars(value)[name], names)
        return names

    def _at_value(self, path: str, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, torch.nn.Module):
            self.at_module(path, value)
        elif not isinstance(value, (types.ModuleType, type, *_FUNCTIONS)):
            self._put(path, value, names)


def _of_global(path: str, value: Any, names: frozenset[str]) -> list[tuple[str, Any, type | None]]:
    """A global; of a user's module or class what code names of it. With the class."""
    if not isinstance(value, types.ModuleType | type):
        return [(path, value, None)]
    if not is_users(value):
        return []
    kind = value if isinstance(value, type) else None
    found = []
    for name in sorted(names & vars(value).keys()):
        part = _unbound(vars(value)[name])
        if not isinstance(part, types.ModuleType | type):
            found.append((f"{path}.{name}", part, kind))
    return found


def _unbound(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _definitions(owner: type, name: str) -> Iterator[Any]:
    """The first one is what inspect.getattr_static finds, in a tenth of its time."""
    for kind in (*owner.__mro__, *type(owner).__mro__):
        if name in vars(kind):
            yield vars(kind)[name]


def _implicit(kind: type) -> set[str]:
    """The methods of `_IMPLICIT` that users' classes have."""
    users = (each for each in kind.__mro__ if each is not object and is_users(each))
    return {name for each in users for name in _IMPLICIT & vars(each).keys()}


def _methods(owner: type | None, name: str, by_super: bool = False) -> Iterator[types.FunctionType]:
    """What code runs that names an attribute of an object, if that is a function; `super()`
    finds those that others hide, too."""
    for value in () if owner is None else _definitions(owner, name):
        found = _unbound(value)
        if isinstance(found, functools.cached_property):
            found = found.func
        found = found.fget if isinstance(found, property) else found
        if not isinstance(found, types.FunctionType):
            found = getattr(type(found), "__get__", None)  # a descriptor's
        if isinstance(found, types.FunctionType):
            yield found
        if not by_super:
            return


def _kinds(
    value: Any, names: frozenset[str], depth: int = 0, parts: Parts | None = None
) -> set[type]:
    """The users' classes of an object and of those in it, as far as `frozen` looks."""
    kinds: set[type] = set()
    if isinstance(value, PLAIN) or depth >= DEEPEST:
        return kinds
    parts, held = parts or Parts(), []
    if isinstance(value, (Mapping, *CONTAINERS)):
        held = [] if in_bulk(value) else parts.of(value)
    elif has_settings(value) and is_users(type(value)):
        kinds.add(type(value))
        held = [part for name, part in settings(value).items() if name in names]
    return kinds.union(*(_kinds(part, names, depth + 1, parts) for part in held))


@functools.cache
def _globals(code: types.CodeType) -> frozenset[str]:
    """Those of `_names` that are no attributes."""
    inner = (_globals(x) for x in code.co_consts if isinstance(x, types.CodeType))
    loads = (each for each in dis.get_instructions(code) if each.opname in _LOADS)
    return frozenset(each.argval for each in loads).union(*inner)


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """Globals and attributes that code names, with those of functions within it."""
    inner = (_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    found = frozenset(code.co_names).union(*inner)
    if found & _BY_STRINGS:
        found |= {x for x in code.co_consts if isinstance(x, str) and x.isidentifier()}
    return found


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
