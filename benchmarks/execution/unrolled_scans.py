# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps with `lax.scan` on two host devices, whole and written out, beside `jax.jit`.

Steps run in turns in one process. Of each: milliseconds of a call (median and least), what was
predicted, and processor seconds of the first call, which compiles.

    python benchmarks/execution/unrolled_scans.py [layers lstm accumulation] [--rounds 9]
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import baechi

WAYS: dict[str, dict[str, Any]] = {
    "host:1": {"machine": "host:1"},
    "host:1, always": {"machine": "host:1", "unroll": "always"},
    "host:2, never": {"machine": "host:2", "unroll": "never"},
    "host:2": {"machine": "host:2"},
    "host:2, any, never": {"machine": "host:2", "splits": "any", "unroll": "never"},
    "host:2, any": {"machine": "host:2", "splits": "any"},
    "host:2, exact": {"machine": "host:2", "splits": "exact"},
}
Problem = tuple[Callable[..., Any], tuple[Any, ...]]


def _drawn(*shape: int) -> jax.Array:
    seed = np.random.default_rng(shape)
    return jnp.asarray(seed.normal(size=shape) * 0.05, jnp.float32)


def _trained(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(p: Any, x: Any, y: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, slopes), value

    return step


def layers(count: int = 4, rows: int = 1024, width: int = 256) -> Problem:
    """A scan over stacked layers of two products and a normalisation."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        def layer(h: Any, w: Any) -> Any:
            mean = h.mean(-1, keepdims=True)
            spread = ((h - mean) ** 2).mean(-1, keepdims=True)
            return h + jax.nn.gelu((h - mean) * jax.lax.rsqrt(spread + 1e-5) @ w[0]) @ w[1], None

        return ((jax.lax.scan(layer, x, p)[0] - y) ** 2).mean()

    weights = _drawn(count, width, 4 * width), _drawn(count, 4 * width, width)
    return _trained(loss), (weights, _drawn(rows, width), _drawn(rows, width))


def lstm(turns: int = 32, rows: int = 64, width: int = 256) -> Problem:
    """A scan over time."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        def cell(carried: Any, x: Any) -> Any:
            h, c = carried
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ p[0], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        first = jnp.zeros((rows, width))
        return ((jax.lax.scan(cell, (first, first), x)[1] @ p[1] - y) ** 2).mean()

    weights = _drawn(2 * width, 4 * width), _drawn(width, width)
    return _trained(loss), (weights, _drawn(turns, rows, width), _drawn(turns, rows, width))


def accumulation(parts: int = 4, rows: int = 512, width: int = 512) -> Problem:
    """Gradients that are added up over parts of the batch."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((jnp.tanh(jnp.tanh(x @ p[0]) @ p[1]) @ p[2] - y) ** 2).mean()

    def step(p: Any, x: Any, y: Any) -> Any:
        def part(sums: Any, given: Any) -> Any:
            value, slopes = jax.value_and_grad(loss)(p, *given)
            return jax.tree.map(jnp.add, sums, slopes), value

        zeros = jax.tree.map(jnp.zeros_like, p)
        given = x.reshape(parts, -1, width), y.reshape(parts, -1, width)
        sums, losses = jax.lax.scan(part, zeros, given)
        return jax.tree.map(lambda a, b: a - 0.02 * b, p, sums), losses.mean()

    weights = tuple(_drawn(width, width + n)[:, :width] for n in range(3))
    return step, (weights, _drawn(rows, width), _drawn(rows, width))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "layers": layers,
    "lstm": lstm,
    "accumulation": accumulation,
}


def _called(step: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    return float(np.asarray(step(*arguments)[1]))


def measure(name: str, rounds: int) -> None:
    step, arguments = PROBLEMS[name]()
    ways: dict[str, Any] = {"jax.jit": jax.jit(step)}
    ways |= {way: baechi.jit(step, replan="never", **given) for way, given in WAYS.items()}
    compiled, seconds = {}, {way: [] for way in ways}
    losses = []
    for way, made in ways.items():
        begun = time.process_time()
        losses.append(_called(made, arguments))
        compiled[way] = time.process_time() - begun
    np.testing.assert_allclose(losses, losses[0], rtol=1e-4)
    for _ in range(rounds):
        for way, made in ways.items():
            begun = time.perf_counter()
            _called(made, arguments)
            seconds[way].append(time.perf_counter() - begun)
    for way, made in ways.items():
        found = way != "jax.jit" and re.search(r"step +predicted ([\d.]+) ms", made.report())
        predicted = f"{float(found[1]):.1f}" if found else ""
        median, least = statistics.median(seconds[way]), min(seconds[way])
        print(
            f"| {name} | {way} | {median * 1e3:.1f} | {least * 1e3:.1f} | {predicted} "
            f"| {compiled[way]:.1f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), help=", ".join(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if unknown := set(given.problems) - set(PROBLEMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(PROBLEMS)}")
    print("| step | way | median ms | least ms | predicted ms | first call, CPU s |")
    print("|---|---|---|---|---|---|")
    for name in given.problems:
        measure(name, given.rounds)


if __name__ == "__main__":
    main()
