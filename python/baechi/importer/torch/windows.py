# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of pooling and padding in any number of dimensions.

Those of averages are sums of the windows that an element is in, one dimension after another;
those of maxima add up elements at their positions. And maxima of windows that are not all of
one size.
"""

from __future__ import annotations

import math

import torch

aten = torch.ops.aten


def avg_pool_backward(
    grad, x, kernel, stride, padding, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):  # fmt: skip
    """Every window's gradient, divided by what it counts, for all elements in it."""
    dims = len(kernel)
    divisor = torch.full((), float(divisor_override or 1), dtype=grad.dtype)
    ranges = []
    for d in range(dims):
        size, windows = x.shape[d - dims], grad.shape[d - dims]
        first = torch.arange(windows) * stride[d] - padding[d]
        # The last window of `ceil_mode` may reach beyond the padding, which is not counted.
        last = torch.minimum(first + kernel[d], torch.full((), size + padding[d]))
        inside = first.clamp(min=0), last.clamp(max=size)
        ranges.append((*inside, -(kernel[d] // -stride[d])))
        if divisor_override is None:
            count = last - first if count_include_pad else inside[1] - inside[0]
            divisor = divisor * count.to(grad.dtype).reshape([-1] + [1] * (dims - 1 - d))
    return _spread(grad / divisor, x.shape[-dims:], ranges)


def avg_pool3d_backward(
    grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    kernel, padding = _three(kernel), _three(padding)
    stride = _three(stride) if stride else kernel
    return avg_pool_backward(
        grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_avg_pool2d_backward(grad, x):
    return _adaptive_avg_pool_backward(grad, x, 2)


def adaptive_avg_pool3d_backward(grad, x):
    return _adaptive_avg_pool_backward(grad, x, 3)


def _adaptive_avg_pool_backward(grad, x, dims):
    sizes, ranges = x.shape[-dims:], []
    for d, size in enumerate(sizes):
        windows = grad.shape[d - dims]
        window = torch.arange(windows)
        first, last = window * size // windows, ((window + 1) * size + windows - 1) // windows
        count = (last - first).to(grad.dtype).reshape([-1] + [1] * (dims - 1 - d))
        grad = grad / count
        ranges.append((first, last, max(_windows_at(size, windows))))
    return _spread(grad, sizes, ranges)


def _windows_at(size, windows) -> list[int]:
    """How many windows have each element."""
    found = [0] * size
    for w in range(windows):
        for place in range(w * size // windows, -((w + 1) * size // -windows)):
            found[place] += 1
    return found


def _spread(grad, sizes, ranges):
    """What each element has of the windows in the last dimensions. A dimension's range is its
    windows' first elements, where they end, and of how many windows an element is at most.
    They are chosen, not multiplied by zero and one: of an infinite gradient that were NaN."""
    lead = grad.dim() - len(sizes)
    for d, (size, (first, last, most)) in enumerate(zip(sizes, ranges, strict=True)):
        dim = lead + d
        place = torch.arange(size).unsqueeze(-1)
        window = (last <= place).sum(-1, keepdim=True) + torch.arange(most)
        held = window.clamp(max=len(first) - 1)
        taken = (window == held) & (first[held] <= place) & (place < last[held])
        grad = grad.index_select(dim, held.reshape(-1)).unflatten(dim, held.shape)
        taken = taken.reshape([size, most] + [1] * (len(sizes) - 1 - d))
        grad = torch.where(taken, grad, torch.zeros((), dtype=grad.dtype)).sum(dim + 1)
    return grad


def _three(value) -> list[int]:
    value = [value] if isinstance(value, int) else list(value)
    return value * 3 if len(value) == 1 else value


def _to_positions(grad, x, indices, dims):
    """`indices` are positions within the last `dims` dimensions of x."""
    lead, size = x.shape[:-dims], math.prod(x.shape[-dims:])
    lines = math.prod(lead)
    places = indices.reshape(lines, -1) + torch.arange(lines).unsqueeze(-1) * size
    flat = grad.new_zeros(lines * size)
    flat = flat.index_put((places.reshape(-1),), grad.reshape(-1), accumulate=True)
    return flat.reshape(x.shape)


def adaptive_max_pool2d(x, output):
    return _adaptive_max_pool(x, output, 2)


def adaptive_max_pool3d(x, output):
    return _adaptive_max_pool(x, output, 3)


def _adaptive_max_pool(x, output, dims):
    """Windows that differ in size become equally large ones: the shorter ones have their last
    element twice, which changes neither the largest nor the first place of it."""
    sizes = list(x.shape[-dims:])
    if all(size % windows == 0 for size, windows in zip(sizes, output, strict=True)):
        return NotImplemented
    lead = x.dim() - dims
    places = torch.zeros((), dtype=torch.int64)
    for d, (size, windows) in enumerate(zip(sizes, output, strict=True)):
        table = _within(size, windows)
        x = x.index_select(lead + 2 * d, table.reshape(-1)).unflatten(lead + 2 * d, table.shape)
        shape = [1] * (2 * dims)
        shape[2 * d : 2 * d + 2] = table.shape
        places = places * size + table.reshape(shape)
    order = [*range(0, 2 * dims, 2), *range(1, 2 * dims, 2)]
    windows = x.permute([*range(lead), *(lead + d for d in order)]).flatten(lead + dims)
    places = places.permute(order).flatten(dims)
    largest, at = windows.max(-1)
    places = places.expand(windows.shape)
    return largest, places.gather(-1, at.unsqueeze(-1)).squeeze(-1)


def _within(size, windows):
    """[windows, the longest of them]: the positions that each window has, the last one again
    where it is shorter."""
    window = torch.arange(windows).reshape(-1, 1)
    first, last = window * size // windows, ((window + 1) * size + windows - 1) // windows
    longest = max(-((w + 1) * size // -windows) - w * size // windows for w in range(windows))
    return torch.minimum(first + torch.arange(longest), last - 1)


def adaptive_max_pool2d_backward(grad, x, indices):
    return _to_positions(grad, x, indices, 2)


def adaptive_max_pool3d_backward(grad, x, indices):
    return _to_positions(grad, x, indices, 3)


def fractional_max_pool2d_backward(grad, x, kernel, output, indices):
    return _to_positions(grad, x, indices, 2)


def fractional_max_pool3d_backward(grad, x, kernel, output, indices):
    return _to_positions(grad, x, indices, 3)


def max_pool3d_with_indices_backward(
    grad, x, kernel, stride, padding, dilation, ceil_mode, indices
):
    return _to_positions(grad, x, indices, 3)


def replication_pad_backward(grad, x, padding):
    """What lies outside was read from the elements at the edges."""
    if any(width < 0 for width in padding):
        return NotImplemented
    for k in range(len(padding) // 2):
        dim = grad.dim() - 1 - k
        low, size = padding[2 * k], x.shape[dim]
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
            continue
        first = grad.narrow(dim, 0, low + 1).sum(dim, keepdim=True)
        rest = low + size - 1
        last = grad.narrow(dim, rest, grad.shape[dim] - rest).sum(dim, keepdim=True)
        grad = torch.cat([first, grad.narrow(dim, low + 1, size - 2), last], dim)
    return grad


TABLE = {
    aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool2d_backward,
    aten._adaptive_avg_pool3d_backward.default: adaptive_avg_pool3d_backward,
    aten.adaptive_max_pool2d.default: adaptive_max_pool2d,
    aten.adaptive_max_pool3d.default: adaptive_max_pool3d,
    aten.adaptive_max_pool2d_backward.default: adaptive_max_pool2d_backward,
    aten.adaptive_max_pool3d_backward.default: adaptive_max_pool3d_backward,
    aten.avg_pool3d_backward.default: avg_pool3d_backward,
    aten.fractional_max_pool2d_backward.default: fractional_max_pool2d_backward,
    aten.fractional_max_pool3d_backward.default: fractional_max_pool3d_backward,
    aten.max_pool3d_with_indices_backward.default: max_pool3d_with_indices_backward,
    aten.replication_pad1d_backward.default: replication_pad_backward,
    aten.replication_pad2d_backward.default: replication_pad_backward,
    aten.replication_pad3d_backward.default: replication_pad_backward,
}
