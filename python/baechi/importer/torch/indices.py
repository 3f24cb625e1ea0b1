# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that must be in range, as PyTorch checks them when it looks up.

Those that a program is given as they are are checked before it runs; of those that it
computes it says itself whether one was out of range.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from baechi.importer.torch.names import origin_of

aten = torch.ops.aten
# These keep all elements and their values.
_SHAPING = {
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.expand.default,
    aten.permute.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.t.default,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten._unsafe_view.default,
}
_WHOLE_NUMBERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclasses.dataclass(frozen=True)
class Lookup:
    """Who looks up, and which indices are in range: from `first` to `last`, and `ignored`."""

    owner: str
    kind: str  # "rows", "classes", "elements"
    first: int
    last: int
    ignored: int | None = None

    def outside(self, indices: torch.Tensor) -> torch.Tensor:
        """Whether each index is out of range."""
        wrong = (indices < self.first) | (indices > self.last)
        return wrong if self.ignored is None else wrong & (indices != self.ignored)

    def __str__(self) -> str:
        ignored = "" if self.ignored is None else f" (and ignores {self.ignored})"
        return f"'{self.owner}' has {self.kind} {self.first} to {self.last}{ignored}"


@dataclasses.dataclass(frozen=True)
class Repeats(Lookup):
    """Who repeats, as often as numbers say that add up to `last`."""

    def outside(self, indices: torch.Tensor) -> torch.Tensor:
        return (indices < 0) | (indices.sum() != self.last)

    def __str__(self) -> str:
        return f"'{self.owner}' takes numbers from 0 on that add up to {self.last}"


class Checks:
    """The look-ups of a graph whose operations are those that PyTorch was asked for.

    given: by placeholder, what is looked up by it.
    computed: by node, what is looked up by other tensors: index and look-up.
    Raises IndexError for indices that depend on nothing.
    """

    def __init__(self, graph: torch.fx.Graph):
        self.given: dict[torch.fx.Node, list[Lookup]] = {}
        self.computed: dict[torch.fx.Node, list[tuple[torch.fx.Node, Lookup]]] = {}
        seen = set()
        for node in graph.nodes:
            for index, lookup in _lookups(node):
                source = _source(index)
                bounds = lookup.first, lookup.last, lookup.ignored
                if (source, bounds) in seen:
                    continue
                seen.add((source, bounds))
                if source.op == "placeholder":
                    self.given.setdefault(source, []).append(lookup)
                elif _places_within(source) > lookup.last + 1 and not _is_right(source, lookup):
                    self.computed.setdefault(node, []).append((index, lookup))

    @property
    def flags(self) -> list[Lookup]:
        """What is looked up by computed indices, in the order of the graph."""
        return [lookup for found in self.computed.values() for _, lookup in found]


def _lookups(node: torch.fx.Node) -> Iterator[tuple[torch.fx.Node, Lookup]]:
    """The indices of an operation, and what of."""
    if node.op != "call_function" or node.target not in _LOOK_UPS:
        return
    origin = origin_of(node)
    owner = origin.scope or f"{node.target.overloadpacket.__name__} ({origin.source})"
    for index, size, kind, signed, ignored in _LOOK_UPS[node.target](node):
        if kind == "repeats":
            yield index, Repeats(owner, kind, 0, size)
        else:
            yield index, Lookup(owner, kind, -size if signed else 0, size - 1, ignored)


def _source(node: torch.fx.Node) -> torch.fx.Node:
    """Where indices come from, their shape aside."""
    while node.op == "call_function":
        wider = node.target is aten._to_copy.default and _is_whole(node.args[0])
        if node.target not in _SHAPING and not wider:
            break
        node = node.args[0]
    return node


def _is_whole(node: torch.fx.Node) -> bool:
    return node.meta["val"].dtype in _WHOLE_NUMBERS


def _places_within(node: torch.fx.Node) -> float:
    """Indices that say where an element was found are smaller than this."""
    if node.target is operator.getitem and node.args[1] == 1:
        node = node.args[0]
    if node.target is aten.repeat_interleave.Tensor:
        return _shape(node)[0]
    if node.op != "call_function" or node.target not in _FINDERS:
        return math.inf
    shape, position = _shape(node), _FINDERS[node.target]
    dim = node.args[position] if len(node.args) > position else None
    if dim is None:
        dim = -1 if position == 2 or node.target is aten.sort.default else None
    return math.prod(shape) if dim is None or not shape else shape[dim]


def _is_right(node: torch.fx.Node, lookup: Lookup) -> bool:
    """Whether indices depend on nothing; raises IndexError for wrong ones."""
    try:
        indices = _value(node)
    except _DependsError:
        return False
    if (wrong := lookup.outside(indices)).any():
        found = indices[wrong].flatten()[0].item()
        raise IndexError(f"the index {found} is out of range: {lookup}")
    return True


class _DependsError(Exception):
    """Something has no value before the program runs."""


def _value(node: torch.fx.Node) -> Any:
    if node.op != "call_function" or node.target not in _CONSTANT:
        raise _DependsError
    with _disable_current_modes():
        return node.target(*torch.fx.map_arg(node.args, _value), **node.kwargs)


def _shape(node: torch.fx.Node, position: int = 0) -> torch.Size:
    return node.args[position].meta["val"].shape


def _embedding(node):
    yield node.args[1], _shape(node)[0], "rows", False, None


def _classes(ignored: int | None):
    def found(node):
        shape = _shape(node)
        code = None if ignored is None else node.args[ignored]
        yield node.args[1], shape[1 if len(shape) > 1 else 0], "classes", False, code

    return found


def _along(signed: bool):
    def found(node):
        shape = _shape(node)
        yield node.args[2], shape[node.args[1]] if shape else 1, "elements", signed, None

    return found


def _by_place(node):
    dim = 0
    for index in node.args[1]:
        if index is None:
            dim += 1
        elif _is_whole(index) and index.meta["val"].dtype != torch.uint8:
            yield index, _shape(node)[dim], "elements", True, None
            dim += 1
        else:
            dim += index.meta["val"].dim()


def _repeated(node):
    size = node.kwargs.get("output_size")
    if size is not None:
        yield node.args[0], size, "repeats", False, None


def _flat(node):
    yield node.args[1], math.prod(_shape(node)), "elements", True, None


_ALONG = (
    aten.gather.default,
    aten.index_select.default,
    aten.index_add.default,
    aten.index_add_.default,
    aten.index_copy.default,
    aten.index_copy_.default,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_.src,
    aten.scatter_.value,
    aten.scatter_add.default,
    aten.scatter_add_.default,
    aten.scatter_reduce.two,
    aten.scatter_reduce_.two,
)
# Of these alone negative indices count from the end.
_FILLING = (
    aten.index_fill.int_Scalar,
    aten.index_fill_.int_Scalar,
    aten.index_fill.int_Tensor,
    aten.index_fill_.int_Tensor,
)
_LOOK_UPS = {
    aten.embedding.default: _embedding,
    aten.nll_loss_forward.default: _classes(4),
    aten.nll_loss2d_forward.default: _classes(4),
    aten.multi_margin_loss.default: _classes(None),
    **dict.fromkeys(_ALONG, _along(signed=False)),
    **dict.fromkeys(_FILLING, _along(signed=True)),
    aten.index.Tensor: _by_place,
    aten.index_put.default: _by_place,
    aten.index_put_.default: _by_place,
    aten.repeat_interleave.Tensor: _repeated,
    aten.take.default: _flat,
}
# Where their dimension is among the arguments.
_FINDERS = {
    aten.argmax.default: 1,
    aten.argmin.default: 1,
    aten.max.dim: 1,
    aten.min.dim: 1,
    aten.sort.default: 1,
    aten.topk.default: 2,
}
# What positions are made of.
_CONSTANT = {
    aten.add.Tensor,
    aten.arange.default,
    aten.arange.start,
    aten.arange.start_step,
    aten.mul.Tensor,
    aten.sub.Tensor,
    *_SHAPING,
}
