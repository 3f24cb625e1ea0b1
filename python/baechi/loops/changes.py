# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a block has changed of an array that each block has a copy of, as NumPy and as blocks
compute it: of a buffered one a difference, 0 where nothing has changed, of what is infinite, too;
of one that all set to one number where its bits are others; and minima and maxima."""

from __future__ import annotations

import jax
import numpy as np


def change(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(after == before, np.zeros_like(after), after - before)


def joined(how: str, total: np.ndarray, after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """total, with what a block has done in its copy. how: `Access.joins`."""
    if how != "set":
        return np.minimum(total, after) if how == "min" else np.maximum(total, after)
    bits = f"u{after.dtype.itemsize}"
    return np.where(after.view(bits) != before.view(bits), after, total)


def joined_text(
    how: str, total: str, after: str, before: str, into: str, kind: str, like: jax.ShapeDtypeStruct
) -> str:
    """The same of tensors; kind: `tensor<4xf32>`."""
    element = _element(kind)
    bits, lines = element, []
    if "f" in element:
        bits = "i" + element.rpartition("f")[2]
        lines = [f"%{x}_bits = arith.bitcast %{x} : {element} to {bits}" for x in "ab"]
    a, b = ("%a_bits", "%b_bits") if lines else ("%a", "%b")
    joined = f"arith.{how}{'u' if np.dtype(like.dtype).kind == 'u' else 's'}i %t, %a"
    lines = (
        [f"%joined = {joined} : {element}"]
        if how != "set"
        else [
            *lines,
            f"%is_set = arith.cmpi ne, {a}, {b} : {bits}",
            f"%joined = arith.select %is_set, %a, %t : {element}",
        ]
    )
    lines.append(f"linalg.yield %joined : {element}")
    body = "".join(f"      {line}\n" for line in lines)
    return (
        f"{_generic(4, len(like.shape))} "
        f"ins({total}, {after}, {before} : {kind}, {kind}, {kind}) outs({into} : {kind}) {{\n"
        f"    ^bb0(%t: {element}, %a: {element}, %b: {element}, %c: {element}):\n{body}"
        f"    }} -> {kind}"
    )


def _element(kind: str) -> str:
    return kind.removesuffix(">").rpartition("x")[2].removeprefix("tensor<")


def _generic(operands: int, rank: int) -> str:
    at = ", ".join(f"d{n}" for n in range(rank))
    maps = ", ".join([f"affine_map<({at}) -> ({at})>"] * operands)
    loops = ", ".join(['"parallel"'] * rank)
    return f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}"


def change_text(after: str, before: str, into: str, zero: str, kind: str, rank: int) -> str:
    """The same of tensors of floating-point numbers; kind: `tensor<4xf32>`."""
    element = _element(kind)
    return (
        f"{_generic(3, rank)} ins({after}, {before} : {kind}, {kind}) outs({into} : {kind}) {{\n"
        f"    ^bb0(%a: {element}, %b: {element}, %c: {element}):\n"
        f"      %same = arith.cmpf oeq, %a, %b : {element}\n"
        f"      %less = arith.subf %a, %b : {element}\n"
        f"      %change = arith.select %same, {zero}, %less : {element}\n"
        f"      linalg.yield %change : {element}\n"
        f"    }} -> {kind}"
    )
