# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of what PyTorch traces: the path of the module, and the user's line.

A forward operation is told by hooks on modules. A backward operation belongs to
the forward one whose autograd node is being run: autograd numbers its nodes in
the order of the forward pass, and the numbers at which modules began, and at
which operations were traced, are noted there.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Iterator

import torch
from torch.nn.modules import module as hooks

BACKWARD = "backward"
_META = "baechi"  # the key in a node's meta
# Frames of these packages are not the user's.
FOREIGN = tuple(
    str(pathlib.Path(sys.modules[package].__file__).parent) + "/" for package in ("torch", "baechi")
)


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where an operation of a trace comes from."""

    scope: str  # "layers.0.fc1", "backward/layers.0.fc1", "update/layers.0.fc1.weight"
    source: str  # "model.py:12"


def origin_of(node: torch.fx.Node) -> Origin:
    return node.meta.get(_META, Origin("", "unknown"))


def name_of(node: torch.fx.Node) -> str:
    """The name of a node's operators: `layers.0.fc1/addmm`."""
    return name_in(origin_of(node).scope, node.target)


def name_in(scope: str, target: object) -> str:
    """The name of an operation in a scope."""
    target = getattr(target, "overloadpacket", target)
    operation = getattr(target, "__name__", str(target)).strip("_")
    return f"{scope}/{operation}" if scope else operation


class Recorder:
    """Gives every node that is traced meanwhile its Origin.

    model: None where no modules are called but a graph is run whose origins are known.
    """

    def __init__(self, model: torch.nn.Module | None):
        named = () if model is None else model.named_modules()
        self._names = {module: name for name, module in named}
        self._scopes = [""]
        self._known: Origin | None = None
        # Parallel, by rising number of autograd's next node.
        self._entered: list[int] = []
        self._entered_scopes: list[str] = []
        self._traced: list[int] = []
        self._traced_sources: list[str] = []

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """What is traced inside belongs to `name`."""
        self._enter(name)
        try:
            yield
        finally:
            self._leave()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        registered = []
        if self._names:  # other threads see these hooks, and torch.compile guards on them
            registered = [
                hooks.register_module_forward_pre_hook(self._before_module),
                hooks.register_module_forward_hook(self._after_module, always_call=True),
            ]
        # Tracing makes nodes in several places; they all end here.
        create_node = torch.fx.Graph.create_node

        def create_named(graph, op, *args, **kwargs):
            node = create_node(graph, op, *args, **kwargs)
            if op == "call_function":
                node.meta[_META] = self.origin()
            return node

        torch.fx.Graph.create_node = create_named
        try:
            yield
        finally:
            torch.fx.Graph.create_node = create_node
            for hook in registered:
                hook.remove()

    def _enter(self, scope: str) -> None:
        self._scopes.append(scope)
        self._note()

    def _leave(self) -> None:
        self._scopes.pop()
        self._note()

    def _note(self) -> None:
        self._entered.append(torch.autograd._get_sequence_nr())
        self._entered_scopes.append(self._scopes[-1])

    def _before_module(self, module, _):
        if module in self._names:
            # A call from the loss or an update stays theirs where it is of no path.
            self._enter(self._names[module] or self._scopes[-1])

    def _after_module(self, module, *_):
        if module in self._names:
            self._leave()

    @contextlib.contextmanager
    def known(self, origin: Origin) -> Iterator[None]:
        """What is traced inside has this origin."""
        self._known = origin
        try:
            yield
        finally:
            self._known = None

    def origin(self) -> Origin:
        """Of what is being traced."""
        if self._known is not None:
            return self._known
        node = torch._C._current_autograd_node()
        if node is None:
            source = user_line()
            self._traced.append(torch.autograd._get_sequence_nr())
            self._traced_sources.append(source)
            return Origin(self._scopes[-1], source)
        number = node._sequence_nr()
        module = bisect.bisect_right(self._entered, number) - 1
        scope = self._entered_scopes[module] if module >= 0 else ""
        # An operation is traced after its autograd node got its number.
        traced = bisect.bisect_right(self._traced, number)
        sources = self._traced_sources
        source = sources[traced] if traced < len(sources) else "unknown"
        return Origin(f"{BACKWARD}/{scope}" if scope else BACKWARD, source)


def user_line() -> str:
    """`file:line` of the innermost code that is neither PyTorch's nor ours."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*FOREIGN, "<")):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown"
