# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of the collection, written for two replicas, on two devices of JAX's and on ours; as a
program, for tests:

    python written_models.py MODEL...

prints for each the largest difference, as a part of a result's largest element.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

import baechi
from baechi import models
from written_steps import abstract_mesh, auto

_STATE = 2  # arguments before the batch: parameters and the optimizer's state


def difference(name: str) -> float:
    module = models.load(name)
    config = module.PRESETS["tiny"]
    step, inits, donated = module.training_step(config)
    args = jax.tree.map(lambda leaf: leaf.value(), inits, is_leaf=lambda x: hasattr(x, "value"))
    random = np.random.default_rng(0)

    def dim_of(leaf: Any) -> int:
        return list(leaf.shape).index(config.batch)

    def doubled(leaf: Any) -> Any:
        second = random.permutation(leaf.ravel()).reshape(leaf.shape)
        return np.concatenate([leaf, second], dim_of(leaf))

    def spec(leaf: Any) -> Any:
        return P(*[None] * dim_of(leaf), "batch")

    given = (*args[:_STATE], *(jax.tree.map(doubled, each) for each in args[_STATE:]))
    specs = (*[P()] * _STATE, *(jax.tree.map(spec, each) for each in args[_STATE:]))

    def replica(*args: Any) -> Any:
        result = step(*args)  # gradients of shared parameters are those of all replicas
        return result._replace(loss=lax.pmean(result.loss, "batch"))

    axes = {"batch": 2}

    def mapped(mesh: Any) -> Any:
        return jax.shard_map(replica, mesh=mesh, in_specs=specs, out_specs=P())

    expected = jax.jit(mapped(jax.make_mesh((2,), ("batch",), axis_types=auto(axes))))(*given)
    ours = baechi.jit(
        mapped(abstract_mesh(axes)),
        machine="host:2",
        donate_argnums=donated,
        costs="roofline",
        budget="0",
    )
    pairs = zip(jax.tree.leaves(ours(*given)), jax.tree.leaves(expected), strict=True)
    return max(
        float(np.abs(np.asarray(a) - b).max() / max(np.abs(b).max(), 1e-30))
        for a, b in ((a, np.asarray(b)) for a, b in pairs)
    )


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    for each in sys.argv[1:]:
        print(each, difference(each))
