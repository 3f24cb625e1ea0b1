# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`x[i]` where `i` is a tensor of one number, and what is put at the places of a mask.

PyTorch takes such a number for the one that it holds, which no trace knows. Here it is a look-up
of one element along its dimension.
"""

from __future__ import annotations

from typing import Any

import torch

from baechi.importer.torch import masks

aten = torch.ops.aten


def getitem(x, index):
    """PyTorch takes numbers first, then the other indices of what is left."""
    parts = _parts(x, index)
    if parts is None:
        return NotImplemented
    rest, dims, numbers = parts
    x = x.movedim(dims, list(range(len(dims))))
    return aten.index.Tensor(x, numbers).squeeze(0)[rest]


def setitem(x, index, value):
    """Where the other indices are slices and Python's numbers."""
    parts = _parts(x, index)
    if parts is None:
        return masks.setitem(x, index, value)
    rest, dims, numbers = parts
    if any(isinstance(each, torch.Tensor | list | tuple | bool) for each in rest):
        return NotImplemented
    x = x.movedim(dims, list(range(len(dims))))
    view = x[(slice(None),) * len(dims) + rest]
    value = torch.as_tensor(value, dtype=x.dtype).expand(view.shape[len(dims) :])
    aten.index_put_.default(view, numbers, value.unsqueeze(0))
    return None


def _parts(x: torch.Tensor, index: Any) -> tuple[tuple, list[int], list[torch.Tensor]] | None:
    """The indices without tensors of one number, the dimensions that these are of, and they
    themselves, [1] each. None: there are none."""
    given = index if isinstance(index, tuple) else (index,)
    if not any(map(_is_number, given)):
        return None
    taken = sum(map(_dimensions, given))
    rest: list[Any] = []
    dims: list[int] = []
    numbers: list[torch.Tensor] = []
    dim = 0
    for each in given:
        if _is_number(each):
            dims.append(dim)
            numbers.append(each.reshape(1))
        else:
            rest.append(each)
        dim += x.dim() - taken if each is Ellipsis else _dimensions(each)
    return tuple(rest), dims, numbers


def _is_number(index: Any) -> bool:
    if not isinstance(index, torch.Tensor) or index.dim():
        return False
    return not (index.is_floating_point() or index.dtype in (torch.bool, torch.uint8))


def _dimensions(index: Any) -> int:
    """How many dimensions an index is of."""
    if index is None or index is Ellipsis or isinstance(index, bool):
        return 0
    is_mask = isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
    return index.dim() if is_mask else 1


TABLE = {
    torch.Tensor.__getitem__: getitem,
    torch.Tensor.__setitem__: setitem,
    torch.Tensor.index_put: masks.index_put,
    torch.index_put: masks.index_put,
    torch.Tensor.index_put_: masks.index_put_,
    torch.index_put_: masks.index_put_,
}
