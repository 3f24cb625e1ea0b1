# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that need more than a device has are cut into pieces: the results are those of
`jax.jit`, and have the bits of the step without a limit."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402

DRAWN = np.random.default_rng(3)
QUICK = {"costs": "roofline", "budget": "0", "verbose": False}


def drawn(*shape):
    return (DRAWN.standard_normal(shape) / 8).astype(np.float32)


def train(params, x):
    def loss(p):
        hidden = jax.nn.relu(x @ p["in"])
        return ((hidden @ p["out"]) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda a, b: a - 0.1 * b, params, gradient), value


def convolutions(params, images):
    def loss(p):
        y = images
        for name in ("first", "second"):
            y = jax.lax.conv_general_dilated(
                y, p[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            y = jax.nn.relu(y)
        return (y**2).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda a, b: a - 0.1 * b, params, gradient), value


CASES = {
    # The hidden values of the whole batch, and their gradient, are what is large.
    "batch": (train, {"in": drawn(32, 64), "out": drawn(64, 16)}, drawn(1024, 32)),
    # One parameter is, which is cut beside or without the batch.
    "parameter": (train, {"in": drawn(64, 2048), "out": drawn(2048, 8)}, drawn(8, 64)),
    "convolutions": (
        convolutions,
        {"first": drawn(3, 3, 8, 8), "second": drawn(3, 3, 8, 8)},
        drawn(8, 16, 16, 8),
    ),
}


def run(step, params, x, machine, **options):
    compiled = baechi.jit(step, donate_argnums=0, machine=machine, **{**QUICK, **options})
    for _ in range(2):
        params, value = compiled(params, x)
    return compiled, [np.asarray(leaf) for leaf in jax.tree.leaves((params, value))]


def refused(step, params, x, machine, **options):
    with pytest.raises(baechi.CompileError) as error:
        run(step, params, x, machine, **options)
    return str(error.value)


def below_one_operator(step, params, x):
    """Three quarters of what the operator that needs most needs by itself."""
    told = refused(step, params, x, "host:1@4KiB+pool:64MiB", fit_memory="whole")
    number, unit = re.search(r"by itself needs ([\d.]+) (\w+)", told).groups()
    return int(float(number) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit]) * 3 // 4 // 64 * 64


@pytest.mark.parametrize("name", CASES)
def test_what_is_cut_to_fit_has_the_same_bits(name):
    step, params, x = CASES[name]
    _, whole = run(step, params, x, "host:1")
    machine = f"host:1@{below_one_operator(step, params, x)}+pool:64MiB"
    assert "by itself needs" in refused(step, params, x, machine, fit_memory="whole")
    compiled, cut = run(step, params, x, machine)
    report = compiled.report()
    assert "by itself needs" in report and "cut, the step fits:" in report
    assert "each sum adds the same terms in the same order" in report
    held = {each.device: each for each in compiled.memory()}["host0"]
    assert held.arena_bytes <= held.limit_bytes
    for mine, theirs in zip(cut, whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    expected = params
    for _ in range(2):
        expected, value = jax.jit(step)(expected, x)
    for mine, theirs in zip(cut, jax.tree.leaves((expected, value)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)


def test_the_same_cut_each_time():
    step, params, x = CASES["convolutions"]
    machine = f"host:1@{below_one_operator(step, params, x)}+pool:64MiB"
    one, _ = run(step, params, x, machine)
    other, _ = run(step, params, x, machine)
    assert one.placement == other.placement


def test_what_cannot_be_cut_is_refused_with_its_name_and_bytes():
    def step(p, x):
        return p, jnp.sort(x)

    told = refused(step, drawn(4), drawn(1 << 16), "host:1@128KiB+pool:8MiB")
    # JAX writes it as a loop within 'sort'.
    assert re.search(r"'sort/while' by itself needs [\d.]+ MiB of operands", told)


def advised(told):
    """The options of Python that an error says."""
    return eval(f"dict({re.search(r'in Python (.*?)[)](?= it fits| )', told).group(1)})")


def test_what_an_error_says_of_cuts_runs():
    step, params, x = CASES["convolutions"]
    _, whole = run(step, params, x, "host:1")
    machine = f"host:1@{below_one_operator(step, params, x)}+pool:64MiB"
    told = refused(step, params, x, machine, fit_memory="whole")
    _, cut = run(step, params, x, machine, fit_memory="whole", **advised(told))
    for mine, theirs in zip(cut, whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)


def test_the_leanest_cut_is_told_where_none_fits():
    step, params, x = CASES["convolutions"]
    _, whole = run(step, params, x, "host:1")
    told = refused(step, params, x, "host:1@16KiB+pool:64MiB")
    (needs,) = re.findall(r"no cut that was tried fits: .*the step fits (\d+) bytes", told)
    _, cut = run(step, params, x, f"host:1@{needs}+pool:64MiB", **advised(told))
    for mine, theirs in zip(cut, whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)


def test_other_bits_are_refused_and_told():
    """A sum over all elements is added up in another order in pieces."""

    def step(p, x):
        return p, jnp.exp(x @ jnp.ones((8, 64), jnp.float32)).sum()

    p, x, machine = drawn(4), drawn(4096, 8), "host:1@640KiB"
    told = refused(step, p, x, machine)
    assert re.search(
        r"cut by --splits=micro:\d .* it fits, but the pieces' result .* differs from", told
    )
    _, (_, any_order) = run(step, p, x, machine, splits="any")
    np.testing.assert_allclose(any_order, jax.jit(step)(p, x)[1], rtol=1e-4)
