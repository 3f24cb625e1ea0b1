# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's operators give what its reference gives, or are refused with their names."""

import warnings

import numpy as np
import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
onnx = pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import baechi.onnx  # noqa: E402
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations  # noqa: E402
from onnx_models import compare, compile, model, random  # noqa: E402

needs_tools = needs.tool("baechi-run")
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


def recurrent(kind, direction, steps=4, batch=3, **options):
    """A node's model and what it is given, without its lengths."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    count, hidden, size = 2 if direction == "bidirectional" else 1, 5, 2
    shapes = [
        (steps, batch, size),
        (count, gates * hidden, size),
        (count, gates * hidden, hidden),
        (count, 2 * gates * hidden),
    ]
    given = {f"i{k}": random(*shape) for k, shape in enumerate(shapes)}
    outputs = ["y", "h", "c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(
        kind, [*given, "lengths"], outputs, kind, hidden_size=hidden, direction=direction, **options
    )
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape)
        for name, value in given.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    made = helper.make_graph([node], "g", inputs, results)
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(whole), given


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


REFUSALS = {
    "clip": (
        recurrent("LSTM", "forward", clip=0.5)[0],
        "LSTM in 'LSTM': clip, of which runtimes have different ideas in an LSTM: leave it out",
    ),
    "alpha": (
        recurrent("RNN", "forward", activations=["Elu"], activation_alpha=[0.5])[0],
        "RNN in 'RNN': activation_alpha and activation_beta are not supported: leave them out",
    ),
    "activation": (
        recurrent("RNN", "forward", activations=["Affine"])[0],
        "the activation Affine is not supported: take one of Sigmoid",
    ),
    "steps": (
        recurrent("GRU", "forward", steps=200, clip=1.0)[0],
        "over 200 steps: at most 128; leave them out or give shorter sequences",
    ),
    "newer": (
        model(28, "net (uint8[2] x) => (uint8[2] y) { y = Mod(x, x) }"),
        "Mod in 'y/Mod': the operator of opset 28 is not supported: export the model for opset 25",
    ),
    "groups": (
        model(
            21,
            "net (float16[1, 4, 2] x, float16[4] s, float16[4] b) => (float16[1, 4, 2] y) "
            "{ y = GroupNormalization<num_groups = 2>(x, s, b) }",
        ),
        "only float32 and float64 of known sizes are supported: Cast before it",
    ),
    "unsigned": (
        model(17, "net (uint32[2] x) => (uint32[2] y) { y = Div(x, x) }"),
        "Div in 'y/Div': uint32 is not supported, only uint8 and signed types: Cast to int64",
    ),
    "remainder": (
        model(17, "net (double[2] x) => (double[2] y) { y = Mod<fmod = 1>(x, x) }"),
        "of float64 it would lose digits: Cast to float32, or Sub what is divided",
    ),
    "order": (
        model(
            17,
            "net (float[1, 1, 4, 4] x) => (float[1, 1, 3, 3] y, int64[1, 1, 3, 3] z) "
            "{ y, z = MaxPool<kernel_shape = [2, 2], storage_order = 1>(x) }",
        ),
        "storage_order = 1 is not supported: leave it out",
    ),
    "scales": (
        model(
            17,
            "net (uint8[1, 2, 5, 5] x, int8[3, 2, 3, 3] w, float s, uint8 z, float[3] t, int8[3] u,"
            " int32[3] b) => (uint8[1, 3, 3, 3] y) { y = QLinearConv(x, s, z, w, t, u, s, z, b) }",
        ),
        "a bias beside a scale a channel: DequantizeLinear, Conv, QuantizeLinear",
    ),
    "uneven": (
        model(
            17,
            "net (float[1, 1, 4, 4] x) => (float[1, 1, 3, 3] y, int64[1, 1, 3, 3] z) "
            "{ y, z = MaxPool<kernel_shape = [2, 2], pads = [0, 1, 1, 0]>(x) }",
        ),
        "indices with other padding after the data than before: pad both sides alike",
    ),
    "last": (
        model(
            17,
            "net (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y, int64[1, 1, 2, 2] z) "
            "{ y, z = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x) }",
        ),
        "indices with a last window that does not fit: Pad first, ceil_mode = 0",
    ),
    "bytes": (
        model(
            17,
            "net (uint8[1, 1, 4, 4] x) => (uint8[1, 1, 2, 2] y) "
            "{ y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x) }",
        ),
        "uint8 with indices or ceil_mode: Cast to float before it",
    ),
    "sample": (
        model(
            20,
            "net (float[1, 1, 4, 4] x, float[1, 2, 2, 2] g) => (float[1, 1, 2, 2] y) "
            '{ y = GridSample<mode = "cubic">(x, g) }',
        ),
        "mode 'cubic' with padding_mode 'zeros': take 'linear' and 'border'",
    ),
    "volume": (
        model(
            20,
            "net (float[1, 1, 4, 4, 4] x, float[1, 2, 2, 2, 3] g) => (float[1, 1, 2, 2, 2] y) "
            "{ y = GridSample(x, g) }",
        ),
        "only images, of 4 dimensions, are sampled",
    ),
    "signs": (
        model(
            17,
            'net (float[4] x) => (float[4] y) { y = Pad<mode = "edge">(x, w) }',
            w=[-1, 1],
        ),
        "mode 'edge' with widths of both signs: Slice first, then Pad",
    ),
    "backwards": (
        model(
            17,
            "net (float[4] x) => (float[0] y) { y = Slice(x, a, b, c, d) }",
            a=[0],
            b=[2],
            c=[0],
            d=[-1],
        ),  # fmt: skip
        "its result is empty: give it a step of 1",
    ),
    "nothing": (
        model(17, "net (float[4] x) => (float[M] y) { y = Pad(x, w) }", w=[-2, -2]),
        "its result is empty, and a tensor without elements is not supported",
    ),
    "axes": (
        model(18, "net (float[4] x, int64[1] a) => (float[5] y) { y = Pad(x, w, , a) }", w=[1, 0]),
        "its axes are no constant: give them as an initializer",
    ),
    "steps that vary": (
        model(
            17,
            "net (float[4] x, int64[1] d) => (float[2] y) { y = Slice(x, a, b, c, d) }",
            a=[0],
            b=[4],
            c=[0],
        ),  # fmt: skip
        "its axes or steps are no constants: give them as initializers",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_would_be_computed_otherwise_is_refused(case):
    made, message = REFUSALS[case]
    for node in made.graph.node:
        if node.op_type in ("LSTM", "GRU", "RNN"):
            node.input[4] = ""
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(made)
    assert message in str(caught.value)


def test_what_is_known_beforehand_has_a_known_size():
    text = "net (float[3] x) => (float[3] y, int64[1, N] z) { y = Relu(x) z = NonZero(k) }"
    imported = baechi.onnx.import_model(model(17, text, k=np.float32([1, 0, 3])))
    assert "tensor<1x2xi64>" in imported.text


def test_inputs_without_elements_are_refused():
    made = model(17, "net (float[0, 4] x) => (float[0, 4] y) { y = Relu(x) }")
    with pytest.raises(ImportFailure, match="'x' has size 0 in dimension 0.*leave it out"):
        baechi.onnx.import_model(made)


def test_opsets_that_cannot_be_converted_are_refused():
    made = model(9, "net (float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }")
    made.opset_import[0].version = 3
    made.graph.node[0].op_type = "Unknown"
    with pytest.raises(ImportFailure, match="opset 3 cannot be converted to 13: .*; export the"):
        baechi.onnx.import_model(made)


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


def test_batch_normalization_that_trains_is_refused():
    made = model(
        14,
        "net (float[2, 3, 4] x, float[3] s) => (float[2, 3, 4] y, float[3] m, float[3] v) "
        "{ y, m, v = BatchNormalization<training_mode = 1>(x, s, s, s, s) }",
    )
    with pytest.raises(ImportFailure, match="it would train: export the model for inference"):
        compile(made)


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
