# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a linalg.generic is written."""

from __future__ import annotations

from collections.abc import Callable

from lowerings.program import Printer, Value


def dims(count: int) -> str:
    return ", ".join(f"d{i}" for i in range(count))


def generic(
    p: Printer,
    inputs: list[Value],
    result: Value,
    maps: list[str],
    kinds: list[str],
    body: Callable[[list[str]], list[str]],
    init: str | None = None,
) -> None:
    """A linalg.generic of some inputs and one result; `body` gives its lines and the yield."""
    target = init or p.empty(result)
    names = [f"%a{i}" for i in range(len(inputs))]
    lines = body(names)
    head = ", ".join(f'"{kind}"' for kind in kinds)
    loops = dims(len(kinds))
    read = ", ".join(f"affine_map<({loops}) -> ({each})>" for each in maps)
    taken = ""
    if inputs:
        given = ", ".join(map(p.name, inputs))
        taken = f"ins({given} : {', '.join(v.type for v in inputs)}) "
    p.line(
        f"{p.name(result)} = linalg.generic {{indexing_maps = "
        f"[{read}], iterator_types = [{head}]}} "
        f"{taken}outs({target} : {result.type}) {{"
    )
    blocks = [f"{n}: {v.dtype}" for n, v in zip(names, inputs, strict=True)]
    p.line(f"^bb0({', '.join([*blocks, f'%o: {result.dtype}'])}):")
    for line in lines[:-1]:
        p.line(line)
    p.line(f"linalg.yield {lines[-1]} : {result.dtype}")
    p.line(f"}} -> {result.type}")
