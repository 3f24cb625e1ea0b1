# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a block has changed of a buffered array, as NumPy and as blocks compute it: 0 where nothing
has changed, of what is infinite, too."""

from __future__ import annotations

import numpy as np


def change(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(after == before, np.zeros_like(after), after - before)


def change_text(after: str, before: str, into: str, zero: str, kind: str, rank: int) -> str:
    """The same of tensors of floating-point numbers; kind: `tensor<4xf32>`."""
    element = kind.removesuffix(">").rpartition("x")[2].removeprefix("tensor<")
    at = ", ".join(f"d{n}" for n in range(rank))
    maps = ", ".join([f"affine_map<({at}) -> ({at})>"] * 3)
    loops = ", ".join(['"parallel"'] * rank)
    return (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}} "
        f"ins({after}, {before} : {kind}, {kind}) outs({into} : {kind}) {{\n"
        f"    ^bb0(%a: {element}, %b: {element}, %c: {element}):\n"
        f"      %same = arith.cmpf oeq, %a, %b : {element}\n"
        f"      %less = arith.subf %a, %b : {element}\n"
        f"      %change = arith.select %same, {zero}, %less : {element}\n"
        f"      linalg.yield %change : {element}\n"
        f"    }} -> {kind}"
    )
