# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of `baechi.jit` beside the same step of `jax.jit`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from baechi.checking.compare import Difference, first_difference
from baechi.checking.options import CheckError, CheckOptions, is_floating
from baechi.jax import random_keys, short_types
from baechi.jax.bisect import Flat, first_wrong

# Runs a function of flat arguments as the checked step is run, and gives its flat results.
Runner = Callable[[Flat, Sequence[Any]], Sequence[Any]]

_DRAWS = 2
_SHORT_DRAWS = 4  # of one number, two may show little by chance


@dataclasses.dataclass
class JaxCheck:
    """What `jax.jit` computes for a call, made before the step changes what was donated.

    flat: the step with flat arguments and results.
    """

    flat: Flat
    leaves: list[Any]
    options: CheckOptions

    def __post_init__(self) -> None:
        # Residents are arrays from here on: the step takes their places.
        self.leaves = [
            jax.numpy.asarray(leaf) if hasattr(leaf, "__jax_array__") else leaf
            for leaf in self.leaves
        ]
        self._reference = run_jax(self.flat, self.leaves)

    def compare(self, results: Sequence[Any], names: Sequence[str], run: Runner) -> None:
        """Raises CheckError where a step's flat results differ from `jax.jit`'s; names: of
        the results; run: what finds the operator."""
        found = self._difference(self.flat, self.leaves, as_arrays(results), self._reference)
        if found is None:
            return
        suspect = first_wrong(self.flat, self.leaves, self._judge(run))
        name = names[found.index]
        message = f"the result '{name}' is not jax.jit's: {found.text}"
        if suspect is None:
            message += "\nno operation is to blame: cut into parts, the step gives jax.jit's values"
            raise CheckError(message, name, found.error, found.allowed)
        message += f"\n{suspect}"
        operator, source = suspect.operator, suspect.source
        raise CheckError(message, name, found.error, found.allowed, operator, source)

    def _judge(self, run: Runner) -> Callable[[Flat], Difference | None]:
        def judge(part: Flat) -> Difference | None:
            ours = as_arrays(run(part, self.leaves))
            return self._difference(part, self.leaves, ours, run_jax(part, self.leaves))

        return judge

    def _difference(
        self,
        function: Flat,
        leaves: list[Any],
        ours: list[np.ndarray],
        theirs: list[np.ndarray],
    ) -> Difference | None:
        def disturbed() -> list[list[np.ndarray]]:
            return [run_jax(function, _disturb(leaves, seed)) for seed in range(_DRAWS)]

        def shortened() -> list[list[np.ndarray]]:
            closed = jax.make_jaxpr(function)(*leaves)
            if not short_types.computes_short(closed.jaxpr):
                return []
            draws = [short_types.changed(closed, seed) for seed in range(_SHORT_DRAWS)]
            return [run_jax(draw, leaves) for draw in draws]

        return first_difference(ours, theirs, self.options, "jax.jit", disturbed, shortened)


def run_jax(function: Flat, leaves: Sequence[Any]) -> list[np.ndarray]:
    return as_arrays(jax.jit(function)(*leaves))


def as_arrays(values: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(random_keys.data_of(value)) for value in values]


def _disturb(leaves: Sequence[Any], seed: int) -> list[Any]:
    """Every floating-point element changed by one part of its precision, or not at all; those
    of short types are what they are, as what is made of them is rounded by itself."""
    draws = np.random.default_rng(seed)

    def changed(leaf: Any) -> Any:
        value = np.asarray(leaf)
        if not is_floating(value.dtype) or short_types.is_short(value.dtype):
            return leaf
        array = jax.numpy.asarray(leaf)  # keeps a weak type
        sign = draws.integers(-1, 2, value.shape)
        factor = 1 + sign * float(np.spacing(np.ones((), array.dtype)))
        return (array * jax.numpy.asarray(factor, array.dtype)).astype(array.dtype)

    return [changed(leaf) for leaf in leaves]
