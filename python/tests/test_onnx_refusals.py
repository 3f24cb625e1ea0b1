# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of ONNX would be computed otherwise is refused, with the operator's name."""

import pytest

from baechi.importer.common.errors import ImportFailure, UnsupportedOperations
from onnx_support import baechi, compile, model, recurrent

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
    "older": (
        model(22, "net (float[2] x) => (float[2] y) { y = Swish(x) }"),
        "Swish in 'y/Swish': opset 22 has no such operator: export the model for opset 24 or",
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
        "remainders of float64 are not supported: Cast both inputs to float32 before it and the",
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


def test_shapes_that_do_not_agree_are_told():
    made = model(
        17,
        "net (float[b, 4] x, float[2, 3] s) => (float[n, 7] y) "
        "{ z = Concat<axis = 1>(x, s) y = Relu(z) }",
    )
    assert baechi.onnx.import_model(made, sizes={"b": 2}).results == ["y"]
    with pytest.raises(ImportFailure, match="with these sizes shapes do not agree: .*Concat"):
        baechi.onnx.import_model(made, sizes={"b": 5})


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


def test_batch_normalization_that_trains_is_refused():
    made = model(
        14,
        "net (float[2, 3, 4] x, float[3] s) => (float[2, 3, 4] y, float[3] m, float[3] v) "
        "{ y, m, v = BatchNormalization<training_mode = 1>(x, s, s, s, s) }",
    )
    with pytest.raises(ImportFailure, match="it would train: export the model for inference"):
        compile(made)
