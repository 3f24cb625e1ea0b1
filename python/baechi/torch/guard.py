# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What user code does to tensors while a step is traced: noted, put back, or refused."""

from __future__ import annotations

import torch
from torch._C import _functorch
from torch._subclasses import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from baechi.importer.common.errors import ImportFailure
from baechi.importer.torch.names import user_line
from baechi.torch.left_behind import Journal


class Guarded(TorchFunctionMode):
    """What is done to tensors outside of the model is traced, not done: they are put back.

    Refuses what would keep gradients of values within a step, which has none to look at.
    """

    def __init__(self, journal: Journal):
        super().__init__()
        self._journal = journal
        self._before: dict[torch.Tensor, torch.Tensor] = {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.retain_grad:
            raise ImportFailure(
                "retain_grad(): a compiled step keeps no gradients of values within it; return "
                "what you need beside the loss, or train with torch.compile(model, "
                'backend="baechi") and a loop of your own'
            )
        if any(isinstance(x, torch.Generator) for x in [*args, *(kwargs or {}).values()]):
            raise ImportFailure(
                f"{user_line()}: draws from a torch.Generator, which a compiled step would not "
                "draw from again: use PyTorch's own (no generator=), or give the numbers to the "
                "step as an argument"
            )
        if function == torch.Tensor.data.__set__:
            raise ImportFailure(
                f"{user_line()}: forward or the loss replaces a tensor's .data, which a compiled "
                "step does not see: write into it (x.copy_(value) under torch.no_grad())"
            )
        name = getattr(function, "__name__", "")
        writes = name.startswith("__i") or name == "__setitem__" or name.rstrip("_") + "_" == name
        if writes and args and isinstance(args[0], torch.Tensor):
            self._keep(args[0])
        result = function(*args, **(kwargs or {}))
        self._journal.note(function, args, kwargs or {}, result)
        return result

    def _keep(self, tensor: torch.Tensor) -> None:
        while _functorch.is_functorch_wrapped_tensor(tensor):  # within `vmap`, `grad` and so on
            tensor = _functorch.get_unwrapped(tensor)
        if not isinstance(tensor, FakeTensor) and tensor not in self._before:
            with _disable_current_modes():
                self._before[tensor] = tensor.detach().clone()

    def __exit__(self, *error):
        super().__exit__(*error)
        with _disable_current_modes(), torch.no_grad():
            for tensor, value in self._before.items():
                tensor.copy_(value)
