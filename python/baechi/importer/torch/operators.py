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
from torch.utils._python_dispatch import _disable_current_modes

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
    x = x.to(torch.result_type(x, exponent))  # bools become integers
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


def _with_number(shift, operator):
    """What is shifted, or by how much, may be a number of Python."""

    def shifted(x, by):
        if not isinstance(by, torch.Tensor):
            return operator(x, by)
        if not isinstance(x, torch.Tensor):
            x = torch.full((), x, dtype=torch.result_type(x, by))
        return shift(x, by)

    return shifted


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


def normal(mean, std=1.0, *, generator=None):
    """As PyTorch draws it: of 0 and 1 first."""
    kind = mean.dtype if isinstance(mean, torch.Tensor) else std.dtype
    shape = torch.broadcast_tensors(*map(torch.as_tensor, (mean, std)))[0].shape
    drawn = torch.empty(shape, dtype=kind)
    return aten.normal_functional.default(drawn) * std + mean


def bernoulli(p, *, generator=None):
    """As PyTorch draws it on the CPU: of doubles by doubles, of all else by singles."""
    kind = torch.float64 if p.dtype == torch.float64 else torch.float32
    return (torch.rand(p.shape, dtype=kind) < p).to(p.dtype)


def arange(start, end, step=1, *, dtype=None, **_):
    """Of fractions by PyTorch, as a constant, with its roundings."""
    whole = all(number == int(number) for number in (start, end, step))
    return NotImplemented if whole else _constant(torch.arange, start, end, step, dtype=dtype)


def linspace(start, end, steps, *, dtype=None, **_):
    """By PyTorch, as a constant: it goes up from one end and down from the other."""
    return _constant(torch.linspace, start, end, steps, dtype=dtype)


def logspace(start, end, steps, base=10.0, *, dtype=None, **_):
    return _constant(torch.logspace, start, end, steps, base, dtype=dtype)


def _constant(function, *numbers, dtype):
    with _disable_current_modes():
        return function(*numbers, dtype=dtype)


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
    **dict.fromkeys(
        (aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Scalar_Tensor),
        _with_number(left_shift, aten.__lshift__.Scalar),
    ),
    aten.bitwise_right_shift.Tensor: right_shift,
    **dict.fromkeys(
        (aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Scalar_Tensor),
        _with_number(right_shift, aten.__rshift__.Scalar),
    ),
    aten.maximum.default: maximum,
    aten.mean.default: mean,
    aten.mean.dim: mean,
    aten.minimum.default: minimum,
    aten.neg.default: neg,
    aten.empty_strided.default: empty_strided,
    aten.bernoulli.default: bernoulli,
    aten.normal.Tensor_Tensor: normal,
    aten.normal.Tensor_float: normal,
    aten.normal.float_Tensor: normal,
    aten.gelu.default: gelu,
    aten.rrelu_with_noise_backward.default: rrelu_with_noise_backward,
    aten.rrelu_with_noise_functional.default: rrelu_with_noise_functional,
    aten.arange.start_step: arange,
    aten.linspace.default: linspace,
    aten.logspace.default: logspace,
    aten.eye.default: eye,
    aten.eye.m: eye,
    aten.signbit.default: signbit,
    aten.copysign.Tensor: copysign,
    aten.hypot.default: hypot,
    aten._weight_norm_interface_backward.default: weight_norm_backward,
    aten.dist.default: dist,
    aten.addmv.default: addmv,
    aten.cumsum.default: cumsum,
    aten.cumprod.default: cumprod,
    aten.logcumsumexp.default: logcumsumexp,
}
