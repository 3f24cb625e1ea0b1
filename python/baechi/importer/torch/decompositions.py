# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions for what torch-mlir lowers badly or not at all.

Each is plain PyTorch, by ATen's own definition of the operator.
"""

from __future__ import annotations

import torch
from torch._decomp import core_aten_decompositions
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from baechi.importer.torch import (
    division,
    elements,
    foreach,
    halves,
    integers,
    operators,
    order,
    special,
    transforms,
    windows,
)

aten = torch.ops.aten


class UnknownForm(Exception):
    """A decomposition does not know the form of the operator at hand."""


def table() -> dict:
    """The decompositions to trace with."""
    given = core_aten_decompositions(), get_decomposition_table()
    ours = division, elements, integers, operators, order, special, windows
    further = foreach.table(), transforms.table()
    tables = *given, *(module.TABLE for module in ours), *further, _OWN
    return halves.with_singles({n: form for table in tables for n, form in table.items()})


def encoder_layer(
    x, width, heads, qkv_weight, qkv_bias, out_weight, out_bias, gelu, norm_first, eps,
    norm1_weight, norm1_bias, norm2_weight, norm2_bias,
    up_weight, up_bias, down_weight, down_bias, mask=None, mask_type=None,
):  # fmt: skip
    """What nn.TransformerEncoderLayer calls for inference."""
    functional = torch.nn.functional

    def attend(x):
        mixed, _ = attention(
            x, x, x, width, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask,
            need_weights=False, mask_type=mask_type,
        )  # fmt: skip
        return mixed

    def feed(x):
        hidden = functional.linear(x, up_weight, up_bias)
        hidden = functional.gelu(hidden) if gelu else functional.relu(hidden)
        return functional.linear(hidden, down_weight, down_bias)

    def norm1(x):
        return functional.layer_norm(x, (width,), norm1_weight, norm1_bias, eps)

    def norm2(x):
        return functional.layer_norm(x, (width,), norm2_weight, norm2_bias, eps)

    if norm_first:
        x = x + attend(norm1(x))
        return x + feed(norm2(x))
    x = norm1(x + attend(x))
    return norm2(x + feed(x))


def attention(
    query, key, value, width, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask=None,
    need_weights=True, average_attn_weights=True, mask_type=None,
):  # fmt: skip
    """What nn.MultiheadAttention calls for inference on one sequence."""
    if query is not key or key is not value or mask is not None and mask_type not in (0, 1):
        raise UnknownForm("nn.MultiheadAttention's fast path with this mask; set "
                          "torch.backends.mha.set_fastpath_enabled(False)")  # fmt: skip
    batch, length, _ = query.shape
    parts = torch.nn.functional.linear(query, qkv_weight, qkv_bias)
    parts = parts.reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    query, key, value = parts.unbind(0)
    scores = (query * (width // heads) ** -0.5) @ key.transpose(-2, -1)
    if mask is not None:  # 0: [length, length]; 1: [batch, length], keys that are left out
        mask = mask.reshape(batch, 1, 1, length) if mask_type == 1 else mask
        scores = scores.masked_fill(mask, float("-inf")) if mask.dtype == torch.bool else (
            scores + mask)  # fmt: skip
    weights = torch.softmax(scores, -1)
    mixed = (weights @ value).transpose(1, 2).reshape(batch, length, width)
    mixed = torch.nn.functional.linear(mixed, out_weight, out_bias)
    if not need_weights:
        return mixed, weights.new_empty(0)
    return mixed, weights.mean(1) if average_attn_weights else weights


def _is_class(target, size: int):
    """[batch, size]: where each target is."""
    return target.unsqueeze(-1) == torch.arange(size, device=target.device)


def nll_loss_forward(x, target, weight, reduction, ignore_index):
    """Compares with all classes: elementwise work, fused with the log-softmax. Chosen, not
    multiplied by zero: a class that is ruled out has minus infinity."""
    chosen = _is_class(target, x.shape[-1])
    zero = torch.zeros((), dtype=x.dtype)
    weights = _loss_weights(target, weight, ignore_index, chosen, x.dtype)
    losses = -torch.where(chosen, x, zero).sum(-1) * weights
    losses = torch.where(target == ignore_index, zero, losses)
    total = weights.sum()
    if reduction == 0:
        return losses, total
    return (losses.sum() / total if reduction == 1 else losses.sum()), total


def nll_loss_backward(grad, x, target, weight, reduction, ignore_index, total_weight):
    """Nothing of an ignored target: where all are, the loss is NaN, its gradient zero."""
    chosen = _is_class(target, x.shape[-1])
    weights = _loss_weights(target, weight, ignore_index, chosen, x.dtype)
    if reduction == 1:
        grad = grad / total_weight
    # Of a target that is no class, too, whose weight has no number.
    counts = chosen | ~((target >= 0) & (target < x.shape[-1])).unsqueeze(-1)
    counts = counts & (target != ignore_index).unsqueeze(-1)
    return torch.where(counts, -(grad * weights).unsqueeze(-1), torch.zeros((), dtype=x.dtype))


def _loss_weights(target, weight, ignore_index, chosen, dtype):
    """[batch]: each target's weight, 0 where it is ignored. A target that is no
    class, an error in PyTorch, has no number."""
    one, zero, wrong = (torch.full((), x, dtype=dtype) for x in (1.0, 0.0, float("nan")))
    right = (target >= 0) & (target < chosen.shape[-1])
    if weight is not None:
        one = torch.where(chosen, weight, zero).sum(-1)
    return torch.where(target == ignore_index, zero, torch.where(right, one, wrong))


def embedding_dense_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    """Adds up rows: a scatter, not a product with a one-hot matrix."""
    indices = indices.reshape(-1)
    grad = grad.reshape(-1, grad.shape[-1])
    if scale_grad_by_freq:
        ones = torch.ones(indices.shape, dtype=grad.dtype)
        count = grad.new_zeros(rows).index_put((indices,), ones, accumulate=True)
        grad = grad / count.index_select(0, indices).unsqueeze(-1)
    if padding_idx >= 0:
        grad = torch.where((indices != padding_idx).unsqueeze(-1), grad, torch.zeros_like(grad))
    return grad.new_zeros(rows, grad.shape[-1]).index_put((indices,), grad, accumulate=True)


def addmm(bias, a, b, *, beta=1, alpha=1):
    """Without products by one."""
    product = a.mm(b)
    product = product if alpha == 1 else product * alpha
    return product + (bias if beta == 1 else bias * beta)


def reciprocal(x):
    """torch-mlir's stops where an element is zero; the division gives infinity."""
    return torch.full((), 1.0, dtype=x.dtype if x.is_floating_point() else torch.float32) / x


def max_pool2d_with_indices(x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The first largest of the window's positions, as one elementwise operation
    over slices; torch-mlir looks each position up in a loop of its own."""
    kernel, padding, dilation = _pair(kernel), _pair(padding), _pair(dilation)
    stride = _pair(stride) if stride else kernel
    height, width = x.shape[-2:]
    rows, columns = (
        _positions(x.shape[d - 2], kernel[d], stride[d], padding[d], dilation[d], ceil_mode)
        for d in (0, 1)
    )
    reach = [(n - 1) * s + 1 for n, s in zip((rows, columns), stride)]
    after = [
        max(0, (k - 1) * d + r - n - p)
        for k, d, r, n, p in zip(kernel, dilation, reach, (height, width), padding)
    ]
    around = [padding[1], after[1], padding[0], after[0]]
    least = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    padded = aten.constant_pad_nd(x, around, least) if any(around) else x
    top = (torch.arange(rows) * stride[0] - padding[0]).reshape(-1, 1)
    left = (torch.arange(columns) * stride[1] - padding[1]).reshape(1, -1)
    best = index = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            y0, x0 = i * dilation[0], j * dilation[1]
            value = padded[..., y0 : y0 + reach[0] : stride[0], x0 : x0 + reach[1] : stride[1]]
            place = ((top + y0) * width + left + x0).expand(value.shape)
            if best is None:
                best, index = value, place
                continue
            larger = (value > best) | (value != value)
            best = torch.where(larger, value, best)
            index = torch.where(larger, place, index)
    return best, index


def _positions(size, kernel, stride, padding, dilation, ceil_mode) -> int:
    """Windows along one dimension, as torch.nn.MaxPool2d counts them."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    # The last window must begin within the input or its left padding.
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def max_pool2d_with_indices_backward(
    grad, x, kernel, stride, padding, dilation, ceil_mode, indices
):
    """Every position of the window compares its own index with the stored one."""
    kernel, padding, dilation = _pair(kernel), _pair(padding), _pair(dilation)
    stride = _pair(stride) if stride else kernel
    height, width = grad.shape[-2:]
    rows = (torch.arange(height) * stride[0] - padding[0]).reshape(-1, 1)
    columns = (torch.arange(width) * stride[1] - padding[1]).reshape(1, -1)

    def term(i, j):
        index = (rows + i * dilation[0]) * x.shape[-1] + columns + j * dilation[1]
        return torch.where(indices == index, grad, torch.zeros_like(grad))

    return _scatter_windows(term, x, kernel, stride, padding, dilation)


def convolution_backward(
    grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask
):
    """Both gradients as convolutions, in the form that the JAX importer has them,
    too. (torch-mlir computes a weight gradient for each image and adds them up.)"""
    dims = x.dim() - 2
    stride, padding, dilation = (_all(v, dims) for v in (stride, padding, dilation))
    if dims == 3 and transposed:
        sizes = stride, padding, dilation
        return _transposed_in_three(grad, x, weight, *sizes, output_padding, groups, mask)
    if dims not in (1, 2):
        return NotImplemented
    if any(p > d * (k - 1) for p, d, k in zip(padding, dilation, weight.shape[2:])):
        return NotImplemented
    if x.shape[0] == 0:
        sizes = x.shape, weight.shape, bias_sizes
        zeros = (grad.new_zeros(size) if asked else None for size, asked in zip(sizes, mask))
        return tuple(zeros)
    to_bias = grad.sum((0, *range(2, grad.dim()))) if mask[2] else None
    if dims == 1:  # of one row
        grad, x, weight = (t.unsqueeze(2) for t in (grad, x, weight))
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    steps = stride, padding, dilation
    to_x = to_weight = None
    if transposed:  # itself the gradient of a convolution from its result to x
        if mask[0]:
            to_x = _convolve(grad, weight, *steps, groups)
            for dim in (-2, -1):
                # An output padding of a stride or more: windows that are none of x.
                if to_x.shape[dim] > x.shape[dim]:
                    to_x = to_x.narrow(dim, 0, x.shape[dim])
        if mask[1]:
            to_weight = _gradient_of_weight(x, grad, weight.shape[-2:], *steps, groups)
    else:
        if mask[0]:
            to_x = _gradient_of_input(grad, x, weight, *steps, groups)
        if mask[1]:
            to_weight = _gradient_of_weight(grad, x, weight.shape[-2:], *steps, groups)
    if dims == 1:
        to_x, to_weight = (None if t is None else t.squeeze(2) for t in (to_x, to_weight))
    return to_x, to_weight, to_bias


def _transposed_in_three(grad, x, weight, stride, padding, dilation, output_padding, groups, mask):
    """As the convolution from its result to x, whose gradient torch-mlir has."""
    if x.shape[0] == 0 or any(p >= s for p, s in zip(output_padding, stride)):
        return NotImplemented
    steps = list(stride), list(padding), list(dilation), False, [0, 0, 0], groups
    to_bias = grad.sum((0, 2, 3, 4)) if mask[2] else None
    to_x = aten.convolution(grad, weight, None, *steps) if mask[0] else None
    given = x, grad, weight, None, *steps, [False, True, False]
    return to_x, aten.convolution_backward(*given)[1] if mask[1] else None, to_bias


def _gradient_of_input(grad, x, weight, stride, padding, dilation, groups):
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[-2:])]
    # Zeros before the first gradient, so that the turned window begins with x.
    low = [r - p for r, p in zip(reach, padding)]
    turned = weight.flip(2, 3) if max(reach) else weight
    # Within each group what were results are inputs.
    turned = turned.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
    if not max(reach):  # computed where there are gradients, then spread
        return _spread(_convolve(grad, turned, groups=groups), x.shape[-2:], stride, low)
    sizes = [n + r for n, r in zip(x.shape[-2:], reach)]
    spread = _spread(grad, sizes, stride, low)
    return _convolve(spread, turned, dilation=dilation, groups=groups)


def _gradient_of_weight(grad, x, kernel, stride, padding, dilation, groups):
    around = []
    for d in (-1, -2):  # so much of x that there are as many places as the weight has
        needed = (grad.shape[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1
        after = needed - x.shape[d] - padding[d]
        x = x.narrow(d, 0, x.shape[d] + min(after, 0))
        around += [padding[d], max(after, 0)]
    x = aten.constant_pad_nd(x, around) if any(around) else x
    # The images of a group are the channels that are summed.
    x = x.unflatten(1, (groups, -1)).permute(2, 1, 0, 3, 4).flatten(1, 2)
    product = _convolve(x, grad.transpose(0, 1), dilation, dilation=stride, groups=groups)
    return product.transpose(0, 1)


def _convolve(x, weight, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    sizes = list(stride), list(padding), list(dilation)
    return aten.convolution(x, weight, None, *sizes, False, [0, 0], groups)


def _spread(x, sizes, stride, first):
    """[..., h, w] in zeros of [..., *sizes], `stride` apart, from position `first`
    on; what lies outside is left off."""
    for dim in (-1, -2):
        size, step, start = sizes[dim], stride[dim], first[dim]
        count = x.shape[dim]
        if step == 1 and start == 0 and count == size:
            continue
        skipped = -(start // step) if start < 0 else 0
        start += skipped * step
        count = min(count, skipped + (size - start - 1) // step + 1) - skipped
        x = x.narrow(dim, skipped, count)
        shape = list(x.shape)
        shape[dim] = size
        zeros = torch.zeros(shape, dtype=x.dtype)
        x = aten.slice_scatter(zeros, x, dim % x.dim(), start, start + (count - 1) * step + 1, step)
    return x


def avg_pool2d_backward(
    grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    kernel, padding = _pair(kernel), _pair(padding)
    stride = _pair(stride) if stride else kernel
    if ceil_mode:
        return windows.avg_pool_backward(
            grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    window = kernel[0] * kernel[1]
    if divisor_override is None and not count_include_pad and any(padding):
        share = aten.avg_pool2d(torch.ones_like(x), kernel, stride, padding, False, True)
        grad = grad / (share * window)
    else:
        grad = grad / (divisor_override or window)
    return _scatter_windows(lambda i, j: grad, x, kernel, stride, padding, [1, 1])


def _scatter_windows(term, x, kernel, stride, padding, dilation):
    """The sum over window positions (i, j) of `term(i, j)`, whose element o
    belongs to position o * stride - padding + (i, j) * dilation of x."""
    total = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            first = [i * dilation[0] - padding[0], j * dilation[1] - padding[1]]
            part = _spread(term(i, j), x.shape[-2:], stride, first)
            total = part if total is None else total + part
    return total


def _pair(value) -> list[int]:
    return _all(value, 2)


def _all(value, dims: int) -> list[int]:
    """One number for each dimension, where one may stand for all."""
    value = [value] if isinstance(value, int) else list(value) or [0]
    return value * dims if len(value) == 1 else value


def native_group_norm(x, weight, bias, batch, channels, rest, groups, epsilon):
    """In steps that all have their own memory; PyTorch's looks at it in strides. Of halves in
    single precision, as PyTorch: with weights of singles, too, what it gives is of x's type."""
    kind = x.dtype
    if kind in (torch.float16, torch.bfloat16):
        x = x.float()
    split = x.reshape(batch, groups, -1)
    variance, mean = var_mean(split, [2], correction=0, keepdim=True)
    inverse = (variance + epsilon).rsqrt()
    normal = ((split - mean) * inverse).reshape(x.shape)
    shape = [1, channels] + [1] * (x.dim() - 2)
    normal = normal if weight is None else normal * weight.reshape(shape)
    normal = normal if bias is None else normal + bias.reshape(shape)
    mean, inverse = (each.reshape(batch, groups).to(kind) for each in (mean, inverse))
    return normal.to(kind), mean, inverse


def constant_pad_nd(x, pad, value=0):
    """Negative widths, which cut off, as slices."""
    if all(width >= 0 for width in pad):
        return NotImplemented
    for k in range(len(pad) // 2):
        low, high = pad[2 * k : 2 * k + 2]
        size = x.shape[-1 - k] + min(low, 0) + min(high, 0)
        x = x.narrow(-1 - k, max(-low, 0), size)
    wider = [max(width, 0) for width in pad]
    return aten.constant_pad_nd(x, wider, value) if any(wider) else x.clone()


def empty_permuted(size, physical_layout, **options):
    """How elements lie in memory is not the program's."""
    return torch.empty(size, **options)


def var_mean(x, dim=None, *, correction=None, keepdim=False):
    """In x's own type; torch-mlir goes through f64."""
    dims = list(dim) if dim else list(range(x.dim()))
    count = 1
    for d in dims:
        count *= x.shape[d]
    mean = x.sum(dims, keepdim=True) / count
    centred = x - mean
    divisor = max(count - (1 if correction is None else correction), 0)
    variance = (centred * centred).sum(dims, keepdim=keepdim) / divisor
    return variance, (mean if keepdim else mean.reshape(variance.shape))


def native_dropout(x, p, train):
    """Attention's own, with the numbers that PyTorch draws for it on the CPU."""
    if not train or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = aten.bernoulli.p(torch.empty_like(x), 1 - p)
    return x * kept * (1 / (1 - p)), kept.to(torch.bool)


_OWN = {
    aten.native_dropout.default: native_dropout,
    aten.constant_pad_nd.default: constant_pad_nd,
    aten.empty_permuted.default: empty_permuted,
    aten.native_group_norm.default: native_group_norm,
    aten._transformer_encoder_layer_fwd.default: encoder_layer,
    aten._native_multi_head_attention.default: attention,
    aten.addmm.default: addmm,
    aten.reciprocal.default: reciprocal,
    aten.max_pool2d_with_indices.default: max_pool2d_with_indices,
    aten.var_mean.correction: var_mean,
    aten.nll_loss_forward.default: nll_loss_forward,
    aten.nll_loss_backward.default: nll_loss_backward,
    aten.embedding_dense_backward.default: embedding_dense_backward,
    aten.max_pool2d_with_indices_backward.default: max_pool2d_with_indices_backward,
    aten.avg_pool2d_backward.default: avg_pool2d_backward,
    aten.convolution_backward.default: convolution_backward,
}
