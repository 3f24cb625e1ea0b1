# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tracing cannot follow, collected, so that one error names all of it.

An operation whose result's shape depends on values ends a trace, and with it the
search for further ones. Here it is noted and something of a possible shape stands
in for its result; what is traced so is reported, never compiled.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from baechi.importer.common.errors import ImportFailure, Unsupported, UnsupportedOperations
from baechi.importer.torch.names import FOREIGN, Origin, Recorder, name_in

aten = torch.ops.aten
DATA_DEPENDENT = (
    fake_tensor.DataDependentOutputException,
    fake_tensor.DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)
_ON_VALUES = "shapes or control flow depend on values"
FIXED_SHAPES = (
    "a step must have fixed shapes (torch.where instead of if, masks instead of selections)"
)
_PADDED = (
    "How a packed sequence lies in memory depends on its lengths: give the network the padded "
    "batch, take the last outputs by y[torch.arange(len(y)), lengths - 1], and leave the rest "
    "out of the loss by a mask."
)
_CHECKED = (
    "torch.distributions looks at its parameters' values to check them: give validate_args=False, "
    "or call torch.distributions.Distribution.set_default_validate_args(False) before the step."
)
_AVERAGED = (
    "BatchNorm(momentum=None) divides by how many batches there were, as a number of Python: give "
    "momentum a number."
)
# By the functions of PyTorch that look at values, and the start of their modules' names.
_ADVICE = {
    ("torch.distributions.", "__init__"): _CHECKED,
    ("torch.distributions.", "_validate_sample"): _CHECKED,
    ("torch.nn.modules.batchnorm", "forward"): _AVERAGED,
}
# A loop that waits for a value would never end.
_MOST_STAND_INS = 1000


class Refusals(TorchDispatchMode):
    """Notes operations that depend on values, and goes on."""

    def __init__(self, recorder: Recorder):
        super().__init__()
        self._recorder, self._count = recorder, 0
        self._advice: dict[str, None] = {}
        self.found: list[Unsupported] = []
        self.results: list[torch.Tensor] = []  # of all operations

    def error(self, further: Sequence[Unsupported], unseen: str) -> UnsupportedOperations:
        """All that was noted, and what has no lowering besides."""
        on_values = any(each.reason == _ON_VALUES for each in self.found)
        notes = [f"What depends on values: {FIXED_SHAPES}."] if on_values else []
        if any("_pack_padded_sequence" in each.operation for each in self.found):
            notes += [_PADDED]
        notes += self._advice
        notes += [unseen] if unseen else []
        return UnsupportedOperations([*self.found, *further], "docs/torch.md", notes)

    def note(self, operation: Any, origin: Origin, reason: str = "") -> None:
        place = name_in(origin.scope, operation)
        self.found.append(Unsupported(str(operation), place, origin.source, reason))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        try:
            result = function(*args, **(kwargs or {}))
        except DATA_DEPENDENT:
            self.note(function, self._recorder.origin(), _ON_VALUES)
            self._advice |= dict.fromkeys(_advice())
            self._count += 1
            stand_in = _STAND_INS.get(function)
            if stand_in is None or self._count > _MOST_STAND_INS:
                raise
            return stand_in(*args, **(kwargs or {}))
        self.results += [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
        return result


def _advice() -> Iterator[str]:
    """What to do about PyTorch's own code that looks at values, further up."""
    frame = sys._getframe()
    while frame is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        for (start, function), advice in _ADVICE.items():
            if name == function and module.startswith(start):
                yield advice
        frame = frame.f_back


def _number(x):
    """No: what is done where a condition holds has mostly an end without it."""
    return {torch.bool: False}.get(x.dtype, 1.0 if x.is_floating_point() else 1)


def _integers(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def _index(x, indices):
    places = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            places += [_integers(index.numel())] * index.dim()
        else:
            places.append(index)
    return aten.index.Tensor(x, places)


def _unique(x, *_, **__):
    return x.reshape(-1), _integers(*x.shape), _integers(x.numel())


def _unique_of_dim(x, dim, *_, **__):
    return x.clone(), _integers(x.shape[dim]), _integers(x.shape[dim])


# As if all elements were taken.
_STAND_INS: dict[Any, Callable] = {
    aten._local_scalar_dense.default: _number,
    aten.nonzero.default: lambda x: _integers(x.numel(), x.dim()),
    aten.index.Tensor: _index,
    aten.masked_select.default: lambda x, mask: x.new_zeros(
        math.prod(torch.broadcast_shapes(x.shape, mask.shape))
    ),
    aten._unique2.default: _unique,
    aten.unique_consecutive.default: _unique,
    aten.unique_dim.default: _unique_of_dim,
    aten.bincount.default: lambda x, weights=None, minlength=0: _integers(max(minlength, 1)),
    aten.repeat_interleave.Tensor: lambda repeats, **_: _integers(*repeats.shape),
    aten._ctc_loss.Tensor: lambda x, targets, *_: (x.new_zeros(x.shape[1]), x.new_zeros(x.shape)),
    aten.linalg_lstsq.default: lambda a, b, *_, **__: (
        b.new_zeros(*b.shape[: a.dim() - 2], a.shape[-1], *b.shape[a.dim() - 1 :]),
        b.new_zeros(0),
        _integers(*a.shape[:-2]),
        a.new_zeros(0),
    ),
}


@contextlib.contextmanager
def explained_errors() -> Iterator[None]:
    """ImportFailure for what tracing cannot follow, with the user's line."""
    try:
        yield
    except DATA_DEPENDENT as error:
        raise depends_on_values(error, line_of(error)) from error


def depends_on_values(error: Exception, place: str) -> ImportFailure:
    """What is said of one of `DATA_DEPENDENT`."""
    operation = getattr(error, "func", error)
    return ImportFailure(f"{place}: {operation}: {_ON_VALUES} here; {FIXED_SHAPES}")


def line_of(error: BaseException, otherwise: str = "in the backward pass") -> str:
    """The innermost line outside of PyTorch and of this package; autograd has none."""
    found, trace = otherwise, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((*FOREIGN, "<")):
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
