# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is beside the operators of an ONNX graph: sizes that are computed beforehand, functions,
inputs with defaults."""

import numpy as np
import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
onnx = pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

import baechi.onnx  # noqa: E402
from baechi.importer.common.errors import ImportFailure  # noqa: E402
from onnx_support import compare, compile, model, random  # noqa: E402

needs_tools = needs.tool("baechi-run")

SIZES = """
net (float[B, T, 8] x) => (float[N, 8] a, float[M, 4] b, float[K, 2] c, float[T, 8] d) {
  front = Shape<start = 0, end = 2>(x)
  rows = ReduceProd<keepdims = 1>(front)
  form = Concat<axis = 0>(rows, eight)
  a = Reshape(x, form)
  count = Size(x)
  quarter = Div(count, four)
  line = Unsqueeze(quarter, zero)
  form2 = Concat<axis = 0>(line, fours)
  b = Reshape(x, form2)
  real = Cast<to = 1>(count)
  half = Div(real, two)
  up = Ceil(half)
  whole = Cast<to = 7>(up)
  line3 = Unsqueeze(whole, zero)
  form3 = Concat<axis = 0>(line3, twos)
  c = Reshape(x, form3)
  end = Shape<start = -2>(x)
  d = Expand(one, end)
}
"""


@needs_tools
def test_parts_of_shapes_and_counts_are_computed_beforehand():
    made = model(
        18,
        SIZES,
        eight=[8],
        four=4,
        zero=[0],
        fours=[4],
        two=np.float32(2),
        twos=[2],
        one=np.float32(1),
    )
    compare(made, sizes={"B": 2, "T": 5}, x=random(2, 5, 8))


FUNCTIONS = """
net (float[B, 6] x) => (float[B, 3] y, float[B, 3] z) {
  h = own.block<slope = 0.25>(x, w, v)
  y = own.block(h, u, t)
  t1 = own.twice(y)
  z = own.bound(t1, , top)
}
<domain: "own", opset_import: ["" : 17]>
block <slope: float = 0.5> (x, w, b) => (o) {
  m = MatMul(x, w)
  s = Add(m, b)
  o = LeakyRelu<alpha: float = @slope>(s)
}
<domain: "own", opset_import: ["" : 18, "own" : 1]>
twice (x) => (o) {
  two = Constant<value_float: float = 2.0>()
  q = own.square(x)
  o = Mul(q, two)
}
<domain: "own", opset_import: ["" : 18]>
square (x) => (o) { o = Mul(x, x) }
<domain: "own", opset_import: ["" : 18]>
bound (x, low, high) => (o) { o = Clip(x, low, high) }
"""


def with_functions(text):
    return model(
        18,
        text,
        domains=', "own" : 1',
        w=random(6, 8),
        v=random(8),
        u=random(8, 3),
        t=random(3),
        top=np.float32(3),
    )


@needs_tools
def test_functions_of_the_model_and_defaults_of_their_attributes():
    """NumPy is what it is compared with: ONNX's reference knows no function of functions."""
    x = random(4, 6)

    def block(x, w, b, slope):
        s = x @ w + b
        return np.where(s < 0, np.float32(slope) * s, s)

    h = block(x, random(6, 8), random(8), 0.25)
    y = block(h, random(8, 3), random(3), 0.5)
    compare(with_functions(FUNCTIONS), [y, np.minimum(2 * y * y, 3)], sizes={"B": 4}, x=x)


def test_functions_that_call_themselves_are_refused():
    endless = FUNCTIONS.replace('"" : 18]>\nsquare', '"" : 18, "own" : 1]>\nsquare').replace(
        "o = Mul(x, x)", "o = own.square(x)"
    )
    with pytest.raises(ImportFailure, match="functions cannot be inlined: .*; inline them by"):
        baechi.onnx.import_model(with_functions(endless), {"B": 4})


DEFAULTS = """
net (float[3, 4] x, float[4] b, float s, int64[2] form) => (float[N, M] y, float[4] r) {
  a = Add(x, b)
  c = Mul(a, s)
  y = Reshape(c, form)
  r = Relu(b)
}
"""


@needs_tools
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_inputs_with_defaults(machine):
    b, s = random(4), np.float32(0.5)
    compiled = compile(model(18, DEFAULTS, b=b, s=s, form=[6, 2]), machine=machine)
    x, c, t = random(3, 4), random(4) + 1, np.float32(3)
    assert compiled.inputs == ["x"]
    for given in ({}, {"b": c}, {"s": t}, {"b": c, "s": t}, {"s": t}, {}):
        y, r = compiled(x, **given)
        right = (x + given.get("b", b)) * given.get("s", s)
        np.testing.assert_allclose(y, right.reshape(6, 2), rtol=1e-6)
        np.testing.assert_array_equal(r, np.maximum(given.get("b", b), 0))
    with pytest.raises(TypeError, match="'form' has a default that the compiled program is made"):
        compiled(x, form=np.array([2, 6]))
    with pytest.raises(TypeError, match="no input 'q'; its inputs: x, b, s"):
        compiled(x, q=b)


@needs_tools
def test_initializers_of_old_models_are_inputs_that_cannot_be_given():
    made = model(
        9, "net (float[3, 4] x, float[4] b) => (float[3, 4] y) { y = Add(x, b) }", 3, b=random(4)
    )
    compiled, x = compile(made), random(3, 4)
    np.testing.assert_allclose(compiled(x), x + random(4), rtol=1e-6)
    with pytest.raises(TypeError, match="'b' has a default that the compiled program is made for"):
        compiled(x, b=random(4))


@needs_tools
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 1, 3, 2, 4]])
def test_grids_of_affine_maps(align, size):
    rank = len(size) - 2
    form = ", ".join(str(each) for each in [2, *size[2:], rank])
    made = model(
        20,
        f"net (float[2, {rank}, {rank + 1}] t) => (float[{form}] y) "
        f"{{ y = AffineGrid<align_corners = {align}>(t, size) }}",
        size=size,
    )
    compare(made, t=random(2, rank, rank + 1))


@pytest.mark.parametrize(
    "size, message",
    [
        ({}, "its size is no constant: give it as an initializer"),
        ({"n": [1, 3, 1, 4]}, "align_corners of a size of 1, which would divide by 0"),
    ],
)
def test_grids_that_are_refused(size, message):
    made = model(
        20,
        "net (float[1, 2, 3] t, int64[4] n) => (float[1, 1, 4, 2] y) "
        "{ y = AffineGrid<align_corners = 1>(t, n) }",
        **size,
    )
    with pytest.raises(ImportFailure, match=message):
        baechi.onnx.import_model(made)
