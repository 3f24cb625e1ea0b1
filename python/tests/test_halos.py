# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pools cut along what they read in windows, compared with `jax.jit`."""

import numpy as np
import pytest

import needs

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402
from test_splits import QUICK, drawn  # noqa: E402

pytestmark = needs.tool("baechi-run")


def close(found, expected, relative=3e-6):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = float(np.max(np.abs(np.asarray(b, np.float64)), initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=relative * scale)


def bits(tree):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def convolution(x, w, strides=(1, 1), padding="SAME", dilation=(1, 1), groups=1):
    return jax.lax.conv_general_dilated(
        x, w, strides, padding, rhs_dilation=dilation, feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip


WINDOWS = {
    "same": {},
    "valid": {"padding": "VALID"},
    "strided": {"strides": (2, 1)},
    "strided_valid": {"strides": (3, 2), "padding": "VALID"},
    "dilated": {"dilation": (2, 1), "padding": "VALID"},
    "dilated_same": {"dilation": (3, 2)},
    "uneven": {"padding": ((0, 4), (2, 0))},
    "wide_padding": {"padding": ((7, 9), (1, 1))},
}


@pytest.mark.parametrize("height", [17, 24])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions_cut_in_height(name, height):
    def step(x, w):
        with jax.named_scope("layer"):
            return convolution(x, w, **WINDOWS[name])

    x, w = drawn(1, height, 9, 3), drawn(3, 3, 3, 4)
    for splits in ("none", "exact"):
        options = {"splits": splits, "split": {"layer/conv*": (1, 3)}, **QUICK}
        cut = baechi.jit(step, machine="host:2", **options)
        found = cut(x, w)
        close(found, jax.jit(step)(x, w))
        assert any(".piece2" in name for name in cut.placement)
    # Sums are in one order whatever the pieces are.
    whole = baechi.jit(step, machine="host:1", splits="exact", **QUICK)
    assert bits(found) == bits(whole(x, w))


def pools(x):
    sums = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 3, 2, 1), (1, 2, 1, 1), "VALID")
    most = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    return sums, most


def net(w, x):
    x = jnp.tanh(convolution(x, w[0], strides=(2, 2)))
    x = jnp.tanh(convolution(x, w[1], dilation=(2, 2)) + x)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return (convolution(x, w[2], padding="VALID") ** 2).mean()


NET = [drawn(5, 5, 3, 8) * 0.1, drawn(3, 3, 8, 8) * 0.1, drawn(3, 3, 8, 4) * 0.1]


@pytest.mark.parametrize("pieces", [2, 3])
def test_whatever_can_be_cut_gives_jaxs_results(pieces):
    x = drawn(1, 33, 21, 3)
    for step, arguments in ((pools, (x,)), (jax.value_and_grad(net), (NET, x))):
        cut = baechi.jit(step, machine="host:2", splits=f"forced:{pieces}", **QUICK)
        close(cut(*arguments), jax.jit(step)(*arguments))
        exact = [
            baechi.jit(step, machine=machine, splits=splits, **QUICK)(*arguments)
            for machine, splits in (("host:1", "exact"), ("host:2", f"exact-forced:{pieces}"))
        ]
        assert bits(exact[0]) == bits(exact[1])


def test_one_image_is_cut_in_height():
    def step(w, x):
        for each in w:
            x = jax.nn.relu(convolution(x, each))
        return x

    w, x = [drawn(3, 3, 16, 16) * 0.1 for _ in range(3)], drawn(1, 64, 64, 16)
    whole = baechi.jit(step, machine="host:2", **QUICK)
    cut = baechi.jit(step, machine="host:2", splits="exact", **QUICK)
    close(cut(w, x), whole(w, x))
    assert "pieces     none" not in cut.report()
    assert "predicted" in cut.report() and "saves" in cut.report()
