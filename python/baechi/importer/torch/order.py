# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, ranks, and the largest and least elements, where NaN is the largest of all."""

from __future__ import annotations

import torch

aten = torch.ops.aten

# Of more elements the comparisons of all pairs would be too many.
_MOST_SORTED = 2048
_MOST_PASSES = 64


def argmax(x, dim=None, keepdim=False):
    return _place_of(x, dim, keepdim, torch.amax)


def argmin(x, dim=None, keepdim=False):
    return _place_of(x, dim, keepdim, torch.amin)


def _place_of(x, dim, keepdim, extreme):
    """The first among equals; the first NaN where there is one."""
    if not x.is_floating_point() or x.numel() == 0 or x.dim() == 0:
        return NotImplemented
    if dim is None:
        found = _place_of(x.reshape(-1), 0, False, extreme)
        return found.reshape([1] * x.dim()) if keepdim else found
    return _extreme_and_place(x, dim, keepdim, extreme)[1]


def max_along(x, dim, keepdim=False):
    return _extreme_and_place(x, dim, keepdim, torch.amax)


def min_along(x, dim, keepdim=False):
    return _extreme_and_place(x, dim, keepdim, torch.amin)


def _extreme_and_place(x, dim, keepdim, extreme):
    if not x.is_floating_point() or x.numel() == 0 or x.dim() == 0:
        return NotImplemented
    dim %= x.dim()
    size = x.shape[dim]
    best = extreme(x, dim, True)  # NaN where there is one
    places = torch.arange(size).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    hit = (x == best) | torch.isnan(x)
    place = torch.where(hit, places, size).amin(dim, True)
    return (best, place) if keepdim else (best.squeeze(dim), place.squeeze(dim))


def topk(x, k, dim=-1, largest=True, sorted=True):
    """Repeated maximum; NaN is the largest of all, the first among equals."""
    size = x.shape[dim] if x.dim() else 1
    if x.dim() == 0 or not x.is_floating_point() or not 0 < k <= min(size, _MOST_PASSES):
        return NotImplemented
    lines = x.transpose(dim, -1)
    places = torch.arange(size)
    free = torch.ones(lines.shape, dtype=torch.bool)
    none = torch.full((), float("-inf" if largest else "inf"), dtype=x.dtype)
    indices = []
    for _ in range(k):
        left = torch.where(free, lines, none)
        best = (left.amax(-1, True) if largest else _least(left, lines, free)).expand(lines.shape)
        hit = free & ((lines == best) | ((lines != lines) & (best != best)))
        place = torch.where(hit, places, size).amin(-1, True)
        free = free & (places != place)
        indices.append(place)
    found = torch.cat(indices, -1)
    return lines.gather(-1, found).transpose(dim, -1), found.transpose(dim, -1)


def _least(left, lines, free):
    """NaN only where nothing else is left."""
    numbers = free & (lines == lines)
    least = torch.where(numbers, left, torch.full((), float("inf"), dtype=lines.dtype))
    some = numbers.any(-1, True)
    return torch.where(some, least.amin(-1, True), torch.full((), float("nan"), dtype=lines.dtype))


def sort(x, dim=-1, descending=False):
    """By each element's rank, from comparisons of all pairs; stable; NaNs are largest."""
    size = x.shape[dim] if x.dim() else 1
    if x.dim() == 0 or size > _MOST_SORTED:
        return NotImplemented
    lines = x.transpose(dim, -1)
    mine, other = lines.unsqueeze(-1), lines.unsqueeze(-2)
    before, after = (mine, other) if descending else (other, mine)
    less, equal = before < after, mine == other
    if x.is_floating_point():
        less = less | ((before == before) & (after != after))
        equal = equal | ((mine != mine) & (other != other))
    places = torch.arange(size)
    earlier = places < places.unsqueeze(-1)
    rank = (less | (equal & earlier)).to(torch.int64).sum(-1)
    at = rank.unsqueeze(-2) == places.unsqueeze(-1)
    indices = torch.where(at, places, torch.zeros_like(places)).sum(-1)
    return lines.gather(-1, indices).transpose(dim, -1), indices.transpose(dim, -1)


def sort_stable(x, *, stable=None, dim=-1, descending=False):
    return sort(x, dim, descending)


def cummax(x, dim):
    return _running_end(torch.ge, x, dim)


def cummin(x, dim):
    return _running_end(torch.le, x, dim)


def _running_end(beats, x, dim):
    """The last of equal ones; NaN beats all."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    dim %= x.dim()
    size = x.shape[dim]
    places = torch.arange(size).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    index, shift = places.expand(x.shape), 1
    while shift < size:
        around = [0] * (2 * (x.dim() - 1 - dim)) + [shift, 0]
        before, its = (
            aten.constant_pad_nd(y.narrow(dim, 0, size - shift), around) for y in (x, index)
        )
        stays = beats(x, before) | (x != x) | (places < shift)
        x, index = torch.where(stays, x, before), torch.where(stays, index, its)
        shift *= 2
    return x, index


def kthvalue(x, k, dim=-1, keepdim=False):
    return _ranked(x, dim, keepdim, lambda lines: torch.full((), k - 1))


def median(x, dim=-1, keepdim=False):
    """The lower one; NaN where there is one."""

    def middle(lines):
        size = lines.shape[-1]
        some = (lines != lines).any(-1, True)
        return torch.where(some, (lines == lines).sum(-1, True), (size - 1) // 2)

    return _ranked(x, dim, keepdim, middle)


def nanmedian(x, dim=-1, keepdim=False):
    return _ranked(
        x, dim, keepdim, lambda lines: ((lines == lines).sum(-1, True) - 1).clamp(min=0) // 2
    )


def median_of_all(x):
    found = median(x.reshape(-1), 0)
    return found if found is NotImplemented else found[0]


def nanmedian_of_all(x):
    found = nanmedian(x.reshape(-1), 0)
    return found if found is NotImplemented else found[0]


def _ranked(x, dim, keepdim, rank):
    """The element of a rank in every line, and where it is."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    lines = x.transpose(dim, -1)
    ordered = sort(lines)
    if ordered is NotImplemented:
        return NotImplemented
    at = rank(lines).expand([*lines.shape[:-1], 1])
    found = (part.gather(-1, at).transpose(dim, -1) for part in ordered)
    return tuple(part if keepdim else part.squeeze(dim) for part in found)


def searchsorted(ordered, values, *, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None:
        return NotImplemented
    right = right if side is None else side == "right"
    edges, found = ordered.unsqueeze(-2), values.unsqueeze(-1)
    beyond = edges > found if right else edges >= found
    return beyond.logical_not().sum(-1).to(torch.int32 if out_int32 else torch.int64)


def repeat_interleave(repeats, *, output_size=None):
    """Where how many there are is told; `indices.Repeats` looks whether that is so."""
    if output_size is None:
        return NotImplemented
    ends = repeats.to(torch.int64).cumsum(0)
    found = searchsorted(ends, torch.arange(output_size), right=True)
    return found.clamp(max=len(repeats) - 1).to(repeats.dtype)


TABLE = {
    aten.argmax.default: argmax,
    aten.argmin.default: argmin,
    aten.cummax.default: cummax,
    aten.cummin.default: cummin,
    aten.kthvalue.default: kthvalue,
    aten.max.dim: max_along,
    aten.median.default: median_of_all,
    aten.median.dim: median,
    aten.min.dim: min_along,
    aten.nanmedian.default: nanmedian_of_all,
    aten.nanmedian.dim: nanmedian,
    aten.repeat_interleave.Tensor: repeat_interleave,
    aten.searchsorted.Tensor: searchsorted,
    aten.sort.default: sort,
    aten.sort.stable: sort_stable,
    aten.topk.default: topk,
}
