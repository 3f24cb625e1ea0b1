# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch keeps for the whole process or thread, and a traced program depends on."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def key() -> tuple:
    """Programs that were traced under other modes do not fit."""
    return (
        autocast_key(),
        torch.get_default_dtype(),
        str(torch.get_default_device()),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
    )


def autocast_key() -> tuple | None:
    """The type that products are computed in; None: each in its own."""
    if not torch.is_autocast_enabled("cpu"):
        return None
    return torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()


def autocast(mode: tuple | None) -> AbstractContextManager:
    """Autocast as it was when `mode` was asked for. What is cast is not kept: casts of
    one tensor are one in the program."""
    if mode is None:
        return torch.autocast("cpu", enabled=False)
    return torch.autocast("cpu", dtype=mode[0], cache_enabled=False)
