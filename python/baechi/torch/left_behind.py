# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What forward and the loss leave behind in Python, which is refused.

They run where a step is traced alone, and more than once: first to find which parameters
the loss depends on. What counts, draws, takes from an iterator or looks at the time would
be another value than PyTorch's, already in the first result.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import random
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch.names import user_line
from baechi.torch.gradients import Elsewhere
from baechi.torch.surroundings import OWN, Objects, Snapshot, difference
from baechi.torch.values import PLAIN, Digest, has_settings, own_attributes, settings

Owner = torch.nn.Module | type

_NUMBERS = (int, float, complex)
_LONGEST = 80  # of a call's arguments in a message
_AGAIN = "a compiled step does not run them again"


@contextlib.contextmanager
def without_draws(objects: Objects) -> Iterator[None]:
    """Raises ImportFailure where the body draws from random numbers of Python or NumPy, or
    would take from an iterator: a program would have the first ones for good."""
    sources: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
        ("Python's random", random.getstate, random.setstate),
        (
            "numpy.random",
            functools.partial(np.random.get_state, legacy=False),
            np.random.set_state,
        ),
    ]
    for path, value in _held(objects):
        if isinstance(value, random.Random):
            sources.append((f"'{path}'", value.getstate, value.setstate))
        elif isinstance(value, np.random.RandomState):
            state = functools.partial(value.get_state, legacy=False)
            sources.append((f"'{path}'", state, value.set_state))
        elif isinstance(value, np.random.Generator):
            of = value.bit_generator, "state"
            get, put = functools.partial(getattr, *of), functools.partial(setattr, *of)
            sources.append((f"'{path}'", get, put))
        elif hasattr(type(value), "__next__") and not isinstance(value, io.IOBase):
            raise ImportFailure(
                f"forward or the loss reads the iterator '{path}'; {_AGAIN}: take from it before, "
                "and give what it gives to the step as an argument"
            )
    before = [copy.deepcopy(state()) for _, state, _ in sources]
    drawn: list[str] = []
    try:
        yield
    finally:
        for (name, state, put), old in zip(sources, before, strict=True):
            if repr(state()) != repr(old):
                put(old)
                drawn.append(name)
    if drawn:
        raise ImportFailure(
            f"forward or the loss draws a number from {drawn[0]}, which a compiled step would "
            "not draw again: use torch.rand, or give it to the step as an argument"
        )


def _held(objects: Objects) -> Iterator[tuple[str, Any]]:
    """The objects, and what they hold: elements, attributes that code names."""
    for path, (value, names) in objects.items():
        yield path, value
        if isinstance(value, Mapping):
            yield from ((f"{path}[{key!r}]", x) for key, x in value.items())
        elif isinstance(value, list | tuple):
            yield from ((f"{path}[{i}]", x) for i, x in enumerate(value))
        elif has_settings(value):
            yield from (
                (f"{path}.{name}", x) for name, x in settings(value).items() if name in names
            )


class Journal:
    """What forward and the loss ask PyTorch for, in order, without the values of tensors
    that a trace stands for: the same in every run, or the step is none to be compiled."""

    def __init__(self) -> None:
        self._asked: list[tuple[str, tuple]] = []
        self._places: list[str] = []

    def note(self, function: Any, args: tuple, kwargs: Mapping[str, Any], result: Any) -> None:
        if isinstance(function, torch._ops.OpOverload) or _in_dispatch():
            return  # PyTorch's own code asks, which may see that it is traced
        if isinstance(result, PLAIN) and result is not None:
            return  # a type or a shape: what is done about it is asked for, too
        name = getattr(function, "__name__", str(function))
        self._asked.append((name, _seen([args, kwargs])))
        self._places.append(user_line())

    def check_repeated(self, again: Journal, before: Snapshot, after: Snapshot) -> None:
        """Raises ImportFailure where a later run has asked for something else.
        before, after: what the first run has changed may be why."""
        both = zip(self._asked, again._asked)
        i = next((i for i, (a, b) in enumerate(both) if a != b), None)
        if i is None:
            i = min(len(self._asked), len(again._asked))
            if i == len(self._asked) == len(again._asked):
                return
        places = self._places if i < len(self._places) else again._places
        changed = difference(before, after)
        why = f" ({changed} before)" if changed != "nothing" else ""
        raise ImportFailure(
            f"{places[i]}: forward or the loss does not do the same when it is run once more: "
            f"{self._told(i)}, then {again._told(i)}{why}; {_AGAIN}: give what changes to the "
            "step as an argument, or keep it in a buffer"
        )

    def _told(self, i: int) -> str:
        if i >= len(self._asked):
            return "nothing"
        name, given = self._asked[i]
        told = [part[1] if part[0] == "plain" else "…" for part in given]
        return f"{name.strip('_')}({textwrap.shorten(', '.join(told), _LONGEST)})"


def _in_dispatch() -> bool:
    """Whether a tracer asks: below a mode of the program's own it is heard, too."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "__torch_dispatch__":
        frame = frame.f_back
    return frame is not None


def _seen(given: Any) -> tuple:
    """The leaves of arguments, as far as they must be the same."""
    return tuple(map(_leaf, pytree.tree_leaves(given)))


def _leaf(leaf: Any) -> tuple:
    if isinstance(leaf, torch.Tensor):
        return "tensor", tuple(leaf.shape), leaf.dtype
    if isinstance(leaf, slice):
        return "slice", *map(_leaf, (leaf.start, leaf.stop, leaf.step))
    if isinstance(leaf, np.ndarray | np.generic):
        return "array", leaf.shape, leaf.tobytes()
    if isinstance(leaf, PLAIN):
        return "plain", repr(leaf)
    return "object", type(leaf)


def put_back(attributes: Iterable[tuple[Owner, dict[str, Any]]]) -> None:
    """Gives modules and their classes the attributes that they had (`attributes_of`)."""
    for owner, before in attributes:
        for name in set(_attributes(owner)) - set(before):
            type.__delattr__(owner, name) if isinstance(owner, type) else vars(owner).pop(name)
        for name, (value, content) in before.items():
            if isinstance(owner, type):
                setattr(owner, name, value)
            else:  # past what a module's own assignment does
                vars(owner)[name] = value
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


def attributes_of(model: torch.nn.Module) -> list[tuple[Owner, dict[str, Any]]]:
    """Attributes of modules and of their classes as they are now, with what lists,
    dictionaries and sets hold."""

    def kept(value: Any) -> tuple[Any, Any]:
        return value, copy.copy(value) if type(value) in (list, dict, set) else None

    modules = list(model.modules())
    classes = dict.fromkeys(kind for module in modules for kind in type(module).__mro__)
    return [
        (owner, {name: kept(x) for name, x in _attributes(owner).items()})
        for owner in [*modules, *classes]
    ]


def _attributes(owner: Owner) -> dict[str, Any]:
    if isinstance(owner, type):
        return own_attributes(owner)
    return {name: value for name, value in vars(owner).items() if name not in OWN}


def check_unchanged(before: Snapshot, once: Snapshot, after: Snapshot) -> None:
    """Raises ImportFailure for a number or a tensor that forward or the loss left behind,
    and for what they change at every run.

    before, once, after: what they read before the runs, after the first one, and after all.
    """
    for path, value in after.items():
        if value != before.get(path) and _holds_traced(value):
            raise ImportFailure(
                f"forward or the loss keeps a tensor in '{path}'; {_AGAIN}: return it beside the "
                "loss (outputs=), or make it a buffer"
            )
        for old in (before.get(path), once.get(path)):
            if value != old and _is_counted(old, value, always=old is not before.get(path)):
                was = f", which was {old[1]!r}" if _is_plain(old) else ""
                raise ImportFailure(
                    f"forward or the loss changes '{path}'{was}; {_AGAIN}: keep numbers that "
                    "change in buffers, or return them (outputs=)"
                )


def _is_counted(old: Any, new: Any, always: bool) -> bool:
    """Whether a value is a number that was another one. always: it is not the first run that
    made it so, so that one that is no number counts, too."""
    if not _is_plain(new):
        return _numbers(new) != _numbers(old)
    if always:
        return True
    return old is not None and old[0] in _NUMBERS and new[0] in _NUMBERS


def _is_plain(value: Any) -> bool:
    return value is not None and isinstance(value[1], PLAIN) and value[0] is not object


def _numbers(value: Any) -> list[str]:
    """The numbers within a container, in any order of a set's."""
    if isinstance(value, Digest):
        return [repr(value)]
    if not isinstance(value, tuple | frozenset):
        return []
    if len(value) == 2 and value[0] in _NUMBERS:
        return [repr(value[1])]
    found = [number for part in value for number in _numbers(part)]
    return sorted(found) if isinstance(value, frozenset) else found


def _holds_traced(value: Any) -> bool:
    return any(leaf is FakeTensor for leaf in pytree.tree_leaves(value))
