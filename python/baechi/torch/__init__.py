# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch models on several devices. See docs/torch.md."""

import importlib
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
    import torch_mlir as _torch_mlir  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"baechi.torch needs the package '{error.name}': pip install '.[torch]' in a "
        "checkout of Baechi, or install torch 2.12 and torch-mlir 20261001",
        name=error.name,
    ) from error

from baechi.compiling.tools import CompileError
from baechi.importer.common.errors import ImportFailure
from baechi.steps.library_file import StepError
from baechi.torch import backend as _backend
from baechi.torch.backend import CompiledGraph, graphs
from baechi.torch.optimizers import UnsupportedOptimizer
from baechi.torch.training import TrainingStep, compile_step

if TYPE_CHECKING:
    from baechi.torch.mapping import DeviceMap as DeviceMap
    from baechi.torch.mapping import device_map as device_map

__all__ = [
    "CompileError",
    "CompiledGraph",
    "DeviceMap",
    "ImportFailure",
    "StepError",
    "TrainingStep",
    "UnsupportedOptimizer",
    "compile_step",
    "device_map",
    "graphs",
]

# Also an entry point of the installed package: torch.compile finds it without this import.
if "baechi" not in _torch._dynamo.list_backends():
    _torch._dynamo.register_backend(_backend.baechi, name="baechi")


def __getattr__(name: str) -> Any:
    # Needs the extension module of the placement library; the others do not.
    if name in ("DeviceMap", "device_map"):
        return getattr(importlib.import_module("baechi.torch.mapping"), name)
    raise AttributeError(f"module 'baechi.torch' has no attribute '{name}'")
