# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's operators give what its reference gives."""

import warnings

import numpy as np
import pytest

from onnx_support import (
    ReferenceEvaluator,
    baechi,
    compare,
    compile,
    model,
    needs_tools,
    numpy_helper,
    random,
    recurrent,
)

NAN = np.nan


@needs_tools
def test_numbers_that_are_none_bytes_and_remainders():
    made = model(
        20,
        """
net (float[2, 4] x, float[2, 4] y, uint8[6] u, uint8[6] v, int32[3] n, float[3] p) => (
  float[2, 4] a, float[2, 4] b, float[2, 4] c, float[2, 4] d, float[2, 4] e, uint8[6] f,
  uint8[6] g, uint8[6] h, float[2, 4] i, int32[3] j, int64[2, 1] k, int64[2, 1] l,
  float[2, 4] m) {
  a = Clip(x, low, high)
  b = Sign(x)
  c = Max(x, y)
  d = Min(y, x)
  e = Gelu<approximate = "tanh">(y)
  f = Div(u, v)
  g = Mod(u, v)
  h = BitShift<direction = "RIGHT">(u, v)
  i = Mod<fmod = 1>(y, x)
  j = Pow(n, p)
  k = ArgMax<axis = 1>(x)
  l = ArgMin<axis = 1>(x)
  m = LpNormalization<axis = 1, p = 2>(z)
}
""",
        low=np.float32(-1),
        high=np.float32(1),
        z=np.float32([[3, 4, 0, 0], [0, 0, 0, 0]]),
    )
    x = np.float32([[NAN, -3, np.inf, 0.5], [2, NAN, -0.25, 3]])
    y = np.float32([[1, NAN, -7.5, 5], [-3, 2, 1e3, 0.7]])
    u = np.array([200, 3, 255, 0, 128, 127], np.uint8)
    v = np.array([3, 4, 1, 9, 8, 200], np.uint8)
    n, p = np.array([2, -3, 7], np.int32), np.float32([0.5, 2, 1.5])
    expected = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = ReferenceEvaluator(made).run(None, dict(x=x, y=y, u=u, v=v, n=n, p=p))
    expected[12] = np.float32([[0.6, 0.8, 0, 0], [0, 0, 0, 0]])
    compare(made, expected, x=x, y=y, u=u, v=v, n=n, p=p)


@needs_tools
def test_doubles_keep_all_digits():
    text = """
net (double[8] x) => (double[8] a, double b, double[8] c, double[8] d) {
  a = Selu(x)
  b = ReduceL2<keepdims = 0>(x)
  c = LpNormalization(x)
  d = Swish<alpha = 0.5>(x)
}
"""
    x = np.array([-3, -1.1, -0.5, 0, 0.5, 1, 2, 10.0])
    alpha, gamma = np.float32(1.6732632423543772), np.float32(1.0507009873554805)
    right = float(gamma) * np.where(x > 0, x, float(alpha) * np.expm1(x))
    length = np.sqrt((x * x).sum())
    for found, expected in zip(
        compile(model(24, text))(x),
        (right, length, x / length, x / (1 + np.exp(-x / 2))),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@needs_tools
def test_products_and_what_moves_elements():
    made = model(
        18,
        """
net (float[2, 3, 4] x, float[4] v, float[1, 4, 2] w, float[3, 4] y, float[4, 5] z) => (
  float[2, 3] a, float[2, 3] b, float[2, 3, 2] c, float[3, 5] d, float[2, 3, 4] e,
  float[4, 4] f, float[2, 3, 4] g) {
  a = MatMul(x, v)
  t = Transpose<perm = [0, 2, 1]>(x)
  b = MatMul(v, t)
  c = MatMul(x, w)
  d = Einsum<equation = "ij, jk">(y, z)
  e = Slice(x, starts, ends, axes, steps)
  f = Pad(y, widths, seven)
  g = CumSum(x, one)
}
""",
        starts=[-1, 5],
        ends=[-100, -9],
        axes=[1, 2],
        steps=[-1, -1],
        widths=[-1, 2, 2, -2],
        seven=np.float32(7),
        one=1,
    )
    given = {
        "x": random(2, 3, 4), "v": random(4), "w": random(1, 4, 2), "y": random(3, 4),
        "z": random(4, 5),
    }  # fmt: skip
    padded = np.pad(given["y"][1:, :-2], ((0, 2), (2, 0)), constant_values=7)
    numpy = [
        given["x"] @ given["v"],
        given["v"] @ given["x"].transpose(0, 2, 1),
        given["x"] @ given["w"],
        given["y"] @ given["z"],
        given["x"][:, ::-1, ::-1],
        padded,
        given["x"].cumsum(1),
    ]
    compare(made, numpy, **given)


@needs_tools
def test_opsets_that_say_it_otherwise():
    """Softmax and its like were over all later dimensions; attributes were no inputs."""
    made = model(
        9,
        """
net (float[2, 3, 4] x, float[1, 1, 2, 2] i) => (
  float[2, 3, 4] a, float[2, 3, 4] b, float[2, 1, 4] c, float[2, 2, 4] d, float[2, 2, 4] e,
  float[1, 1, 4, 4] f) {
  a = Softmax<axis = 1>(x)
  b = Hardmax<axis = 1>(x)
  c, d = Split<axis = 1, split = [1, 2]>(x)
  e = Slice<axes = [1], starts = [0], ends = [-1]>(x)
  f = Upsample<mode = "linear">(i, scales)
}
""",
        scales=np.float32([1, 1, 2, 2]),
    )
    x, i = random(2, 3, 4), np.float32([[[[0, 2], [4, 6]]]])
    lines = np.exp(x.reshape(2, 12))
    highest = np.eye(12, dtype=np.float32)[lines.argmax(1)]
    # The last row and column have no neighbours.
    rows = np.float32([0, 2, 4, 4])
    larger = rows[:, None] + np.float32([0, 1, 2, 2])
    expected = [
        (lines / lines.sum(1, keepdims=True)).reshape(x.shape),
        highest.reshape(x.shape),
        x[:, :1],
        x[:, 1:],
        x[:, :-1],
        larger[None, None],
    ]
    compare(made, expected, x=x, i=i)


@needs_tools
def test_last_windows_indices_and_samples():
    made = model(
        16,
        """
net (float[2, 3, 6, 6] x, float[2, 2, 2, 2] g, uint8[1, 1, 2, 4] u) => (
  float[2, 3, 3, 3] a, int64[2, 3, 3, 3] b, float[2, 3, 2, 2] c, float[2, 3, 3, 3] d,
  float[2, 3, 2, 2] e, float[2, 3, 2, 2] f, uint8[1, 1, 1, 2] h) {
  a, b = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
  c = MaxPool<kernel_shape = [3, 3], strides = [4, 4], pads = [0, 0, 1, 1], ceil_mode = 1>(x)
  d = AveragePool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x)
  e = GridSample(x, g)
  f = GridSample<mode = "nearest">(x, g)
  h = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(u)
}
""",
    )
    x = random(2, 3, 6, 6)
    grid = np.float32([[[-1.5, 0.2], [0, 0]], [[0.3, -0.9], [2, 2]]])
    u = np.array([[[[200, 3, 7, 9], [1, 2, 130, 5]]]], np.uint8)
    given = {"x": x, "g": np.stack([grid, grid / 2]), "u": u}
    blocks = x.reshape(2, 3, 3, 2, 3, 2)
    places = np.arange(x.size).reshape(blocks.shape)
    highest = blocks.max((3, 5))
    hit = np.where(blocks == highest[:, :, :, None, :, None], places, 0)
    ends = [slice(0, 3), slice(2, 5), slice(4, 6)]
    means = [[x[:, :, r, c].mean((2, 3)) for c in ends] for r in ends]
    wide = [slice(0, 3), slice(4, 6)]
    most = [[x[:, :, r, c].max((2, 3)) for c in wide] for r in wide]
    reference = ReferenceEvaluator(made).run(None, given)
    expected = [
        highest,
        hit.max((3, 5)),
        np.moveaxis(np.array(most), (0, 1), (2, 3)),
        np.moveaxis(np.array(means), (0, 1), (2, 3)),
        *reference[4:6],
        np.array([[[[200, 130]]]], np.uint8),
    ]
    compare(made, expected, **given)


@needs_tools
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_sequences_end_where_their_lengths_say(kind, direction):
    """As if each sequence had been given alone."""
    lengths = np.array([4, 1, 3], np.int32)
    made, given = recurrent(kind, direction)
    x = given["i0"]
    made.graph.initializer.append(numpy_helper.from_array(lengths, "lengths"))
    results = compile(made)(**given)
    for line, length in enumerate(lengths):
        alone, _ = recurrent(kind, direction, steps=length, batch=1)
        alone.graph.node[0].input[4] = ""
        own = given | {"i0": x[:length, line : line + 1]}
        y, *last = ReferenceEvaluator(alone).run(None, own)
        np.testing.assert_allclose(results[0][:length, :, line : line + 1], y, rtol=1e-4, atol=1e-6)
        assert not results[0][length:, :, line].any()
        for result, right in zip(results[1:], last):
            np.testing.assert_allclose(result[:, line : line + 1], right, rtol=1e-4, atol=1e-6)


def test_what_is_known_beforehand_has_a_known_size():
    text = "net (float[3] x) => (float[3] y, int64[1, N] z) { y = Relu(x) z = NonZero(k) }"
    imported = baechi.onnx.import_model(model(17, text, k=np.float32([1, 0, 3])))
    assert "tensor<1x2xi64>" in imported.text


@needs_tools
@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15])
def test_batch_normalization_of_any_opset(opset):
    made = model(
        opset,
        "net (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) "
        "{ y = BatchNormalization<epsilon = 0.01>(x, s, b, m, v) }",
        s=random(3),
        b=random(3) + 1,
        m=random(3) * 2,
        v=np.abs(random(3)) + 0.5,
    )
    x = random(2, 3, 4, 4)
    s, b, m, v = (numpy_helper.to_array(t).reshape(3, 1, 1) for t in made.graph.initializer)
    compare(made, [(x - m) / np.sqrt(v + np.float32(0.01)) * s + b], x=x)


@needs_tools
def test_bytes_have_no_sign():
    s, z, r = np.float32([0.5, 0.25, 2, 1]), np.uint8([128, 0, 255, 7]), np.float32([1, 0.5, 3])
    made = model(
        17,
        "net (uint8[3, 4] x) => (uint8[3, 4] a, float[3, 4] b, float[3, 4] c) { a = Abs(x) "
        "b = DequantizeLinear<axis = 1>(x, s, z) c = DequantizeLinear<axis = -2>(x, r) }",
        s=s,
        z=z,
        r=r,
    )
    x = np.uint8([[0, 127, 128, 255], [200, 1, 254, 7], [129, 3, 100, 99]])
    wide = x.astype(np.float32)
    compare(made, [x, (wide - z) * s, wide * r[:, None]], x=x)
