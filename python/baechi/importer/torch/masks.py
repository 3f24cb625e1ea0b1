# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is put at the places of a mask, as an elementwise choice.

PyTorch's own gradient of it selects by the mask, which has no fixed size. Values for each place
that is chosen are as many as their tensor has, and it is asserted that the mask has as many.
"""

from __future__ import annotations

from types import EllipsisType, NoneType
from typing import Any

import torch

_SHAPING = (int, slice, NoneType, EllipsisType)


def setitem(x: torch.Tensor, index: Any, value: Any) -> Any:
    """Where all indices but one mask are numbers, slices and new dimensions."""
    index = index if isinstance(index, tuple) else (index,)
    found = [i for i, each in enumerate(index) if _is_mask(each)]
    rest = [each for i, each in enumerate(index) if i not in found]
    if len(found) != 1 or not all(type(each) in _SHAPING for each in rest):
        return NotImplemented
    if not any(each is Ellipsis for each in rest):
        index = (*index, Ellipsis)
    (place,) = found
    mask = index[place]
    view = x[*index[:place], *[slice(None)] * mask.dim(), *index[place + 1 :]]
    before = _dimensions(x, index[:place], index)
    if not isinstance(value, torch.Tensor):
        value = torch.as_tensor(value, dtype=x.dtype)
    # Its leading ones are left out.
    while value.dim() > view.dim() - mask.dim() + 1 and value.shape[0] == 1:
        value = value.squeeze(0)
    result = _put(view, mask, before, value)
    if result is NotImplemented:
        return result
    view.copy_(result)
    return None


def index_put(x, indices, values, accumulate=False):
    before = sum(index is None for index in indices)
    given = [index for index in indices if index is not None]
    leading = before < len(indices) and indices[before] is not None
    if len(given) != 1 or not _is_mask(given[0]) or not leading:
        return NotImplemented
    return _put(x, given[0], before, values, accumulate)


def index_put_(x, indices, values, accumulate=False):
    result = index_put(x, indices, values, accumulate)
    return result if result is NotImplemented else x.copy_(result)


def _put(x, mask, before, value, accumulate=False):
    """`mask` is of the dimensions of `x` from `before` on."""
    after = x.dim() - before - mask.dim()
    if mask.shape != x.shape[before : before + mask.dim()] or value.dtype != x.dtype:
        return NotImplemented
    mask = mask.to(torch.bool)
    along = value.dim() - after - 1  # the dimension of the chosen places
    count = value.shape[along] if along >= 0 else 1  # 1: one for all
    shape = list(value.shape)
    if along >= 0:
        shape[along : along + 1] = [1] * mask.dim() if count == 1 else mask.shape
    if torch.broadcast_shapes(shape, x.shape) != x.shape:
        return NotImplemented
    if count != 1:
        torch._assert_async(mask.sum() == count, _message(count))
        if not count:
            return x.clone()
        ranks = (torch.cumsum(mask.reshape(-1), 0) - 1).clamp(0, count - 1)
        value = value.index_select(along, ranks)
    value = value.reshape(shape)
    mask = mask.reshape([*mask.shape, *[1] * after])
    return torch.where(mask, x + value if accumulate else value, x)


def _message(count: int) -> str:
    return (
        f"a mask chooses other than as many places as there are values for them ({count}): give "
        "one for each, or one for all; in a step torch.where"
    )


def _dimensions(x, before, index):
    """How many dimensions of the view come of the indices before the mask."""
    taken = sum(type(each) in (int, slice) for each in index)
    taken += sum(each.dim() for each in index if _is_mask(each))
    count = sum(type(each) in (slice, NoneType) for each in before)
    return count + (x.dim() - taken if any(each is Ellipsis for each in before) else 0)


def _is_mask(index: Any) -> bool:
    is_mask = isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
    return is_mask and index.dim() > 0
