# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks of a policy that was trained before, on other graphs: nothing is learned here.

The first one begins with the best device alone and takes what is most likely; the others are
sampled, from anywhere and from the best so far with a part of its groups scattered. The best
placement that was evaluated is the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from baechi.graphs import problem
from baechi.learned import policy
from baechi.learned.features import Ints, View
from baechi.learned.layers import Params, gumbel
from baechi.learned.scene import Scene, scene
from baechi.learned.trials import Trials

_BATCH = 16
_SCATTERED = (0.05, 0.15, 0.3)


def trainer(
    graph: problem.Source, machine: problem.Source, file: str | os.PathLike[str] | None
) -> Callable[[View, Trials, int], None]:
    """What stands where others train, with the policy of a file or the package's."""
    params = policy.shipped() if file is None else policy.load(file)

    def walk(view: View, trials: Trials, seed: int) -> None:
        _walk(params, scene(graph, machine, view), view, trials, seed)

    return walk


def _walk(params: Params, scene: Scene, view: View, trials: Trials, seed: int) -> None:
    random = np.random.default_rng(seed)
    see = policy.seen(scene)
    shape = (view.count, _BATCH, view.devices)
    # All of a batch are the same: nothing else is compiled for the one.
    alone = np.tile(_alone(view), (_BATCH, 1))
    ends = np.asarray(policy.walk(params, see, alone, np.zeros(shape, np.float32))[2])
    known = trials.costs(ends[:1])
    best, best_cost = ends[0], known[0]
    while trials.left:
        scores = random.random((_BATCH, *view.allowed.shape))
        starts = np.where(view.allowed, scores, -1).argmax(axis=2).astype(np.int32)
        for k in range(_BATCH // 2, _BATCH):
            kept = random.random(view.count) >= _SCATTERED[k % len(_SCATTERED)]
            starts[k, kept] = best[kept]
        noise = gumbel(random, *shape)
        ends = np.asarray(policy.walk(params, see, starts, noise)[2])
        costs = trials.costs(ends)
        if costs.min(initial=np.inf) < best_cost:
            best, best_cost = ends[costs.argmin()], costs.min()


def _alone(view: View) -> Ints:
    """All on the device that may run most of them; the others on the first that may."""
    device = view.allowed.sum(axis=0).argmax()
    return np.where(view.allowed[:, device], device, view.allowed.argmax(axis=1)).astype(np.int32)
