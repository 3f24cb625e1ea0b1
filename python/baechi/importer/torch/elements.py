# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions for operators that put elements at places, or take them from there.

Each is plain PyTorch, by ATen's own definition of the operator.
"""

from __future__ import annotations

import math

import torch

from baechi.importer.torch.layout import dense_order, inverse

aten = torch.ops.aten


def index_put(x, indices, values, accumulate=False):
    """At the places of one mask one number: an elementwise choice. Dimensions without
    indices follow those that have some."""
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype == torch.bool:
        return _put_at_mask(x, indices[0], values, accumulate)
    own = [d for d, index in enumerate(indices) if index is not None]
    given = [indices[d] for d in own]
    if own == list(range(len(own))) or any(index.dtype == torch.bool for index in given):
        return NotImplemented
    rest = [d for d in range(x.dim()) if d not in own]
    shape = torch.broadcast_shapes(*(index.shape for index in given))
    # Between the dimensions before and after, where the indexed ones are neighbours.
    neighbours = own == list(range(own[0], own[-1] + 1))
    before = [d for d in rest if d < own[0]] if neighbours else []
    after = [d for d in rest if d not in before]
    sizes = [*(x.shape[d] for d in before), *shape, *(x.shape[d] for d in after)]
    values = values.expand(sizes)
    if before:
        moved = list(range(len(before), len(before) + len(shape)))
        values = values.movedim(moved, list(range(len(shape))))
    order = [*own, *rest]
    found = x.permute(order).index_put(given, values, accumulate)
    return found.permute(inverse(order))


def _put_at_mask(x, mask, values, accumulate):
    if values.numel() != 1:
        return NotImplemented
    mask = mask.reshape([*mask.shape, *[1] * (x.dim() - mask.dim())])
    values = values.reshape([])
    return torch.where(mask, x + values if accumulate else values, x)


def put(x, index, source, accumulate=False):
    index = torch.where(index < 0, index + x.numel(), index)
    return _put(x, index.reshape(-1), source.reshape(-1), accumulate)


def masked_scatter(x, mask, source):
    mask = mask.expand(x.shape)
    found = source.reshape(-1).index_select(0, _ranks(mask)).reshape(x.shape)
    return torch.where(mask, found, x)


def masked_scatter_backward(grad, mask, sizes):
    mask = mask.expand(grad.shape)
    found = torch.where(mask, grad, torch.zeros((), dtype=grad.dtype)).reshape(-1)
    flat = grad.new_zeros(math.prod(sizes))
    return flat.index_put((_ranks(mask),), found, accumulate=True).reshape(sizes)


def _ranks(mask):
    """How many are chosen before each one."""
    return (torch.cumsum(mask.reshape(-1), 0) - 1).clamp(min=0)


def roll(x, shifts, dims=()):
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        if size and (first := -shift % size):
            x = torch.cat([x.narrow(dim, first, size - first), x.narrow(dim, 0, first)], dim)
    return x


def diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    dim1, dim2 = dim1 % x.dim(), dim2 % x.dim()
    positions = torch.arange(x.numel()).reshape(x.shape).diagonal(offset, dim1, dim2)
    return _put(x, positions, source)


def as_strided(x, size, stride, storage_offset=None):
    """Where it is of all elements: those of x as they lie in memory, with other dimensions."""
    order = dense_order(size, stride)
    flat = _as_in_memory(x)
    if storage_offset or order is None or flat is None or flat.numel() != math.prod(size):
        return _strided_elements(x, size, stride, storage_offset or 0)
    return flat.reshape([size[d] for d in order]).permute(inverse(order))


def as_strided_scatter(x, src, size, stride, storage_offset=None):
    """The reverse."""
    order, own = dense_order(size, stride), dense_order(x.shape, x.stride())
    if storage_offset or order is None or own is None or x.numel() != math.prod(size):
        if not x.is_contiguous():
            return NotImplemented
        return _put(x, _strided(size, stride, storage_offset or 0), src)
    flat = src.permute(order).reshape(-1)
    return flat.reshape([x.shape[d] for d in own]).permute(inverse(own))


def _as_in_memory(x):
    order = dense_order(x.shape, x.stride())
    return None if order is None else x.permute(order).reshape(-1)


def _strided_elements(x, size, stride, first):
    if not x.is_contiguous():
        return NotImplemented
    positions = _strided(size, stride, first)
    return x.reshape(-1).index_select(0, positions.reshape(-1)).reshape(size)


def _strided(size, stride, first):
    positions = torch.full((), first, dtype=torch.int64)
    for count, step in zip(size, stride, strict=True):
        positions = positions.unsqueeze(-1) + torch.arange(count) * step
    return positions


def _put(x, positions, values, accumulate=False):
    """The elements at positions of the flat tensor replaced."""
    values = values.expand(positions.shape).reshape(-1)
    flat = x.reshape(-1).index_put((positions.reshape(-1),), values, accumulate)
    return flat.reshape(x.shape)


def scatter_src(x, dim, index, src):
    """Of one element in every line, as in the gradient of max(dim), by comparing; any
    other at the elements' positions."""
    dim = dim % x.dim()
    line = [1 if d == dim else n for d, n in enumerate(x.shape)]
    if list(index.shape) == line and list(src.shape) == line:
        places = torch.arange(x.shape[dim])
        places = places.reshape([-1 if d == dim else 1 for d in range(x.dim())])
        return torch.where(places == index, src, x)
    return _put(x, _picked(x, dim, index), _first(src, index.shape))


def scatter_value(x, dim, index, value):
    values = torch.full(index.shape, value, dtype=x.dtype)
    return _put(x, _picked(x, dim % x.dim(), index), values)


def scatter_add(x, dim, index, src):
    return _put(x, _picked(x, dim % x.dim(), index), _first(src, index.shape), True)


def _picked(x, dim, index):
    """The positions of x's elements that gather(dim, index) takes."""
    step, positions = 1, torch.zeros((), dtype=torch.int64)
    for d in reversed(range(x.dim())):
        along = torch.arange(index.shape[d]).reshape([-1] + [1] * (x.dim() - d - 1))
        positions = positions + (index if d == dim else along) * step
        step *= x.shape[d]
    return positions.expand(index.shape)


def _first(x, shape):
    for dim, size in enumerate(shape):
        x = x.narrow(dim, 0, size)
    return x


TABLE = {
    aten.masked_scatter.default: masked_scatter,
    aten.masked_scatter_backward.default: masked_scatter_backward,
    aten.put.default: put,
    aten.index_put.default: index_put,
    aten.roll.default: roll,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.as_strided.default: as_strided,
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.scatter.src: scatter_src,
    aten.scatter.value: scatter_value,
    aten.scatter_add.default: scatter_add,
}
