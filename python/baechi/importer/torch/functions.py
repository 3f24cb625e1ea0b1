# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of PyTorch in forms that can be traced: plain operations, whose
gradients are autograd's, in place of what looks at values or has no decomposition.

What is NotImplemented is left to PyTorch.
"""

from __future__ import annotations

import math

import torch
from torch._decomp.decompositions import _grid_sampler_2d
from torch.nn import functional

from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch import indexing
from baechi.importer.torch.layout import inverse, memory_order

# The logarithm of nothing, of which sums and differences are still numbers.
_NOTHING = -1e30


def cdist(x1, x2, p=2.0, compute_mode=None):
    return _lengths(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def pdist(input, p=2.0):
    first, second = torch.triu_indices(len(input), len(input), 1)
    return _lengths(input.index_select(0, first) - input.index_select(0, second), p)


def _lengths(difference, p):
    if difference.shape[-1] == 1 and p > 0:  # PyTorch traces its norm with another shape
        return difference.squeeze(-1).abs()
    return (
        _Largest.apply(difference) if p == math.inf else torch.linalg.vector_norm(difference, p, -1)
    )


class _Largest(torch.autograd.Function):
    """The largest magnitude along the last dimension. Every one that is as large gets the
    whole gradient, as in PyTorch's distances; its norms divide it among them."""

    @staticmethod
    def forward(ctx, x):
        largest = x.abs().amax(-1)
        ctx.save_for_backward(x, largest)
        return largest

    @staticmethod
    def backward(ctx, gradient):
        x, largest = ctx.saved_tensors
        hit = x.abs() == largest.unsqueeze(-1)
        return gradient.unsqueeze(-1) * x.sign() * hit


class _Beside(torch.autograd.Function):
    """A result whose gradient by another tensor is zero, where autograd would know of none."""

    @staticmethod
    def forward(ctx, found, other):
        ctx.save_for_backward(other)
        return found.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, torch.zeros_like(ctx.saved_tensors[0])


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """A negative variance, an error in PyTorch, makes the loss no number."""
    if not isinstance(var, torch.Tensor):
        return NotImplemented
    if var.shape != input.shape and var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    # Its gradient is that of no limit.
    limited = var + (var.clamp(min=eps) - var).detach()
    limited = torch.where(var < 0, torch.full_like(var, math.nan), limited)
    loss = 0.5 * (limited.log() + (input - target) ** 2 / limited)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return _reduced(loss, reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """By its definition; PyTorch's decomposition counts targets behind the first -1. How
    much each class that is none of a line's targets comes too near to each target."""
    if size_average is not None or reduce is not None:
        return NotImplemented
    classes = input.shape[-1]
    lines, target = input.reshape(-1, classes), target.reshape(-1, classes)
    counted = (torch.cumsum(target < 0, 1) == 0).unsqueeze(-1)
    places = target.clamp(min=0)
    hot = (places.unsqueeze(-1) == torch.arange(classes)) & counted
    kept = counted & ~hot.any(1).unsqueeze(1)  # [lines, targets, classes]
    margins = torch.relu(1 - lines.gather(1, places).unsqueeze(-1) + lines.unsqueeze(1))
    losses = torch.where(kept, margins, torch.zeros((), dtype=input.dtype)).sum((1, 2)) / classes
    return _reduced(losses.reshape(input.shape[:-1]), reduction)


def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """By its definition; PyTorch's decomposition has a gradient where nothing is too near."""
    if size_average is not None or reduce is not None or p not in (1, 2) or input.dim() > 2:
        return NotImplemented
    lines, target = torch.atleast_2d(input), torch.atleast_1d(target).unsqueeze(1)
    z = margin - lines.gather(1, target) + lines
    counted = (z > 0) & (torch.arange(lines.shape[1]) != target)
    z = torch.where(counted, z, torch.zeros((), dtype=z.dtype))
    z = z if p == 1 else z * z
    losses = (z if weight is None else z * weight[target]).sum(1) / lines.shape[1]
    return _reduced(losses.reshape(input.shape[:-1]), reduction)


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,
    mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False,
    padding_idx=None,
):  # fmt: skip
    if max_norm is not None or scale_grad_by_freq or sparse:
        return NotImplemented
    if input.dim() == 2:
        bags, length = input.shape
        bag = torch.arange(bags).repeat_interleave(length)
    else:
        first = offsets[:-1] if include_last_offset else offsets
        bags = len(first)
        bag = (torch.arange(len(input)).unsqueeze(-1) >= first).sum(-1) - 1
    rows = functional.embedding(input.reshape(-1), weight)
    counted = torch.ones(len(rows), dtype=torch.bool)
    if padding_idx is not None:
        counted = input.reshape(-1) != padding_idx % len(weight)
    inside = (bag == torch.arange(bags).unsqueeze(-1)) & counted  # [bags, elements]
    count = inside.sum(-1, keepdim=True)
    if mode == "max":
        least = torch.full((), -math.inf, dtype=rows.dtype)
        found = torch.where(inside.unsqueeze(-1), rows, least).max(1).values
        return torch.where(count > 0, found, torch.zeros((), dtype=rows.dtype))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    found = rows.new_zeros(bags, rows.shape[-1]).index_add(
        0, bag, torch.where(counted.unsqueeze(-1), rows, torch.zeros((), dtype=rows.dtype))
    )
    return found / count.clamp(min=1) if mode == "mean" else found


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """PyTorch's decomposition, with autograd's gradient of it."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if input.dim() != 4 or mode not in modes or padding_mode not in paddings:
        return NotImplemented
    numbers = modes.index(mode), paddings.index(padding_mode)
    found = _grid_sampler_2d(input, grid, *numbers, bool(align_corners))
    return _Beside.apply(found, grid) if mode == "nearest" else found


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
    zero_infinity=False,
):  # fmt: skip
    """Graves et al.: Connectionist temporal classification, ICML 2006: forward
    variables over the labels with blanks in between, a step for each time."""
    single = log_probs.dim() == 2
    if single:
        log_probs, targets = log_probs.unsqueeze(1), targets.reshape(1, -1)
    steps, batch, _ = log_probs.shape
    input_lengths, target_lengths = (
        torch.as_tensor(lengths, dtype=torch.int64).reshape(-1)
        for lengths in (input_lengths, target_lengths)
    )
    if targets.dim() == 1:  # all one after the other
        first = target_lengths.cumsum(0) - target_lengths
        places = first.unsqueeze(-1) + torch.arange(len(targets))
        targets = targets[places.clamp(max=len(targets) - 1)]
    blanks = torch.full_like(targets, blank)
    states = torch.stack([blanks, targets], -1).flatten(1)
    states = torch.cat([states, blanks[:, :1]], 1).to(torch.int64)  # [batch, 2 * targets + 1]
    count = states.shape[1]
    # From the label before the blank, where that is another one.
    skips = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    skips = functional.pad(skips, (min(2, count), 0))
    nothing = torch.full((), _NOTHING, dtype=log_probs.dtype)
    known = states.clamp(0, log_probs.shape[-1] - 1)
    scores = [log_probs[t].gather(1, known) for t in range(steps)]
    alpha = torch.where(torch.arange(count) < 2, scores[0], nothing)

    def before(alpha, distance):
        kept = alpha[:, : max(count - distance, 0)]
        return functional.pad(kept, (min(distance, count), 0), value=_NOTHING)

    for t in range(1, steps):
        two = torch.where(skips, before(alpha, 2), nothing)
        ways = torch.stack([alpha, before(alpha, 1), two])
        new = torch.logsumexp(ways, 0) + scores[t]
        alpha = torch.where((t < input_lengths).unsqueeze(-1), new, alpha)
    last = 2 * target_lengths.unsqueeze(-1)
    ends = alpha.gather(1, torch.cat([last, (last - 1).clamp(min=0)], 1))
    alone = torch.where((last > 0).expand(-1, 2) | (torch.arange(2) == 0), ends, nothing)
    losses = -torch.logsumexp(alone, 1)
    losses = _Connectionist.apply(losses, log_probs, input_lengths, zero_infinity)
    if reduction == "mean":
        losses = losses / target_lengths.clamp(min=1)
    losses = _reduced(losses, reduction)
    return losses[0] if single and reduction == "none" else losses


class _Connectionist(torch.autograd.Function):
    """The losses, and beside the gradient that they have so far PyTorch's of what it takes for
    normalized: the probabilities themselves. Where no way is possible it has no number."""

    @staticmethod
    def forward(ctx, losses, log_probs, lengths, zero_infinity):
        impossible = losses > -_NOTHING / 2
        ctx.save_for_backward(log_probs, lengths, impossible)
        ctx.least = 0.0 if zero_infinity else math.nan
        least = 0.0 if zero_infinity else math.inf
        return torch.where(impossible, torch.full_like(losses, least), losses)

    @staticmethod
    def backward(ctx, gradient):
        log_probs, lengths, impossible = ctx.saved_tensors
        zero, least = (torch.full((), x, dtype=gradient.dtype) for x in (0.0, ctx.least))
        further = gradient.unsqueeze(-1) * log_probs.exp()
        further = torch.where(impossible.unsqueeze(-1), least, further)
        within = torch.arange(len(log_probs)).unsqueeze(-1) < lengths
        further = torch.where(within.unsqueeze(-1), further, zero)
        return torch.where(impossible, zero, gradient), further, None, None


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """By the logarithm of the sigmoid, as PyTorch. What it does under its function transforms
    adds to one what is too small, so that sure predictions lose nothing."""
    if size_average is not None or reduce is not None or input.shape != target.shape:
        return NotImplemented
    sigmoid = functional.logsigmoid(input)
    if pos_weight is not None:
        sigmoid = sigmoid * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input - sigmoid
    if weight is not None:
        losses = losses * weight
    return _reduced(losses, reduction)


def dropout(input, p=0.5, training=True, inplace=False):
    """With numbers drawn in the order of memory, as PyTorch does but under its function
    transforms."""
    if not training or inplace or not 0 < p < 1:
        return NotImplemented
    order = memory_order(input.shape, input.stride())
    drawn = torch.empty([input.shape[d] for d in order], dtype=input.dtype)
    kept = torch.ops.aten.bernoulli.p(drawn, 1 - p).permute(inverse(order))
    return input * (kept / (1 - p))


def random_(x, *bounds, generator=None, **named):
    """In the name of its operator is a word of Python's, in which graphs are written."""
    given = [*bounds, *(named[name] for name in ("from", "to") if name in named)]
    low, high = (0, *given)[-2:] if given else (0, None)
    if high is None or named.keys() == {"from"}:
        raise ImportFailure(
            "Tensor.random_ without an upper bound draws from all that its type holds: give "
            "random_(low, high)"
        )
    order = memory_order(x.shape, x.stride())
    sizes = [x.shape[d] for d in order]
    options = {} if generator is None else {"generator": generator}
    drawn = torch.randint(low, high, sizes, dtype=x.dtype, **options)
    return x.copy_(drawn.permute(inverse(order)))


def bernoulli_(x, p=0.5, *, generator=None):
    """With a tensor of probabilities: of doubles by doubles, of all else by singles."""
    if not isinstance(p, torch.Tensor) or not p.is_floating_point() or generator is not None:
        return NotImplemented
    order = memory_order(x.shape, x.stride())
    kind = torch.float64 if p.dtype == torch.float64 else torch.float32
    drawn = torch.rand([x.shape[d] for d in order], dtype=kind)
    return x.copy_(drawn.permute(inverse(order)) < p)


_SHORT = torch.float16, torch.bfloat16


def _in_single_precision(norm):
    """Of short types, with statistics in 32 bits, as PyTorch's kernels have them; its
    decompositions keep them in the input's type for the backward pass."""

    def normalized(input, *given, **named):
        tensors = [x for x in (*given, *named.values()) if isinstance(x, torch.Tensor)]
        # Running statistics are changed where they are.
        if input.dtype not in _SHORT or any(x.dtype in _SHORT for x in tensors):
            return NotImplemented
        return norm(input.float(), *given, **named).to(input.dtype)

    return normalized


_REDUCTIONS = "none", "mean", "sum"


def _reduced(loss, reduction):
    kinds = {"mean": torch.mean, "sum": torch.sum, "none": lambda x: x}
    return kinds[reduction](loss)


TABLE = {
    **indexing.TABLE,
    torch.Tensor.bernoulli_: bernoulli_,
    torch.Tensor.random_: random_,
    torch.cdist: cdist,
    torch.pdist: pdist,
    functional.gaussian_nll_loss: gaussian_nll_loss,
    functional.multilabel_margin_loss: multilabel_margin_loss,
    torch._C._nn.multilabel_margin_loss: lambda x, target, reduction=1: multilabel_margin_loss(
        x, target, reduction=_REDUCTIONS[reduction]
    ),
    functional.multi_margin_loss: multi_margin_loss,
    torch._C._nn.multi_margin_loss: (
        lambda x, target, p=1, margin=1, weight=None, reduction=1: multi_margin_loss(
            x, target, p, margin, weight, reduction=_REDUCTIONS[reduction]
        )
    ),
    functional.binary_cross_entropy_with_logits: binary_cross_entropy_with_logits,
    torch.binary_cross_entropy_with_logits: (
        lambda x, target, weight=None, pos_weight=None, reduction=1: (
            binary_cross_entropy_with_logits(
                x, target, weight, None, None, _REDUCTIONS[reduction], pos_weight
            )
        )
    ),
    functional.embedding_bag: embedding_bag,
    functional.grid_sample: grid_sample,
    functional.ctc_loss: ctc_loss,
    functional.dropout: dropout,
    torch.dropout: dropout,
    **{
        norm: _in_single_precision(norm)
        for norm in (
            *(functional.batch_norm, functional.group_norm, functional.instance_norm),
            *(torch.batch_norm, torch.group_norm, torch.instance_norm),
        )
    },
}
