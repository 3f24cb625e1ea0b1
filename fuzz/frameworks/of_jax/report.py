# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A JAX program that fails, made small, as a script that shows it."""

from __future__ import annotations

import dataclasses

import numpy as np

from frameworks import shrink
from frameworks.of_jax import batch, names
from frameworks.of_jax.generate import Program, generate
from frameworks.program import Block
from frameworks.verdict import Verdict

# Sizes that are tried instead of `builder.EXTENTS`, which has as many.
_SMALL = ((1, 1, 2, 2, 2, 2, 2), (1, 2, 2, 2, 3, 3, 3))


def smallest(program: Program, verdict: Verdict, seed: int, seconds: float = 120) -> Program:
    """Of the same seed, that fails as `program` does."""

    def fails(candidate: Program) -> bool:
        try:
            (found,) = batch.run([candidate], seed)
        except Exception:  # no program any more: JAX refuses it
            return False
        return found.kind == verdict.kind and found.signature == verdict.signature

    for extents in _SMALL:
        small = generate(program.seed, extents)
        if fails(small):
            program = small
            break
    stateless = dataclasses.replace(program, state=0)
    program = stateless if program.state and fails(stateless) else program

    def block_fails(block: Block) -> bool:
        return fails(dataclasses.replace(program, block=block))

    block = shrink.shrink(program.block, block_fails, program.state, seconds)
    program = dataclasses.replace(program, block=block)
    for parameter in program.block.parameters:
        for form in names.SIMPLE:
            simpler = dataclasses.replace(program, forms=(*program.forms, (parameter.name, form)))
            if fails(simpler):
                program = simpler
                break
    return program


def reproduction(program: Program, verdict: Verdict, seed: int) -> str:
    """A script of its own."""
    name, state = program.block.name, program.state
    given = ",\n    ".join(map(_shown, program.expressions()))
    options = ", ".join(f"{key}={value!r}" for key, value in batch.options(seed).items())
    donated = f", donate_argnums={tuple(range(state))}" if state else ""
    return (
        f'"""{verdict.kind}: {verdict.words}"""\n'
        f"{names.PRELUDE}import baechi\n\n\n{program.source}\n\n\n"
        f"arguments = [\n    {given}\n]\n"
        f"for step in (jax.jit({name}), baechi.jit({name}, {options}{donated})):\n"
        f"    given = [np.array(x) for x in arguments]\n"
        f"    for call in range({batch.CALLS}):\n"
        f"        found = step(*given)\n"
        f"        given[:{state}] = found[:{state}]\n"
        f"    print(*found, sep='\\n')\n"
    )


def _shown(expression: str) -> str:
    """A few drawn numbers are easier to read than how they are drawn."""
    value = eval(expression, names.namespace())
    if "draws" not in expression or value.size > 16:
        return expression
    short = names.short(value.dtype)
    plain = value.astype(np.float64) if short in names.FLOATS else value
    return f"np.array({plain.tolist()}, {short}).reshape({value.shape})"
