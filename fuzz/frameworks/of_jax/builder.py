# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grows a random JAX program, statement by statement.

A table of operations (`operations.py`) asks the builder for operands of the form that it
needs and emits one statement. JAX itself tells the type of what the statement computes;
how large that can become, the operation says.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax

from frameworks.of_jax import names
from frameworks.program import Block, Statement, Value, render

EXTENTS = (1, 2, 3, 4, 5, 6, 8)
_LARGEST = 160  # elements of a tensor
_LONG = 800  # a dimension, now and then: sums over it show how they are made

# A value whose size is not known is brought into a range by one of these.
_TAMERS = (
    "jnp.tanh({0})",
    "jnp.arctan({0})",
    "{0} / (1 + jnp.abs({0}))",
    "jnp.clip({0}, -2.5, 2.5)",
)


# A value's name in the text of a statement.
_NAME = re.compile(r"\b[avp]\d+\b")


class NotApplicable(Exception):
    """The operation that was drawn finds no operands, or JAX refuses what it made."""


class Root:
    """What all functions of one program share."""

    def __init__(self, seed: int, extents: Sequence[int] = EXTENTS):
        self.choose = random.Random(seed)
        self.extents = extents
        self.dtypes = self._palette()
        self.abstract: dict[str, Any] = {}  # the type of every value, by its name
        self.arguments: list[Value] = []
        self.count = 0

    def _palette(self) -> list[str]:
        """Most programs are of single precision, where small errors are seen."""
        found = ["f32"] * 6 + ["i32"] * 2 + ["bool"]
        if self.choose.random() < 0.2:
            found += [self.choose.choice(("bf16", "f16"))] * 3
        if self.choose.random() < 0.3:
            found += self.choose.sample(("i8", "u8", "i16", "u32"), 2)
        return found

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"


class Builder:
    """The statements of one function; its scope has what functions around it computed."""

    def __init__(self, root: Root, scope: Sequence[Value] = (), depth: int = 0):
        self.root, self.depth = root, depth
        self.choose = root.choose
        self.scope = list(scope)
        self.statements: list[Statement] = []

    # ---- operands

    def pick(self, accepts: Callable[[Value], bool] = lambda _: True) -> Value:
        """A value of the scope; late ones more often than early ones."""
        found = [value for value in self.scope if accepts(value)]
        if not found:
            raise NotApplicable
        recent = found[-4:] if self.choose.random() < (0.8 if self.depth else 0.6) else found
        return self.choose.choice(recent)

    def floats(self, limit: float = 30.0, **wanted: Any) -> Value:
        """A tensor of floats whose elements are at most `limit`; `rank`, `least` (rank),
        `shape`, `dtype` may be wanted."""
        wanted.setdefault("dtype", None)
        try:
            value = self.pick(lambda v: v.dtype in names.FLOATS and _fits(v, **wanted))
        except NotApplicable:
            value = self.argument(self.shape(**wanted), wanted["dtype"] or "f32")
        return self.tamed(value, limit)

    def tamed(self, value: Value, limit: float) -> Value:
        if value.bound <= limit:
            return value
        if math.isfinite(value.bound) and self.choose.random() < 0.4:
            scale = float(f"{limit / value.bound:.1g}") / 2
            return self.emit(f"{{0}} * {scale!r}", [value], bound=limit)
        text = self.choose.choice(_TAMERS)
        return self.emit(text, [value], bound=min(limit, 2.5))

    def integer(self, **wanted: Any) -> Value:
        try:
            return self.pick(lambda v: v.dtype in names.INTEGERS and _fits(v, **wanted))
        except NotApplicable:
            return self.argument(self.shape(**wanted), wanted.get("dtype") or "i32")

    def mask(self, shape: tuple[int, ...]) -> Value:
        """Booleans of a shape, from what rounding does not decide."""
        found = [v for v in self.scope if v.dtype == "bool" and v.shape == shape]
        if found and self.choose.random() < 0.5:
            return self.choose.choice(found)
        if self.choose.random() < 0.5:
            of = self.argument(shape, "f32")
            return self.emit(f"{{0}} > {self.constant()}", [of])
        of = self.integer(shape=shape)
        return self.emit(self.choose.choice(("{0} % 2 == 0", "{0} > 1", "({0} & 2) != 0")), [of])

    def index(self) -> str:
        """A scalar of i32 as text: small, sometimes negative or beyond the end."""
        whole = [v for v in self.scope if v.kind == ((), "i32")]
        if whole and self.choose.random() < 0.7:
            return self.choose.choice(whole).name
        return repr(self.choose.choice((0, 0, 1, 1, 2, 3, -1, 7)))

    def constant(self) -> str:
        return repr(self.choose.choice((0.5, -0.5, 0.25, 1.5, -0.75, 0.1, 2.0, -1.25)))

    def shape(
        self,
        shape: tuple[int, ...] | None = None,
        rank: int | None = None,
        least: int = 0,
        **_: Any,
    ) -> tuple[int, ...]:
        if shape is not None:
            return shape
        rank = max(least, self.choose.choice((0, 1, 1, 2, 2, 2, 3))) if rank is None else rank
        found = [self.choose.choice(self.root.extents) for _ in range(rank)]
        while math.prod(found) > _LARGEST:
            found[found.index(max(found))] //= 2
        if found and self.choose.random() < 0.04:
            found[self.choose.randrange(len(found))] = _LONG
        return tuple(found)

    def argument(self, shape: tuple[int, ...], dtype: str) -> Value:
        """A value of this type that the caller of the program gives: one of those there
        are, or another one."""
        known = [a for a in self.root.arguments if a.kind == (shape, dtype)]
        if known and self.choose.random() < 0.5:
            return self.choose.choice(known)
        name = self.root.name("a")
        value = Value(name, shape, dtype, bound=2.0)
        self.root.arguments.append(value)
        self.root.abstract[name] = names.abstract(shape, dtype)
        return value

    # ---- statements

    def emit(self, text: str, operands: Sequence[Value] = (), **options: Any) -> Value:
        """One statement with one result."""
        (value,) = self.emit_all(text, operands, **options)
        return value

    def emit_all(
        self,
        text: str,
        operands: Sequence[Value] = (),
        blocks: Sequence[Block] = (),
        form: str = "",
        count: int = 1,
        bound: float = float("inf"),
        bounds: Sequence[float] | None = None,
    ) -> list[Value]:
        """One statement with `count` results, of the types that JAX gives them."""
        targets = [self.root.name("v") for _ in range(count)]
        untyped = tuple(Value(name, (), "f32") for name in targets)
        given = [operand.name for operand in operands]
        text = _NAME.sub(lambda found: _operand(found[0], given), text)
        statement = Statement(untyped, text, tuple(given), tuple(blocks), form)
        found = self._types(statement)
        bounds = [bound] * count if bounds is None else bounds
        values = []
        for name, kind, limit in zip(targets, found, bounds, strict=True):
            shape, dtype = tuple(kind.shape), names.short(kind.dtype)
            if math.prod(shape) > 4 * _LARGEST:
                raise NotApplicable
            self.root.abstract[name] = jax.ShapeDtypeStruct(
                shape, kind.dtype, weak_type=getattr(kind, "weak_type", False)
            )
            values.append(Value(name, shape, dtype, _floor(limit, dtype)))
        self.statements.append(Statement(tuple(values), text, tuple(given), tuple(blocks), form))
        self.scope += values
        return values

    def _types(self, statement: Statement) -> Sequence[Any]:
        """What JAX makes of it, from the types of all that it can see."""
        known = {v.name: self.root.abstract[v.name] for v in (*self.scope, *self.root.arguments)}
        results = tuple(target.name for target in statement.targets)
        whole = Block("f", (), (statement,), results, form="({0},)" if len(results) == 1 else "")
        code = render(whole).splitlines()
        code[0] = f"def f({', '.join(known)}):"
        scope = names.namespace()
        try:
            exec("\n".join(code), scope)
            return jax.eval_shape(scope["f"], **known)
        except (TypeError, ValueError, IndexError, ArithmeticError, NotImplementedError) as error:
            refused(statement.text, error)
            raise NotApplicable from error

    def within(self, parameters: Sequence[tuple[tuple[int, ...], str, float]]) -> Builder:
        """A builder of a function, whose first values are its parameters."""
        inner = Builder(self.root, self.scope, self.depth + 1)
        inner.parameters = []
        for shape, dtype, bound in parameters:
            value = Value(self.root.name("p"), shape, dtype, bound)
            self.root.abstract[value.name] = names.abstract(shape, dtype)
            inner.scope.append(value)
            inner.parameters.append(value)
        return inner

    parameters: list[Value] = []

    def block(
        self, results: Sequence[Value], form: str = "", head: str = "", opening: str = ""
    ) -> Block:
        """The function with these results."""
        given = tuple(value.name for value in results)
        statements = tuple(self.statements)
        name = self.root.name("g")
        return Block(name, tuple(self.parameters), statements, given, form, head, opening)

    def as_kind(self, value: Value, shape: tuple[int, ...], dtype: str, bound: float) -> Value:
        """A value of exactly this type that depends on `value`."""
        if dtype in names.FLOATS and value.dtype in names.FLOATS:
            value = self.tamed(value, bound)
        if value.kind == (shape, dtype) and not self.root.abstract[value.name].weak_type:
            return value
        if value.dtype != dtype or self.root.abstract[value.name].weak_type:
            value = self.cast(value, dtype)
        if value.shape == shape:
            return value
        if math.prod(value.shape) == math.prod(shape):
            return self.emit(f"{{0}}.reshape({shape})", [value], bound=value.bound)
        if math.prod(value.shape) == 0:
            raise NotApplicable
        return self.emit(f"jnp.resize({{0}}, {shape})", [value], bound=value.bound)

    def cast(self, value: Value, dtype: str) -> Value:
        """A conversion whose result no rounding decides, and that fits."""
        if dtype == "bool":
            return self.emit("{0} > 0.3" if value.dtype in names.FLOATS else "{0} > 1", [value])
        text = f"{{0}}.astype({dtype})"
        if value.dtype in names.FLOATS and dtype in names.INTEGERS:
            value = self.tamed(value, 12.0)
            text = f"jnp.floor(jnp.abs({{0}}) * 3 + 0.37).astype({dtype})"
        elif value.dtype in names.INTEGERS and dtype in names.FLOATS:
            text = f"({{0}} % 7).astype({dtype})"
        return self.emit(text, [value], bound=min(value.bound, 7.0))


def _fits(
    value: Value,
    shape: tuple[int, ...] | None = None,
    rank: int | None = None,
    least: int = 0,
    dtype: str | None = None,
) -> bool:
    """Whether a value is of a wanted form, and has elements."""
    return (
        math.prod(value.shape) > 0
        and (shape is None or value.shape == shape)
        and (rank is None or value.rank == rank)
        and value.rank >= least
        and (dtype is None or value.dtype == dtype)
    )


def _operand(name: str, given: list[str]) -> str:
    """A name that an operation wrote into its text becomes an operand."""
    if name not in given:
        given.append(name)
    return f"{{{given.index(name)}}}"


def _floor(bound: float, dtype: str) -> float:
    """Integers have no bound that matters: they wrap."""
    return bound if dtype in names.FLOATS else 1.0


# How often JAX refused which operation: one that it always refuses is a mistake in the table.
REFUSED: dict[str, str] = {}


def refused(text: str, error: Exception) -> None:
    REFUSED[text] = str(error)
