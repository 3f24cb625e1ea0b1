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


def _jax_names(location) -> tuple[str, ...]:
    if location.is_a_callsite():  # of an inlined function: the caller's scopes come first
        return _jax_names(location.caller) + _jax_names(location.callee)
    if location.is_a_fused():
        named = [_jax_names(part) for part in location.locations]
        return next((names for names in named if names), ())
    if location.is_a_name():
        return (location.name_str,)
    return ()


def source_of(location) -> str:
    """`file:line:column` of the innermost user code of a location."""
    if location.is_a_file():
        return f"{location.filename}:{location.start_line}:{location.start_col}"
    if location.is_a_name():
        return source_of(location.child_loc)
    parts = []
    if location.is_a_callsite():
        parts = [location.callee, location.caller]
    elif location.is_a_fused():
        parts = location.locations
    found = (source_of(part) for part in parts)
    return next((source for source in found if source != "unknown"), "unknown")
