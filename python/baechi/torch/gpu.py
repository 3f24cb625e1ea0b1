# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose tensors lie in a GPU's memory.

Steps are traced as those of models on the CPU are, with stand-ins of the same shapes, types and
strides there: PyTorch's ways for GPUs (fused attention, cuDNN's cells) are not in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from baechi.common import users
from baechi.importer.common.errors import ImportFailure
from baechi.steps.program import Program


def home(tensors: Mapping[str, torch.Tensor], whole: str = "the model") -> torch.device:
    """Where a model lies, whose tensors these are. Raises ValueError."""
    found = torch.device("cpu")
    first = ""
    for name, tensor in tensors.items():
        if tensor.device.type not in ("cpu", "cuda"):
            raise ValueError(
                f"'{name}' is on {tensor.device}; keep the model on the CPU or on a CUDA GPU, as "
                "the step has its own copy on the machine's devices"
            )
        if first and tensor.device != found:
            raise ValueError(
                f"'{first}' is on {found} and '{name}' on {tensor.device}: move {whole} to one "
                f"of them (.to('{found}'))"
            )
        found, first = tensor.device, name
    return found


def stand_in(tensor: torch.Tensor) -> torch.Tensor:
    """On the CPU, of no particular values, for one on a GPU."""
    if not tensor.is_cuda:
        return tensor
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)


def on_cpu(arguments: Any) -> Any:
    """What an operation of a graph is called with, where its tensors are stand-ins."""

    def moved(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if isinstance(value, str) and re.fullmatch(r"cuda(:\d+)?", value):
            return "cpu"
        return value

    return pytree.tree_map(moved, arguments)


def trace_on_cpu(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> set[int]:
    """Calls a function of AOTAutograd's, which traces it, with stand-ins; which of them it has
    changed in place."""
    places = [stand_in(x.detach()).requires_grad_(x.requires_grad) for x in tensors]
    before = [x._version for x in places]
    function(*places)
    return {i for i, x in enumerate(places) if x._version > before[i]}


def refuse_shared(names: Sequence[str], tensors: Sequence[torch.Tensor], changed: set[int]) -> None:
    """Raises ImportFailure for what is changed in place and shares memory with another input:
    stand-ins lie apart."""
    if not changed:
        return
    memory = [x.untyped_storage()._cdata for x in tensors]
    for i in sorted(changed):
        if memory.count(memory[i]) > 1:
            other = next(k for k, each in enumerate(memory) if each == memory[i] and k != i)
            raise ImportFailure(
                f"'{names[i]}' is changed in place and shares its memory on {tensors[i].device} "
                f"with '{names[other]}': give one of them as a copy (.clone()), or keep both on "
                "the CPU"
            )


def refuse_autocast(device: torch.device, what: str = "a training step of a model") -> None:
    """Raises RuntimeError where PyTorch would compute in other types than the trace shows."""
    if device.type != "cpu" and any(map(torch.is_autocast_enabled, ("cpu", device.type))):
        raise RuntimeError(
            f"{what} on {device} was called under torch.autocast, which is followed for models "
            "on the CPU: keep the model there, or convert it (model.to(torch.bfloat16))"
        )


def refuse_graph(device: torch.device, graph: torch.fx.Graph) -> None:
    """Raises ImportFailure for what a graph of tensors on a GPU does that a trace on the CPU does
    not show."""
    if device.type == "cpu":
        return
    for node in graph.nodes:
        if node.target is torch.amp.autocast_mode._enter_autocast:
            raise ImportFailure(
                f"what is compiled is on {device} and enters torch.autocast, which is followed on "
                "the CPU: keep the model there, or convert it (model.to(torch.bfloat16))"
            )
    for node in pytree.tree_leaves(graph.output_node().args):
        value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
        if isinstance(value, torch.Tensor) and value.device.type != device.type:
            raise ImportFailure(
                f"what is compiled is on {device} and gives '{node}' on {value.device}: move it "
                "there outside of what torch.compile compiles"
            )


def begin_step(
    program: Program,
    device: torch.device,
    arguments: Mapping[int, Any],
    results: Mapping[int, torch.Tensor],
) -> None:
    """One step of tensors on a GPU, as PyTorch's own operations are: it may return before the GPU
    has ended it, and what the current stream is told from now on comes after it."""
    ending = program.begin_step(arguments, results, device.index or 0)
    if ending is not None and torch.cuda.is_initialized():
        ending.order(torch.cuda.current_stream(device).cuda_stream)


def refuse_hosts(device: torch.device, devices: Sequence[Mapping[str, Any]]) -> None:
    """Raises ValueError for a model on a GPU where a program's devices are none."""
    if device.type == "cuda" and all(each["kind"] != "cuda" for each in devices):
        names = ", ".join(each["name"] for each in devices)
        raise ValueError(
            f"the model is on {device}, and the machine has no GPU ({names}): give "
            "machine='cuda:1', or move the model (model.cpu())"
        )


def refuse_checks(device: torch.device) -> None:
    """Raises ValueError: PyTorch's own results on a GPU are rounded by its settings."""
    if device.type != "cpu":
        raise ValueError(
            f"check= compares with eager PyTorch on the CPU, and the model is on {device}: check a "
            "copy of it there (model.cpu()), or leave check= out"
        )


def mend_of(error: Exception, device: torch.device) -> str:
    """What to do about an error of a trace whose stand-ins met tensors of a GPU."""
    if device.type == "cpu" or "cuda" not in str(error):
        return ""
    return (
        "; a step is traced on the CPU: of a GPU may be what the model holds as parameter or "
        "buffer and what the step is called with, and others are made there by device=x.device"
    )


def tell_of_draws(device: torch.device) -> None:
    users.warn(
        f"the step draws random numbers (dropout), and its model is on {device}: they are those "
        "of the CPU's generator, which torch.manual_seed sets, too, and others than PyTorch's on "
        "a GPU"
    )
