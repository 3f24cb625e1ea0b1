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

    for node in _in_order(tree):
        if isinstance(node, ast.Assign):
            for name, value in _bound(node):
                source = ast.unparse(value)
                if array := views.get((place(value), source)):
                    read[name] = array, source
                else:
                    read.pop(name, None)
        elif (name := node.target.id) in read:
            array, source = read[name]
            raise LoopError(
                f"{place(node)}'{name}' is changed in place, which was read of '{array}': what is "
                f"read is a value, and '{array}' does not change with it, as it would in NumPy; "
                f"write {source} += ..., or {name} = {name} + ... for a value of its own"
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
        if isinstance(node, ast.Assign)
        or (isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name))
    ]
    return iter(sorted(found, key=lambda node: (node.lineno, node.col_offset)))


def _bound(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple):
            values = [node.value] * len(target.elts)
            if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts):
                values = list(node.value.elts)
            for name, value in zip(target.elts, values, strict=True):
                if isinstance(name, ast.Name):
                    yield name.id, value
