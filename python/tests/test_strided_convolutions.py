# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of convolutions with strides, which multiply no zeros, equal jax.jit's."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import baechi  # noqa: E402
import needs  # noqa: E402

pytestmark = needs.tool("baechi-run")

NHWC = ("NHWC", "HWIO", "NHWC")
# Image, filters, and what lax.conv_general_dilated is given.
CASES = {
    "3x3 valid": ((2, 17, 17, 16), (3, 3, 16, 24), {"window_strides": (2, 2)}),
    "3x3 same": ((2, 18, 17, 16), (3, 3, 16, 24), {"window_strides": (2, 2), "padding": "SAME"}),
    "rest unread": ((2, 18, 20, 16), (3, 3, 16, 24), {"window_strides": (2, 3)}),
    "wide padding": (
        (2, 15, 14, 16),
        (3, 3, 16, 24),
        {"window_strides": (2, 2), "padding": ((3, 2), (0, 4))},
    ),
    "7x7": ((1, 23, 23, 3), (7, 7, 3, 32), {"window_strides": (2, 2), "padding": "SAME"}),
    "1x1": ((4, 21, 20, 16), (1, 1, 16, 24), {"window_strides": (2, 2)}),
    "1x7": ((2, 17, 33, 16), (1, 7, 16, 24), {"window_strides": (1, 2), "padding": "SAME"}),
    "taps without a phase": ((2, 33, 33, 16), (2, 2, 16, 24), {"window_strides": (3, 3)}),
    "stride 4": ((2, 33, 33, 16), (5, 5, 16, 24), {"window_strides": (4, 4), "padding": "SAME"}),
    "many phases": ((2, 40, 40, 8), (5, 5, 8, 16), {"window_strides": (5, 5)}),
    "dilated filters": (
        (2, 33, 33, 16),
        (3, 3, 16, 24),
        {"window_strides": (2, 2), "rhs_dilation": (2, 2)},
    ),
    "transposed": (
        (2, 17, 17, 24),
        (4, 4, 24, 16),
        {"window_strides": (1, 1), "padding": ((2, 2), (2, 2)), "lhs_dilation": (2, 2)},
    ),
    "both dilated": (
        (2, 17, 17, 16),
        (3, 3, 16, 24),
        {"window_strides": (3, 2), "padding": ((0, 0), (1, 0)), "lhs_dilation": (2, 3)},
    ),
    "few places": (
        (4, 8, 8, 64),
        (3, 3, 64, 48),
        {"window_strides": (2, 2), "padding": "SAME"},
    ),
    "one image": ((1, 13, 7, 20), (3, 1, 20, 70), {"window_strides": (2, 1), "padding": "SAME"}),
    "groups": (
        (2, 17, 17, 16),
        (3, 3, 4, 24),
        {"window_strides": (2, 2), "feature_group_count": 4},
    ),
    "depthwise": (
        (2, 33, 33, 32),
        (3, 3, 1, 32),
        {"window_strides": (2, 2), "feature_group_count": 32},
    ),
    "channels first": (
        (2, 16, 17, 17),
        (24, 16, 3, 3),
        {"window_strides": (2, 2), "dimension_numbers": ("NCHW", "OIHW", "NCHW")},
    ),
    "signals": (
        (2, 400, 16),
        (5, 16, 24),
        {"window_strides": (3,), "dimension_numbers": ("NWC", "WIO", "NWC")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    image, filters, options = CASES[name]
    options = {"padding": "VALID", "dimension_numbers": NHWC} | options
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, image).astype(np.float32)
    w = random.uniform(-1, 1, filters).astype(np.float32)

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, **options)

    t = random.uniform(-1, 1, jax.eval_shape(convolve, x, w).shape).astype(np.float32)

    def gradients(x, w, t):
        y, back = jax.vjp(convolve, x, w)
        return (y, *back(t))

    for ours, expected in zip(
        baechi.jit(gradients, machine="host:1", costs="roofline", budget="0")(x, w, t),
        jax.jit(gradients)(x, w, t),
    ):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5 * scale)


def test_what_is_not_a_number_shows():
    """Every weight is multiplied in one of the phases, and in no other one."""
    w = np.ones((3, 3, 32, 32), np.float32)
    w[0, 1, 2, 3] = np.nan
    t = np.ones((2, 8, 8, 32), np.float32)

    def gradient(w, t):
        x = jnp.zeros((2, 17, 17, 32))
        return jax.vjp(
            lambda x: lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=NHWC), x
        )[1](t)[0]

    ours = np.isnan(baechi.jit(gradient, machine="host:1", costs="roofline", budget="0")(w, t))
    assert ours[np.isnan(jax.jit(gradient)(w, t))].all()
    # Rows and columns of the phase of tap (0, 1); beside the image it meets zeros.
    phase = np.zeros_like(ours)
    phase[:, ::2, 1::2, 2] = True
    assert not ours[~phase].any()
