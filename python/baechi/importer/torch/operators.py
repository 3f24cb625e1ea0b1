# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions for operators that torch-mlir lacks, in whole or in some forms.

Each is plain PyTorch, by ATen's own definition of the operator.
"""

from __future__ import annotations

import math

import torch
from torch._decomp.decompositions import _to_copy

aten = torch.ops.aten


def signbit(x):
    """Of zeros their reciprocals'."""
    if not x.is_floating_point():
        return x < 0
    return torch.where(x == 0, 1 / x, x) < 0


def copysign(x, sign):
    kind = torch.result_type(x, sign)
    size = x.abs().to(kind if kind.is_floating_point else torch.get_default_dtype())
    return torch.where(signbit(sign), -size, size)


def minimum(x, y):
    """NaN where either is."""
    if not torch.result_type(x, y).is_floating_point:
        return NotImplemented
    return torch.where((x < y) | torch.isnan(x), x, y)


def maximum(x, y):
    """NaN where either is."""
    if not torch.result_type(x, y).is_floating_point:
        return NotImplemented
    return torch.where((x > y) | torch.isnan(x), x, y)


def clamp(x, low=None, high=None):
    """NaN where it or a limit is."""
    kind = x.dtype
    for limit in (low, high):
        kind = kind if limit is None else torch.result_type(torch.empty(0, dtype=kind), limit)
    if not kind.is_floating_point:
        return NotImplemented
    x = x.to(kind)
    if low is not None:
        x = torch.where(_or_nan(x < low, low), low, x)
    if high is not None:
        x = torch.where(_or_nan(x > high, high), high, x)
    return x.to(kind)


def clamp_max(x, high):
    return clamp(x, None, high)


def hardtanh(x, low=-1, high=1):
    return clamp(x, low, high) if x.is_floating_point() else NotImplemented


def power(x, exponent):
    """Roots are roots: of no negative infinity. Powers of integers are products."""
    if x.is_floating_point():
        return {0.5: torch.sqrt, -0.5: torch.rsqrt}.get(exponent, lambda _: NotImplemented)(x)
    if isinstance(exponent, float):
        return x.to(torch.get_default_dtype()) ** exponent
    if exponent < 0:
        return NotImplemented
    found = torch.ones_like(x)
    for digit in f"{exponent:b}":
        found = found * found
        found = found * x if digit == "1" else found
    return found


def to_copy(x, *, dtype=None, **options):
    """Floats become small integers by larger ones, whose last bits are kept."""
    small = dtype in (torch.int16, torch.int8, torch.uint8) and x.is_floating_point()
    x = _to_copy(x, dtype=torch.int32) if small else x
    return _to_copy(x, dtype=dtype, **options)


def left_shift(x, by):
    """Zero beyond the integer's bits, and by negative numbers."""
    return _shift(x, by, aten.__lshift__.Scalar, torch.zeros_like)


def right_shift(x, by):
    """The sign beyond the integer's bits, and by negative numbers."""
    return _shift(x, by, aten.__rshift__.Scalar, lambda x: -(x < 0).to(x.dtype))


def _shift(x, by, operator, beyond):
    kind = torch.result_type(x, by)
    bits = torch.iinfo(kind).bits
    if not isinstance(by, torch.Tensor):
        return NotImplemented if 0 <= by < bits else beyond(x)
    x, by = x.to(kind), by.to(kind)
    found = x
    for step in (1 << i for i in range(bits.bit_length() - 1)):
        found = torch.where((by & step) != 0, operator(found, step), found)
    return torch.where((by < 0) | (by >= bits), beyond(x), found)


def _or_nan(beyond, limit):
    if isinstance(limit, torch.Tensor):
        return beyond | torch.isnan(limit)
    return beyond if limit == limit else torch.ones_like(beyond)


def neg(x):
    """Of integers, exactly."""
    return NotImplemented if x.is_floating_point() or x.is_complex() else torch.zeros_like(x) - x


def sum_of_bytes(x, *where, dtype=None):
    if x.dtype != torch.uint8:
        return NotImplemented
    return x.to(torch.int64).sum(*where).to(dtype or torch.int64)


def mean(x, *where, dtype=None):
    """Of narrow numbers, whose sum they may not hold."""
    kind = dtype or x.dtype
    if kind not in (torch.float16, torch.bfloat16):
        return NotImplemented
    return x.float().mean(*where).to(kind)


def hypot(x, y):
    """By the larger one, so that no square overflows."""
    x, y = x.abs(), y.abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    ratio = small / torch.where(large == 0, torch.ones_like(large), large)
    found = torch.where(torch.isinf(large), large, large * (1 + ratio * ratio).sqrt())
    infinite = torch.isinf(x) | torch.isinf(y)  # beside NaN, too
    return torch.where(infinite, torch.full_like(found, math.inf), found)


def weight_norm_backward(grad, v, g, norms, dim):
    """Of v * g / |v|, whose norms are those of slices along one dimension."""
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    along = (grad * v).sum(others, keepdim=True)
    return g / norms * (grad - v * (along / (norms * norms))), along / norms


def dist(x, y, p=2):
    return torch.linalg.vector_norm(x - y, p)


def eye(rows, columns=None, *, dtype=None, **_):
    places = torch.arange(rows).unsqueeze(-1) == torch.arange(rows if columns is None else columns)
    return places.to(dtype or torch.get_default_dtype())


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
    return found.permute(_inverse(order))


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


def normal(mean, std, generator=None):
    """As PyTorch draws it: of 0 and 1 first."""
    drawn = torch.empty(torch.broadcast_tensors(*map(torch.as_tensor, (mean, std)))[0].shape)
    return aten.normal_functional.default(drawn) * std + mean


def empty_strided(size, stride, *, dtype=None, **_):
    """How elements lie in memory is not the program's."""
    return torch.empty(size, dtype=dtype)


def gelu(x, approximate="none"):
    """By the tangent with all digits of its factors, which torch-mlir rounds."""
    if approximate != "tanh":
        return NotImplemented
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + torch.tanh(inner))


def rrelu_with_noise_backward(grad, x, noise, lower, upper, training, self_is_result):
    if training:
        return grad * noise
    return torch.where(x > 0, grad, grad * ((lower + upper) / 2))


def rrelu_with_noise_functional(x, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    """How many numbers training draws depends on values: that is left, and reported."""
    if training:
        return NotImplemented
    return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise


def addmv(x, matrix, vector, *, beta=1, alpha=1):
    return x * beta + (matrix @ vector) * alpha


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
    order = _memory_order(size, stride)
    flat = _as_in_memory(x)
    if storage_offset or order is None or flat is None or flat.numel() != math.prod(size):
        return _strided_elements(x, size, stride, storage_offset or 0)
    return flat.reshape([size[d] for d in order]).permute(_inverse(order))


def as_strided_scatter(x, src, size, stride, storage_offset=None):
    """The reverse."""
    order, own = _memory_order(size, stride), _memory_order(x.shape, x.stride())
    if storage_offset or order is None or own is None or x.numel() != math.prod(size):
        if not x.is_contiguous():
            return NotImplemented
        return _put(x, _strided(size, stride, storage_offset or 0), src)
    flat = src.permute(order).reshape(-1)
    return flat.reshape([x.shape[d] for d in own]).permute(_inverse(own))


def _as_in_memory(x):
    order = _memory_order(x.shape, x.stride())
    return None if order is None else x.permute(order).reshape(-1)


def _memory_order(size, stride) -> list[int] | None:
    """The dimensions from the outermost in memory to the innermost; None where
    elements lie apart or upon each other."""
    # Of one element: anywhere.
    order = sorted(range(len(size)), key=lambda d: (size[d] > 1, -stride[d]))
    inner = 1
    for d in reversed(order):
        if size[d] > 1 and stride[d] != inner:
            return None
        inner *= size[d]
    return order


def _inverse(order: list[int]) -> list[int]:
    return [order.index(d) for d in range(len(order))]


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


def cumsum(x, dim, *, dtype=None):
    return _running(torch.add, 0, x, dim, dtype)


def cumprod(x, dim, *, dtype=None):
    return _running(torch.mul, 1, x, dim, dtype)


def logcumsumexp(x, dim):
    return _running(torch.logaddexp, float("-inf"), x, dim, None)


def _running(combine, neutral, x, dim, dtype):
    """The combination of all elements up to each one, in steps of 1, 2, 4, ... (Hillis
    and Steele, "Data parallel algorithms", 1986): elementwise work that fuses."""
    x = x.to(dtype or (x.dtype if x.is_floating_point() else torch.int64))
    if x.dim() == 0:
        return x
    dim %= x.dim()
    shift = 1
    while shift < x.shape[dim]:
        kept = x.narrow(dim, 0, x.shape[dim] - shift)
        around = [0] * (2 * (x.dim() - 1 - dim)) + [shift, 0]
        x = combine(x, aten.constant_pad_nd(kept, around, neutral))
        shift *= 2
    return x


TABLE = {
    aten.sum.default: sum_of_bytes,
    aten.sum.dim_IntList: sum_of_bytes,
    aten.clamp.default: clamp,
    aten.clamp.Tensor: clamp,
    aten.clamp_max.default: clamp_max,
    aten.clamp_max.Tensor: clamp_max,
    aten.clamp_min.default: clamp,
    aten.clamp_min.Tensor: clamp,
    aten.hardtanh.default: hardtanh,
    aten.pow.Tensor_Scalar: power,
    aten._to_copy.default: to_copy,
    aten.__lshift__.Scalar: left_shift,
    aten.__lshift__.Tensor: left_shift,
    aten.__rshift__.Scalar: right_shift,
    aten.__rshift__.Tensor: right_shift,
    aten.bitwise_left_shift.Tensor: left_shift,
    aten.bitwise_left_shift.Tensor_Scalar: left_shift,
    aten.bitwise_right_shift.Tensor: right_shift,
    aten.bitwise_right_shift.Tensor_Scalar: right_shift,
    aten.maximum.default: maximum,
    aten.mean.default: mean,
    aten.mean.dim: mean,
    aten.minimum.default: minimum,
    aten.neg.default: neg,
    aten.empty_strided.default: empty_strided,
    aten.masked_scatter.default: masked_scatter,
    aten.masked_scatter_backward.default: masked_scatter_backward,
    aten.normal.Tensor_Tensor: normal,
    aten.normal.Tensor_float: normal,
    aten.normal.float_Tensor: normal,
    aten.put.default: put,
    aten.gelu.default: gelu,
    aten.rrelu_with_noise_backward.default: rrelu_with_noise_backward,
    aten.rrelu_with_noise_functional.default: rrelu_with_noise_functional,
    aten.eye.default: eye,
    aten.eye.m: eye,
    aten.index_put.default: index_put,
    aten.signbit.default: signbit,
    aten.copysign.Tensor: copysign,
    aten.hypot.default: hypot,
    aten._weight_norm_interface_backward.default: weight_norm_backward,
    aten.dist.default: dist,
    aten.addmv.default: addmv,
    aten.roll.default: roll,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.as_strided.default: as_strided,
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.scatter.src: scatter_src,
    aten.scatter.value: scatter_value,
    aten.scatter_add.default: scatter_add,
    aten.cumsum.default: cumsum,
    aten.cumprod.default: cumprod,
    aten.logcumsumexp.default: logcumsumexp,
}
