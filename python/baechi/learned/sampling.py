# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Independent uniform choices: what a placer that learns must beat."""

from __future__ import annotations

import numpy as np

from baechi.learned.features import View
from baechi.learned.trials import Trials

_BATCH = 16


def train(view: View, trials: Trials, seed: int) -> None:
    random = np.random.default_rng(seed)
    while trials.left:
        scores = random.random((_BATCH, *view.allowed.shape))
        trials.costs(np.where(view.allowed, scores, -1).argmax(axis=2))
