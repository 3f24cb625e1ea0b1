# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives, and other functions of functions: vmap, checkpoint, jit."""

from __future__ import annotations

from frameworks.of_jax import names
from frameworks.of_jax.builder import Builder, NotApplicable
from frameworks.of_jax.control import body_size, some_results, tupled
from frameworks.of_jax.table import grow, nests, operation
from frameworks.program import Block, Value, names_of

# What is known of how large a derivative is: nothing, so it is brought into a range first.
_UNKNOWN = float("inf")


def _given(b: Builder, most: int) -> list[Value]:
    """Floats that a function is differentiated by, each of a type that is not weak."""
    found = [b.floats(5) for _ in range(b.choose.randint(1, most))]
    if any(b.root.abstract[value.name].weak_type for value in found):
        raise NotApplicable
    return found


def _kinds(values: list[Value]) -> list[tuple[tuple[int, ...], str, float]]:
    return [(v.shape, v.dtype, v.bound) for v in values]


def _number(inner: Builder) -> Value:
    """A scalar that depends on a float that the function computed."""
    value = inner.tamed(inner.choose.choice(_dependent(inner)), 8)
    forms = ("jnp.sum(jnp.sin({0}))", "jnp.mean({0} * {0})", "jnp.sum({0})", "jnp.sum({0} ** 2)")
    return inner.emit(f"{inner.choose.choice(forms)}.astype(f32)", [value], bound=500)


@operation(4)
@nests
def grad(b: Builder) -> None:
    given = _given(b, 3)
    inner = b.within(_kinds(given))
    grow(inner, body_size(b) + 1)
    body = inner.block([_number(inner)])
    count = len(given)
    by = ", ".join(map(str, range(count)))
    remat = "jax.checkpoint({f0})" if b.choose.random() < 0.3 else "{f0}"
    operands = _listed(count)
    if b.choose.random() < 0.5:
        b.emit_all(
            f"jax.grad({remat}, argnums=({by},))({operands})",
            given,
            blocks=[body],
            form=tupled(count),
            count=count,
        )
    else:
        b.emit_all(
            f"jax.value_and_grad({remat}, argnums=({by},))({operands})",
            given,
            blocks=[body],
            form=f"{{0}}, {tupled(count, 1)}",
            count=count + 1,
        )


@operation(1.5)
@nests
def grad_with_aux(b: Builder) -> None:
    given = _given(b, 1)
    inner = b.within(_kinds(given))
    grow(inner, body_size(b) + 1)
    number = _number(inner)
    (aux,) = some_results(inner, 1)
    body = inner.block([number, aux], "{0}, {1}")
    b.emit_all(
        "jax.value_and_grad({f0}, has_aux=True)({0})",
        given,
        blocks=[body],
        form="({0}, {1}), {2}",
        count=3,
    )


@operation(1.5)
@nests
def vjp(b: Builder) -> None:
    given = _given(b, 2)
    body, result = _function(b, given)
    count = len(given)
    seed = b.choose.choice(("jnp.ones_like(jax.eval_shape({f0}, OPS))", "jnp.cos({f0}(OPS))"))
    seed = seed.replace("OPS", _listed(count))
    b.emit_all(
        f"jax.vjp({{f0}}, {_listed(count)})[1]({seed})",
        given,
        blocks=[body],
        form=tupled(count),
        count=count,
    )


@operation(1.5)
@nests
def jvp(b: Builder) -> None:
    given = _given(b, 1)
    body, _ = _function(b, given)
    forms = ("jax.jvp({f0}, ({0},), (jnp.cos({0}),))", "jax.linearize({f0}, {0})[1]({0}), {0}")
    b.emit_all(b.choose.choice(forms), given, blocks=[body], count=2)


@operation(0.7)
@nests
def hessian(b: Builder) -> None:
    size = b.choose.choice((1, 2, 3))
    value = b.floats(2, shape=(size,), dtype="f32")
    inner = b.within(_kinds([value]))
    grow(inner, body_size(b))
    body = inner.block([_number(inner)])
    forms = (
        "jax.hessian({f0})({0})",
        "jax.jacrev(jax.grad({f0}))({0})",
        "jax.grad(lambda x: jnp.sum(jax.grad({f0})(x) ** 2))({0})",
        "jax.jacfwd(jax.grad({f0}))({0})",
    )
    b.emit(b.choose.choice(forms), [value], blocks=[body], bound=_UNKNOWN)


@operation(2.5)
@nests
def vmap(b: Builder) -> None:
    """Over an axis of its first operand, sometimes of both; values around it are shared."""
    first = b.floats(5, least=1)
    axis = b.choose.randrange(first.rank)
    rest = first.shape[:axis] + first.shape[axis + 1 :]
    kinds = [(rest, first.dtype, first.bound)]
    operands, axes = [first], [str(axis)]
    if b.choose.random() < 0.5:
        second = b.floats(5)
        both = second.rank > 0 and second.shape[0] == first.shape[axis]
        kinds.append((second.shape[1:] if both else second.shape, second.dtype, second.bound))
        operands.append(second)
        axes.append("0" if both else "None")
    inner = b.within(kinds)
    grow(inner, body_size(b))
    out = some_results(inner, 2)
    to = b.choose.choice(("", "", ", out_axes=-1"))
    b.emit_all(
        f"jax.vmap({{f0}}, in_axes=({', '.join(axes)},){to})({_listed(len(operands))})",
        operands,
        blocks=[inner.block(out, tupled(len(out)))],
        form=tupled(len(out)),
        count=len(out),
        bounds=[20.0] * len(out),
    )


@operation(1.5)
@nests
def called(b: Builder) -> None:
    """A function within: checkpointed, compiled, called twice."""
    given = [b.floats(5) for _ in range(b.choose.choice((1, 2)))]
    inner = b.within(_kinds(given))
    grow(inner, body_size(b))
    out = some_results(inner, 2)
    operands = _listed(len(given))
    text = b.choose.choice(("jax.checkpoint({f0})", "jax.jit({f0})", "{f0}"))
    b.emit_all(
        f"{text}({operands})",
        given,
        blocks=[inner.block(out, tupled(len(out)))],
        form=tupled(len(out)),
        count=len(out),
        bounds=[20.0] * len(out),
    )


def _function(b: Builder, given: list[Value]) -> tuple[Block, Value]:
    """A function with one result of floats."""
    inner = b.within(_kinds(given))
    grow(inner, body_size(b) + 1)
    value = inner.tamed(b.choose.choice(_dependent(inner)), 8)
    return inner.block([value]), value


def _dependent(inner: Builder) -> list[Value]:
    """Floats that the function computes of its parameters, the late ones; of others only
    if there are none."""
    known = {parameter.name for parameter in inner.parameters}
    found: list[Value] = []
    for statement in inner.statements:
        if known.intersection(names_of(statement)):
            known.update(target.name for target in statement.targets)
            found += statement.targets
    found = [v for v in found if v.dtype in names.FLOATS]
    found = found or [v for s in inner.statements for v in s.targets if v.dtype in names.FLOATS]
    if not found:
        raise NotApplicable
    return found[-3:]


def _listed(count: int) -> str:
    return ", ".join(f"{{{i}}}" for i in range(count))
