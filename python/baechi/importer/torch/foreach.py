# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on lists of tensors (`torch._foreach_add`), as PyTorch's optimizers and
`clip_grad_norm_` use them: one operator per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_PREFIX = "aten::_foreach_"


def _copy(x, source, non_blocking=False):
    return source.to(x.dtype).expand(x.shape).clone()


def _addcmul(x, first, second, value=1):
    return torch.addcmul(x, first, second, value=value)


def _addcdiv(x, first, second, value=1):
    return torch.addcdiv(x, first, second, value=value)


# What is called otherwise on one tensor.
_FORMS: dict[str, Callable] = {
    "addcdiv": _addcdiv,
    "addcmul": _addcmul,
    "copy": _copy,
    "maximum.Scalar": torch.clamp_min,
    "maximum.ScalarList": torch.clamp_min,
    "minimum.Scalar": torch.clamp_max,
    "minimum.ScalarList": torch.clamp_max,
    "norm": torch.linalg.vector_norm,
    "zero": torch.zeros_like,
}
# Their numbers are the elements of one tensor.
_LEFT_OUT = ("addcdiv.Tensor", "addcmul.Tensor")


def _of_lists(function: Callable) -> Callable:
    def on_each(*given, **options):
        count = max(len(each) for each in given if isinstance(each, Sequence))
        rows = [each if isinstance(each, Sequence) else [each] * count for each in given]
        return [function(*row, **options) for row in zip(*rows, strict=True)]

    return on_each


def table() -> dict:
    """The decompositions; in place they come as these and copies."""
    found = {}
    for name in torch._C._dispatch_get_all_op_names():
        form, _, overload = name.removeprefix(_PREFIX).partition(".")
        full = f"{form}.{overload}"
        if not name.startswith(_PREFIX) or full in _LEFT_OUT:
            continue
        function = _FORMS.get(full) or _FORMS.get(form) or getattr(torch, form, None)
        if function and not form.endswith("_") and not overload.endswith("out"):
            packet = getattr(torch.ops.aten, f"_foreach_{form}")
            found[getattr(packet, overload or "default")] = _of_lists(function)
    return found
