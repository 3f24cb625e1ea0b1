# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placeto with its other scheme of rewards, which costs an evaluation an episode."""

from baechi.learned.placeto import train_by_ends as train

__all__ = ["train"]
