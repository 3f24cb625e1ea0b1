# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Powers of integers have all digits, and zeros their signs, as in ONNX's reference."""

import numpy as np
import pytest

from baechi.importer.common.errors import UnsupportedOperations
from onnx_support import ReferenceEvaluator, baechi, compile, model, needs_tools


def exactly(made, **given):
    """The reference's bits; NaN is one number."""
    expected = ReferenceEvaluator(made).run(None, given)
    results = compile(made)(**given)
    for result, right in zip(results, expected, strict=True):
        assert result.dtype == right.dtype
        np.testing.assert_array_equal(result, right)
        if right.dtype.kind == "f":
            known = ~np.isnan(right)
            np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(right)[known])


@needs_tools
def test_powers_of_integers_have_all_digits_and_wrap():
    made = model(
        18,
        """
net (int64[8] x, int32[8] y, uint8[8] u, uint32[8] v) => (
  int64[8] a, int64[8] b, int32[8] c, int32[8] d, int32[2, 8] e, int32[8] f, int32[8] g,
  float[8] h) {
  a = Pow(x, p)
  b = Pow(x, two)
  c = Pow(y, u)
  d = Pow(y, two)
  e = Pow(y, rows)
  f = Pow(y, none)
  g = Pow(y, halves)
  h = Pow(signs, v)
}
""",
        p=np.int64([39, 20, 37, 63, 2, 18, 0, (1 << 62) + 1]),
        two=np.int64(2),
        rows=np.int32([[5], [0]]),
        none=np.int8(0),
        signs=np.float32([1, -1] * 4),
        halves=np.float32([2, 2, 0.5, 3, 31, 1, 0, 5]),
    )
    exactly(
        made,
        x=np.int64([3, 7, -3, 2, 94906267, 10, 0, -1]),
        y=np.int32([46340, 255, 2025, 3, 2, 0, 0, -1]),
        u=np.uint8([2, 200, 3, 21, 31, 255, 0, 129]),
        v=np.uint32([0, 1, 2, 3, 1 << 31, (1 << 31) + 1, 7, 2**32 - 1]),
    )


@needs_tools
def test_powers_to_integers_that_come_with_the_call():
    text = """
net (int32[5] x, int8[5] p, float[5] y, uint8[5] u) => (int32[5] a, float[5] b) {
  a = Pow(x, p)
  b = Pow(y, u)
}
"""
    made = model(18, text)
    x, p = np.int32([2147483647, -7, 3, 0, 65537]), np.int8([2, 11, 127, 0, 3])
    y, u = np.float32([1.5, -1, 2, -0.5, 3]), np.uint8([200, 255, 128, 3, 0])
    compiled = compile(made)
    # Products of y are rounded otherwise than numpy's power is.
    a, b = ReferenceEvaluator(made).run(None, dict(x=x, p=p, y=y, u=u))
    found = compiled(x, p, y, u)
    np.testing.assert_array_equal(found[0], a)
    np.testing.assert_allclose(found[1], b, rtol=1e-5)
    with pytest.raises(ValueError, match="negative integer powers"):
        ReferenceEvaluator(made).run(None, dict(x=x, p=-p, y=y, u=u))
    with pytest.raises(RuntimeError, match="'a/.*an integer is divided by zero"):
        compiled(x, -p, y, u)


@pytest.mark.parametrize(
    "text, message",
    [
        ("x = Pow(i, negative)", "an integer to a negative power is no integer.*Cast what is"),
        ("x = Pow(i, unsigned)", "uint64 is not supported: Cast to int64"),
        ("x = Mod(f, f)", "fmod = 0 is for integers before opset 28: set fmod = 1"),
        ("x = Celu<alpha = -1.0>(f)", "its alpha is not above zero: write it as"),
    ],
)
def test_what_has_no_result_is_refused(text, message):
    kind = "float" if "f" in text.split("=", 1)[1].replace("fmod", "") else "int32"
    made = model(
        18,
        f"net (int32[2] i, float[2] f) => ({kind}[2] x) {{ {text} }}",
        negative=np.int32([1, -1]),
        unsigned=np.uint64([1, 2]),
    )
    with pytest.raises(UnsupportedOperations, match=message):
        baechi.onnx.import_model(made)


@needs_tools
def test_zeros_have_signs():
    made = model(
        18,
        """
net (float[6] x, float[6] y, float[6] z) => (
  float[6] a, float[6] b, float[6] c, float[6] d, float[6] e, float[6] f, float[6] g) {
  a = Elu<alpha = 0.5>(z)
  b = Selu<alpha = 0.5, gamma = 2.0>(z)
  c = Celu<alpha = 2.0>(z)
  d = Erf(z)
  e = Mod<fmod = 1>(x, y)
  f = CumSum(z, first)
  g = CumSum<reverse = 1>(z, first)
}
""",
        first=0,
    )
    exactly(
        made,
        x=np.float32([-0.0, -4, 4, -5, np.inf, -3]),
        y=np.float32([0.5, 2, -2, 3, 2, np.inf]),
        z=np.float32([-0.0, -0.0, -0.0, 0.0, 0.0, -0.0]),
    )


@needs_tools
def test_exponential_units_keep_their_digits():
    types = {"f": np.float32, "d": np.float64, "h": np.float16}
    made = model(
        22,
        """
net (float[9] f, double[9] d, float16[9] h) => (
  float[9] a, float[9] b, double[9] c, double[9] e, float16[9] g, float16[9] i) {
  a = Elu(f) b = Selu(f) c = Elu(d) e = Selu(d) g = Elu(h) i = Selu(h)
}
""",
    )
    x = np.array([-1e-9, -1e-4, -0.02, -0.5, -3, -90, -np.inf, 2, np.nan])
    given = {name: x.astype(kind) for name, kind in types.items()}
    for found, right in zip(compile(made)(**given), ReferenceEvaluator(made).run(None, given)):
        assert found.dtype == right.dtype
        rounding = 4 * float(np.finfo(right.dtype).eps)
        np.testing.assert_allclose(found, right, rtol=max(rounding, 1e-14))
