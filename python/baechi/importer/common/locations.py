# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of operations, from the scopes that JAX leaves in their locations.

JAX names an operation by its scopes and transformations, for example
`jit(step)/transpose(jvp(decoder))/l0/dot_general`. Here this becomes the name
`backward/decoder/l0/dot_general`: what belongs to the forward operation
`decoder/l0/…` is told by the first component. Source files are left out of the
module, so that a module does not depend on where it was made.
"""

from __future__ import annotations

import functools
import re

from jaxlib.mlir import ir

BACKWARD = "backward"

_TRANSFORMATION = re.compile(r"(\w+)\((.*)\)")
_STRUCTURE = {"jit", "pjit", "closed_call", "core_call", "main"}


def _components(path: str) -> list[str]:
    """Splits at the slashes that no parenthesis encloses."""
    parts, depth = [""], 0
    for char in path:
        depth += (char == "(") - (char == ")")
        if char == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _scopes(path: str) -> tuple[list[str], bool]:
    """The plain scopes of a JAX name, and whether it is transposed."""
    scopes, backward = [], False
    for part in _components(path):
        call = _TRANSFORMATION.fullmatch(part)
        if call and call[1] in ("jit", "pjit"):
            continue
        if call:
            inner, transposed = _scopes(call[2])
            scopes += inner
            backward |= transposed or call[1] == "transpose"
        elif part.rstrip(":") and part.rstrip(":") not in _STRUCTURE:
            scopes.append(part.rstrip(":"))
    return scopes, backward


@functools.cache
def clean_name(paths: tuple[str, ...]) -> str:
    """The name of an operation whose JAX names, outermost call first, are
    `paths`; empty when they hold no scope."""
    scopes, backward = [], False
    for path in paths:
        inner, transposed = _scopes(path)
        scopes += inner
        backward |= transposed
    return "/".join([BACKWARD] * backward + scopes)


def name_of(location) -> str:
    """The clean name of an MLIR location that JAX made."""
    return clean_name(_jax_names(location))


def given_name(location) -> str:
    """The innermost name of a location, as it was given; empty when there is none."""
    return next(reversed(_jax_names(location)), "")


# How bindings before those of jaxlib 0.10, which have a class for each kind, are asked.
_QUESTIONS = {
    "CallSiteLoc": "is_a_callsite",
    "FileLineColLoc": "is_a_file",
    "FusedLoc": "is_a_fused",
    "NameLoc": "is_a_name",
}


def _as(kind: str, location):
    """The location, with the attributes of a kind; None where it is of another."""
    if (asked := getattr(location, _QUESTIONS[kind], None)) is not None:
        return location if asked() else None
    if type(location) is not ir.Location:
        return location if type(location).__name__ == kind else None
    try:  # of diagnostics, which have the class of all kinds
        return getattr(ir, kind)(location)
    except ValueError:
        return None


def _jax_names(location) -> tuple[str, ...]:
    if call := _as("CallSiteLoc", location):  # of an inlined function: the caller's scopes first
        return _jax_names(call.caller) + _jax_names(call.callee)
    if fused := _as("FusedLoc", location):
        found = [_jax_names(part) for part in fused.locations]
        return next((names for names in found if names), ())
    named = _as("NameLoc", location)
    return (named.name_str,) if named else ()


def source_of(location) -> str:
    """`file:line:column` of the innermost user code of a location."""
    if file := _as("FileLineColLoc", location):
        return f"{file.filename}:{file.start_line}:{file.start_col}"
    if named := _as("NameLoc", location):
        return source_of(named.child_loc)
    parts = []
    if call := _as("CallSiteLoc", location):
        parts = [call.callee, call.caller]
    elif fused := _as("FusedLoc", location):
        parts = fused.locations
    found = (source_of(part) for part in parts)
    return next((source for source in found if source != "unknown"), "unknown")
