# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of PyTorch on a GPU that is the fake driver's (unittests/Runtime/FakeCuda), whose memory
is the host's: what is done to one is done to a tensor of the CPU in that memory."""

from __future__ import annotations

import ctypes
import functools

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from baechi.steps import gpu_memory
from baechi.steps.gpu_array import GpuArray
from baechi.steps.library import StepLibrary

aten = torch.ops.aten


class GpuTensor(torch.Tensor):
    """On "cuda:0", in the memory of an array there."""

    inner: torch.Tensor
    array: GpuArray

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, array: GpuArray, like: torch.Tensor):
        memory = (ctypes.c_char * max(1, array.nbytes)).from_address(array._address.value)
        count = 1
        for size, stride in zip(like.shape, like.stride(), strict=True):
            count += (size - 1) * stride
        inner = torch.frombuffer(memory, dtype=like.dtype, count=count)
        inner = inner.as_strided(like.shape, like.stride())
        made = torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=like.dtype, device="cuda:0"
        )
        made.inner, made.array = inner, array
        return made

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream == 1, "what the GPU still does to the tensor has no order"
        assert self.is_contiguous()
        return self.array.__dlpack__(stream=stream, max_version=max_version)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function in (aten.detach.default, aten.alias.default):
            return cls(args[0].array, args[0].inner)
        # PyTorch's stream comes after steps that have returned.
        with gpu_memory.selected(0):
            gpu_memory.call("cuCtxSynchronize")
        given, named = pytree.tree_map_only(cls, lambda t: t.inner, (args, dict(kwargs or {})))
        to = named.get("device")
        if to is not None:
            named["device"] = torch.device("cpu")
        found = function(*given, **named)
        if function._schema.name.endswith("_"):
            return args[0]
        to_host = to is not None and torch.device(to).type == "cpu"
        return found if to_host else pytree.tree_map_only(torch.Tensor, on_gpu, found)


def on_gpu(value: torch.Tensor) -> GpuTensor:
    """A copy there, laid out alike."""
    value = value.detach()
    array = GpuArray(tuple(value.shape), value.numpy().dtype, 0)
    made = GpuTensor(array, value)
    made.inner.copy_(value)
    return made


class Factories(TorchDispatchMode):
    """Within: what is made on a GPU, or moved to it, is a GpuTensor."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        named = dict(kwargs or {})
        of_gpu = any(isinstance(x, GpuTensor) for x in pytree.tree_leaves((args, named)))
        if of_gpu or named.get("device") is None or torch.device(named["device"]).type != "cuda":
            return function(*args, **named)
        return on_gpu(function(*args, **(named | {"device": torch.device("cpu")})))


@functools.cache
def without_a_driver() -> None:
    """PyTorch looks for a GPU before it makes a tensor there."""
    torch.cuda._lazy_init = lambda: None


def noted_moves() -> list[tuple[str, str]]:
    """What steps move through the host from now on: by which function, and its name."""
    moved: list[tuple[str, str]] = []
    move = StepLibrary._move

    def noted(library, function, index, value):
        border = "results" if function == "get_result" else "arguments"
        moved.append((function, library.program[border][index]["name"]))
        move(library, function, index, value)

    StepLibrary._move = noted
    return moved
