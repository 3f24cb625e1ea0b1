# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps in micro-batches that follow each other, compared with `jax.jit`."""

import numpy as np
import pytest

import needs

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402
from test_splits import CASES, LAYERS, QUICK, drawn, layers  # noqa: E402

pytestmark = needs.tool("baechi-run")


def transformer(p, tokens):
    x = p["table"][tokens]
    q, k, v = (x @ each for each in p["qkv"])
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k), -1)
    x = x + jnp.einsum("bqk,bkd->bqd", scores, v)
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x + jax.nn.relu(x @ p["up"]) @ p["down"]
    found = jax.nn.log_softmax(x[:, :-1] @ p["table"].T)
    return -jnp.take_along_axis(found, tokens[:, 1:, None], -1).mean()


TRANSFORMER = {
    "table": drawn(40, 32) * 0.3,
    "qkv": [drawn(32, 32) * 0.1 for _ in range(3)],
    "up": drawn(32, 64) * 0.1,
    "down": drawn(64, 32) * 0.1,
}
TOKENS = np.random.default_rng(1).integers(0, 40, (12, 10))
MODELS = {
    "mlp": (jax.value_and_grad(layers), LAYERS),
    "transformer": (jax.value_and_grad(transformer), (TRANSFORMER, TOKENS)),
    **{
        name: CASES[name]
        for name in ("batch_norm", "attention", "embedding", "dropout", "convolution", "clipped")
    },
}


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_losses_and_gradients_are_jaxs(name, devices):
    step, arguments = MODELS[name]
    expected = jax.jit(step)(*arguments)
    for pieces in (2, 3, 4):
        compiled = baechi.jit(step, machine=f"host:{devices}", splits=f"micro:{pieces}", **QUICK)
        found = compiled(*arguments)
        assert any(f".piece{pieces - 1}" in name for name in compiled.placement)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            scale = float(np.max(np.abs(np.asarray(b, np.float64)), initial=0))
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * scale)


def test_the_bits_are_those_of_any_number_of_devices():
    step, arguments = MODELS["transformer"]
    found = [
        baechi.jit(step, machine=f"host:{devices}", splits="micro:3", **QUICK)(*arguments)
        for devices in (1, 2, 3)
    ]
    first = jax.tree.leaves(found[0])
    for other in found[1:]:
        for a, b in zip(first, jax.tree.leaves(other), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def train(weights, x):
    value, gradients = jax.value_and_grad(layers)(weights, x)
    return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], value


# Activations take more than weights.
SHAPES = (
    [jax.ShapeDtypeStruct((64, 64), "float32")] * 6,
    jax.ShapeDtypeStruct((1024, 64), "float32"),
)


def compiled(**options):
    return baechi.jit(train, donate_argnums=0, **QUICK, **options).lower(*SHAPES).compile()


def scratch(machine="host:1@64MiB", **options):
    return compiled(machine=machine, **options).memory()["host0"].scratch_bytes


def test_gradients_do_not_grow_with_the_number_of_micro_batches():
    held = [scratch(splits=f"micro:{pieces}") for pieces in (2, 4, 8)]
    assert held == sorted(held, reverse=True)
    # All partial gradients are alive in pieces that do not follow each other.
    assert held[2] < scratch(splits="canonical:8")


def limit():
    """Too little for the whole step, enough for micro-batches."""
    whole = baechi.jit(train, donate_argnums=0, **QUICK).lower(*SHAPES).compile()
    return whole.least_memory(1).not_found_bytes


def test_what_does_not_fit_is_computed_in_micro_batches():
    machine = f"host:1@{limit()}"
    with pytest.raises(
        baechi.CompileError, match=r"in (2|4) micro-batches it fits: --splits=micro:"
    ):
        compiled(machine=machine, fit_memory="whole")
    step = compiled(machine=machine, splits="any")
    assert any(".piece1" in name for name in step.placement)
    (device,) = step.memory()
    assert device.arena_bytes <= device.limit_bytes
    arguments = [drawn(64, 64) * 0.1 for _ in range(6)], drawn(1024, 64)
    expected = jax.tree.leaves(jax.jit(train)(*arguments))
    found = jax.tree.leaves(
        baechi.jit(train, donate_argnums=0, machine=machine, splits="any", **QUICK)(*arguments)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_is_recommended_fits():
    """The search of the default budget finds a placement whose plan does not."""

    def step(p, x):
        loss = lambda p: ((jnp.tanh(x @ p["a"]) @ p["b"]) ** 2).mean()  # noqa: E731
        value, g = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), value

    p, x = {"a": drawn(32, 2048) * 0.1, "b": drawn(2048, 16) * 0.1}, drawn(64, 32)
    options = {"machine": "host:2@621823", "costs": "roofline", "verbose": False}
    with pytest.raises(
        baechi.CompileError, match='it fits: --splits=micro:8 .in Python splits="micro:8".'
    ):
        baechi.jit(step, fit_memory="whole", **options)(p, x)
    new, value = jax.jit(step)(p, x)
    found, loss = baechi.jit(step, splits="micro:8", **options)(p, x)
    np.testing.assert_allclose(loss, value, rtol=1e-5)
    for name in p:
        np.testing.assert_allclose(found[name], new[name], atol=1e-5)


def test_too_many_micro_batches_are_an_error():
    x = drawn(8, 64)
    with pytest.raises(
        baechi.CompileError, match="could be cut in 16 micro-batches; ask for fewer"
    ):
        baechi.jit(lambda x: jnp.tanh(x), splits="micro:16", **QUICK)(drawn(8, 8))
    with pytest.raises(ValueError, match=r"'micro:N' \(always in N micro-batches\)"):
        baechi.jit(lambda x: jnp.tanh(x), splits="micro:1", **QUICK)(x)
