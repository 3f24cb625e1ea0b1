# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of loops' bodies, with the user's line and what to write instead."""

from __future__ import annotations

import functools
import linecache
import pathlib
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

import jax

from baechi.importer.common.errors import UnsupportedOperations

# Where files lie that are not the user's.
_OTHERS = [
    pathlib.Path(__file__).resolve().parents[1],
    *(pathlib.Path(sysconfig.get_path(kind)).resolve() for kind in ("stdlib", "purelib")),
    pathlib.Path(jax.__file__).resolve().parent,
]


class LoopError(ValueError):
    """A loop that is not well formed, or that may not run as it was asked to; the text names
    the place and the mend."""


@functools.cache
def _is_users(name: str) -> bool:
    file = pathlib.Path(name).resolve()
    return not any(file.is_relative_to(folder) for folder in _OTHERS)


def _user_frame(frame: Any) -> Any:
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def place() -> str:
    """ "mf.py:12: ", the user's line that is being traced."""
    frame = _user_frame(sys._getframe(1))
    if frame is None:
        return ""
    return f"{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno}: "


def source() -> str:
    """The expression of the user's that is being traced, of one line."""
    frame = _user_frame(sys._getframe(1))
    if frame is None:
        return ""
    at = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, last, first, end = at
    if None in at or line != last:
        return ""
    text = linecache.getline(frame.f_code.co_filename, line).encode()
    return text[first:end].decode().strip()


def defined_at(body: Any) -> str:
    """Where a function begins."""
    code = getattr(body, "__code__", None)
    return f"{pathlib.Path(code.co_filename).name}:{code.co_firstlineno}: " if code else ""


def place_of(error: BaseException) -> str:
    """The innermost line of the user's that an error came through."""
    found, at = "", error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if _is_users(file):
            found = f"{pathlib.Path(file).name}:{at.tb_lineno}: "
        at = at.tb_next
    return found


# Operations that are seen outside.
_CALLBACKS = ("debug_print", "debug_callback", "pure_callback", "io_callback")


def without_code(error: UnsupportedOperations) -> str:
    """What of a body has no code within blocks, each with its place and the mend."""
    told = []
    for each in error.operations:
        file, _, line = each.source.rpartition(":")[0].rpartition(":")
        name = each.scope.rpartition("/")[2]
        mend = (
            "look at what the loop gives instead"
            if name in _CALLBACKS
            else "compute it outside of the loop, or by what has code (docs/loops.md)"
        )
        where = f"{pathlib.Path(file).name}:{line}: " if line else ""
        told.append(
            f"{where}'{name}' has no code within blocks, in which nothing is called: {mend}"
        )
    return "; ".join(told)


def explained(error: Exception) -> Exception:
    """Of what went wrong while a body was traced: what to raise in its place."""
    if isinstance(error, LoopError):
        return error
    for kinds, words, said in _EXPLAINED:
        if isinstance(error, kinds) and any(word in str(error) for word in words):
            return LoopError(f"{place_of(error)}{said} ({str(error).splitlines()[0]})")
    if isinstance(error, TypeError | ValueError | IndexError | AttributeError):
        return LoopError(f"{place_of(error)}{type(error).__name__}: {error}")
    return error


def _table() -> Iterator[tuple[Any, tuple[str, ...], str]]:
    """Kinds of errors, words of which one is in theirs, and what they come from."""
    errors = jax.errors
    yield (
        OverflowError,
        ("",),
        "a number is beyond the 32 bits that JAX computes with: call "
        "jax.config.update('jax_enable_x64', True) before",
    )
    yield (
        errors.TracerBoolConversionError,
        ("",),
        "the body branches on a value that is known when it runs: use jnp.where or jax.lax.cond",
    )
    yield (
        (TypeError, errors.TracerIntegerConversionError),
        ("__index__()", "cannot be interpreted as an integer"),
        "a value that is known when the loop runs is used as a number of Python's, as range and "
        "lists take it: count to a number that is known before, or give the list as an array",
    )
    yield (
        ValueError,
        ("values to unpack",),
        "keys, a value or a result is taken apart into another number of parts than it has",
    )
    # Of math's functions, float() and int().
    yield (
        errors.ConcretizationTypeError,
        ("",),
        "a value that is known when the loop runs is made a number of Python's: use jnp, not np "
        "or math, and x.astype(dtype) for float(x) and int(x)",
    )
    yield (
        TypeError,
        ("immutable", "does not support item assignment"),
        "what was read of an array is a value, which cannot be changed in place: write to the "
        "array, x[i, k] = v for x[i][k] = v",
    )
    yield (
        (TypeError, ValueError, errors.TracerArrayConversionError),
        ("__jax_array__", "__array__", "ufunc", "not a valid JAX array type", "Cannot interpret"),
        "a key, an array or a traced value is given to a function that cannot take it: give "
        "functions of jnp a key's value (i.value) and an array's elements (x[...]), use jnp, not "
        "np, and give arrays that keys index to the loop",
    )


_EXPLAINED = tuple(_table())
