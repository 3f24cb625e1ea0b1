# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operation of a JAX step is the first whose values are wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend import core

from baechi.checking import halving
from baechi.checking.compare import Difference, Suspect
from baechi.compiling.tools import CompileError
from baechi.importer.common.errors import ImportFailure
from baechi.importer.jax import jaxprs
from baechi.steps.library_file import StepError

_REFUSALS = (CompileError, ImportFailure, StepError)

# A function of flat arguments with flat results.
Flat = Callable[..., Sequence[Any]]


def first_wrong(
    flat: Flat, leaves: Sequence[Any], judge: Callable[[Flat], Difference | None]
) -> Suspect | None:
    """The equation up to which a step must be computed for `judge` to see a difference,
    while up to the one before there is none. None: there is none in the whole step
    either, once it has no other program around it.
    """
    closed = jaxprs.flatten(jax.make_jaxpr(flat)(*leaves))
    equations = closed.jaxpr.eqns
    cuts = [k for k in range(1, len(equations) + 1) if _can_return(_live(closed.jaxpr, k))]
    found = halving.first_wrong(
        len(equations), cuts, lambda n: judge(_prefix(closed, n)), _REFUSALS
    )
    if found is None:
        return None
    last = equations[found.last]
    name, source = jaxprs.name_of(last), jaxprs.source_of(last)
    return Suspect(name, last.primitive.name, source, found.difference.text, found.others)


def _prefix(closed: core.ClosedJaxpr, count: int) -> Flat:
    """The first so many equations; their results are what the others and the step need."""
    live = _live(closed.jaxpr, count)

    def prefix(*args: Any) -> list[Any]:
        values = jaxprs.evaluate(closed.jaxpr, closed.jaxpr.eqns[:count], closed.consts, args)
        return [values[variable] for variable in live]

    return prefix


def _live(jaxpr: core.Jaxpr, count: int) -> list[core.Var]:
    made = {v: None for eqn in jaxpr.eqns[:count] for v in eqn.outvars}
    later = [v for eqn in jaxpr.eqns[count:] for v in eqn.invars]
    needed = [v for v in (*later, *jaxpr.outvars) if not isinstance(v, core.Literal)]
    return [v for v in dict.fromkeys(needed) if v in made]


def _can_return(variables: Sequence[core.Var]) -> bool:
    """Whether a program may return these: not complex numbers, nor what is no array."""
    kinds = [getattr(v.aval, "dtype", None) for v in variables]
    issubdtype = jax.numpy.issubdtype
    return all(k is not None and not issubdtype(k, jax.numpy.complexfloating) for k in kinds)
