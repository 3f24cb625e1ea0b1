# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the rounding of short types (autocast's, a model's own) changes of PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

SHORT = (torch.bfloat16, torch.float16)
_WIDE = (torch.float32, torch.float64)
_DRAWS = 4  # of one number, two may show little by chance
_CONVERSIONS = (aten._to_copy, aten.copy_)
# What gives elements as they are; all that PyTorch calls views does.
_MOVES = (
    *(aten.clone, aten.cat, aten.stack, aten.index_select, aten.index, aten.gather, aten.where),
    *(aten.embedding, aten.relu, aten.neg, aten.abs, aten.threshold_backward, aten.flip),
    *(aten.constant_pad_nd, aten.masked_fill, aten.max_pool2d_with_indices, aten._unsafe_view),
)


def shortened(run: Callable[[], Sequence[np.ndarray]]) -> list[Sequence[np.ndarray]]:
    """The results of `run` with every value that it makes of a short type, and every one that it
    widens from one, changed by a unit in the last place of its type, up or down: several times;
    not at all where it makes none."""
    found = []
    for seed in range(_DRAWS):
        with _Changed(seed) as changed:
            found.append(run())
        if not changed.count:
            return []
    return found


class _Changed(TorchDispatchMode):
    """count: of tensors that were changed."""

    def __init__(self, seed: int):
        super().__init__()
        self._draws = torch.Generator().manual_seed(seed)
        self.count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        made = function(*args, **kwargs)
        packet = function.overloadpacket
        given = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        widens = packet in _CONVERSIONS and any(x.dtype in SHORT for x in given)
        kept = packet in _CONVERSIONS and len({x.dtype for x in [*given, made]}) == 1

        def rounded(x: Any) -> bool:
            if not isinstance(x, torch.Tensor) or packet in _MOVES or kept:
                return False
            return x.dtype in SHORT or (widens and x.dtype in _WIDE)

        for argument, value in zip(function._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for x in filter(rounded, pytree.tree_leaves(value)):
                    x.copy_(self._moved(x))
        results = made if isinstance(made, tuple) else (made,)
        new = [
            pytree.tree_map(lambda x: self._moved(x) if rounded(x) else x, result)
            if returned.alias_info is None
            else result
            for returned, result in zip(function._schema.returns, results)
        ]
        return tuple(new) if isinstance(made, tuple) else new[0] if new else made

    def _moved(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        sign = torch.randint(0, 2, tuple(x.shape), generator=self._draws) * 2 - 1
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return (wide * (1 + sign * torch.finfo(x.dtype).eps).to(wide.dtype)).to(x.dtype)
