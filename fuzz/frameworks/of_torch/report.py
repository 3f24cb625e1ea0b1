# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A PyTorch program that fails, made small, as a script that shows it."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Iterator

from frameworks.of_torch import batch, tools
from frameworks.of_torch.generate import Program
from frameworks.verdict import Verdict


def smallest(program: Program, verdict: Verdict, seed: int, seconds: float = 180) -> Program:
    """With fewer idioms, layers and steps, that fails as `program` does."""
    end = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for smaller in candidates(program):
            if time.monotonic() > end:
                return program
            (found,) = batch.run([smaller], seed)
            if found.kind == verdict.kind and found.signature == verdict.signature:
                program, changed = smaller, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    for i in range(len(program.idioms)):
        rest = program.idioms[:i] + program.idioms[i + 1 :]
        yield dataclasses.replace(program, idioms=rest)
    if program.loss != "mse":
        yield dataclasses.replace(program, loss="mse")
    if not program.optimizer.startswith("SGD(PARAMS, lr=0.1)"):
        yield dataclasses.replace(program, optimizer="SGD(PARAMS, lr=0.1)")
    made = program.layers
    for i, layer in enumerate(made):
        before = made[i - 1].shape if i else program.given[1]
        form = made[i - 1].form if i else program.given[0]
        if len(made) > 1 and (i == len(made) - 1 or (layer.shape, layer.form) == (before, form)):
            yield dataclasses.replace(program, layers=made[:i] + made[i + 1 :])
    if len(made) > 1:
        given = (made[0].form, made[0].shape)
        yield dataclasses.replace(program, layers=made[1:], given=given)
    for steps in range(1, program.steps):
        yield dataclasses.replace(program, steps=steps)


def reproduction(program: Program, verdict: Verdict, seed: int) -> str:
    """A script of its own."""
    machine = batch.machine(program.seed)
    return (
        f'"""{verdict.kind}: {verdict.words}"""\n'
        f"from __future__ import annotations\n\nimport copy\nfrom typing import Any\n\n"
        f"import torch\nfrom torch import nn\n\nimport baechi.torch\n\nF = nn.functional\n"
        f"OPTIONS = {tools.OPTIONS}\n\n\n{program.source}\n\n\n"
        f"{inspect.getsource(tools.Eager)}\n\n{inspect.getsource(tools.Ours)}\n\n"
        f"for tools in (Eager(), Ours({machine!r})):\n"
        f"    train(tools)\n"
        f"    print(*tools.noted, sep='\\n')\n"
    )
