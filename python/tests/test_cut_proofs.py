# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is cut to fit and said to have the whole step's bits by its code has them, over many
steps and for random programs of elementwise chains, sums and products."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402

QUICK = {"costs": "roofline", "budget": "0", "verbose": False}
PROVEN = "each sum adds the same terms in the same order"
COMPARED = "had the bits of two whole ones"
ELEMENTWISE = [
    lambda x, y: x * y + x,
    lambda x, y: jnp.tanh(x) * 0.5 + y * y,
    lambda x, y: x - 0.1 * y * x,
    lambda x, y: jnp.exp(-x * x) + jnp.tanh(y),
    lambda x, y: jax.nn.relu(x) * y - y,
]
SUMS = [
    lambda x: (x * x).sum(-1, keepdims=True) * 0.01,
    lambda x: x.mean(-1, keepdims=True),
    lambda x: jax.nn.softmax(x),
    lambda x: (x - x.mean(-1, keepdims=True)) / (1 + x.var(-1, keepdims=True)),
]


def random_program(seed):
    """A step of a few layers, its parameters and its batch."""
    random = np.random.default_rng(seed)
    rows = int(random.choice([64, 96, 160]))
    width = int(random.choice([48, 64, 80]))

    def drawn(*shape):
        return (random.standard_normal(shape) / 4).astype(np.float32)

    layers, params = [], {}
    for number in range(int(random.integers(2, 5))):
        wide = int(random.choice([64, 512, 768]))
        params[f"w{number}"] = drawn(width, wide)
        params[f"v{number}"] = drawn(wide, width)
        layers.append(
            (
                number,
                [int(each) for each in random.integers(0, len(ELEMENTWISE), 3)],
                int(random.integers(0, len(SUMS))),
            )
        )
    trains = bool(random.integers(0, 2))

    def model(p, x):
        for number, chain, kind in layers:
            y = x @ p[f"w{number}"]
            for each in chain:
                y = ELEMENTWISE[each](y, y * 0.5 + 0.1)
            y = (y + SUMS[kind](y)) @ p[f"v{number}"]
            x = x + jnp.tanh(y) * 0.1
        return x

    def step(p, x):
        if not trains:
            return jax.tree.map(lambda a: a * 0.999, p), model(p, x)

        def loss(p):
            return (model(p, x) ** 2).mean(-1).sum()

        value, gradient = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, gradient), value

    return step, params, drawn(rows, width)


def steps(step, params, x, machine, count, **options):
    """The results of all of these steps."""
    compiled = baechi.jit(step, donate_argnums=0, machine=machine, **{**QUICK, **options})
    results = []
    for _ in range(count):
        params, value = compiled(params, x)
        results.append([np.asarray(leaf) for leaf in jax.tree.leaves((params, value))])
    return compiled, results


def below_one_operator(step, params, x):
    """Three quarters of what the operator that needs most needs by itself."""
    with pytest.raises(baechi.CompileError) as error:
        steps(step, params, x, "host:1@4KiB+pool:64MiB", 1, fit_memory="whole")
    number, unit = re.search(r"by itself needs ([\d.]+) (\w+)", str(error.value)).groups()
    return int(float(number) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit]) * 3 // 4 // 64 * 64


def assert_same(mine, theirs):
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        for a, b in zip(one, other, strict=True):
            assert a.tobytes() == b.tobytes(), f"step {number}"


@pytest.mark.parametrize("seed", (0, 1, 2, 3, 10, 11))
def test_random_programs_in_pieces_have_the_whole_bits(seed):
    step, params, x = random_program(seed)
    _, whole = steps(step, params, x, "host:1", 8)
    machine = f"host:1@{below_one_operator(step, params, x)}+pool:64MiB"
    compiled, cut = steps(step, params, x, machine, 8)
    report = compiled.report()
    assert (PROVEN in report) != (COMPARED in report)
    assert_same(cut, whole)


@pytest.mark.parametrize("memory", (26496, 19840))
def test_a_sum_in_rows_has_the_order_of_one_beside_them(memory):
    """Terms that lie together in one input only, of which the whole step computes row by row."""

    def step(y, x):
        distances = jnp.abs(x[:, :, None] - y[None]).sum(1)
        return y, (distances, distances - distances.mean(-1, keepdims=True))

    random = np.random.default_rng(0)
    x = random.standard_normal((32, 100)).astype(np.float32)
    y = random.standard_normal((100, 31)).astype(np.float32)
    _, whole = steps(step, y, x, "host:1", 1)
    compiled, cut = steps(step, y, x, f"host:1@{memory}+pool:1MiB", 1)
    assert PROVEN in compiled.report()
    assert_same(cut, whole)
