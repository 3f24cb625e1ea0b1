# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies that change what they have read in place: `u = x[i]` and then `u += 1`.

What is read is a value. In NumPy it would be a view, and the array would change with it; so that
the same words do not mean something else without a word, they are refused. Only a body's source
tells: to JAX `u += 1` is `u = u + 1`.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from baechi.loops.accesses import Access
from baechi.loops.errors import LoopError


def check_copies(body: Callable[..., Any], accesses: Sequence[Access], names: list[str]) -> None:
    """accesses: the reads. Raises LoopError."""
    try:
        lines, first = inspect.getsourcelines(body)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # made at run time, or a part of an expression
        return
    file = pathlib.Path(inspect.getsourcefile(body) or "").name
    views = {
        (access.place, _words(access.source)): names[access.array]
        for access in accesses
        if access.is_view
    }
    read: dict[str, tuple[str, str]] = {}  # by name the array, and what was read of it

    def place(of: Any) -> str:
        return f"{file}:{first + of.lineno - 1}: "

    def read_by(value: ast.expr) -> tuple[str, str] | None:
        """What an expression is a view of: a read, another name for one, or a part of it."""
        source = ast.unparse(value)
        if array := views.get((place(value), source)):
            return array, source
        if isinstance(value, ast.Name):
            return read.get(value.id)
        if isinstance(value, ast.NamedExpr):
            return read_by(value.value)
        if isinstance(value, ast.IfExp):
            return read_by(value.body) or read_by(value.orelse)
        if isinstance(value, ast.Subscript):
            return read_by(value.value) if _is_range(value.slice) else None
        if isinstance(value, ast.Attribute):
            return read_by(value.value) if value.attr in ("T", "mT", "real") else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            return read_by(value.func.value) if value.func.attr in _SEEN_OTHERWISE else None
        return None

    for node in _in_order(tree):
        if not isinstance(node, ast.AugAssign):
            for name, value in _bound(node):
                if found := read_by(value):
                    read[name] = found
                else:
                    read.pop(name, None)
        elif isinstance(node.target, ast.Name) and (name := node.target.id) in read:
            array, source = read[name]
            raise LoopError(
                f"{place(node)}'{name}' is changed in place, which was read of '{array}': what is "
                f"read is a value, and '{array}' does not change with it, as it would in NumPy; "
                f"write {source} += ..., or {name} = {name} + ... for a value of its own"
            )


# Methods whose results are views in NumPy.
_SEEN_OTHERWISE = ("reshape", "ravel", "transpose", "swapaxes", "squeeze", "view")


def _is_range(index: ast.expr) -> bool:
    """Whether what it gives of an array is a part, not an element or a copy."""
    of = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(each, ast.Slice) or (isinstance(each, ast.Constant) and each.value is ...)
        for each in of
    )


def _words(source: str) -> str:
    """As Python writes an expression."""
    try:
        return ast.unparse(ast.parse(source, mode="eval"))
    except SyntaxError:
        return source


def _in_order(tree: ast.AST) -> Iterator[Any]:
    """Assignments to names, as they follow."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.AugAssign)
        or (isinstance(node, ast.AnnAssign) and node.value is not None)
    ]
    return iter(sorted(found, key=lambda node: (node.lineno, node.col_offset)))


def _bound(node: Any) -> Iterator[tuple[str, ast.expr]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple | ast.List):
            values = [node.value] * len(target.elts)
            given = node.value
            if isinstance(given, ast.Tuple | ast.List) and len(given.elts) == len(target.elts):
                values = list(given.elts)
            for name, value in zip(target.elts, values, strict=True):
                if isinstance(name, ast.Name):
                    yield name.id, value
