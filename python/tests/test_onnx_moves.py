# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions, paddings and scatters give what ONNX's reference gives."""

import numpy as np
import pytest

from baechi.importer.common.errors import UnsupportedOperations
from onnx_support import baechi, compare, model, needs_tools, random

# Of groups: x has 4 channels, w as many, a result 3 of each group.
TRANSPOSED = {
    "size": "strides = [2, 2], output_shape = [10, 12]",
    "odd": "strides = [2, 2], output_shape = [8, 12]",
    "odd upper": 'auto_pad = "SAME_UPPER", strides = [2, 2], output_shape = [8, 12]',
    "upper": 'auto_pad = "SAME_UPPER", strides = [2, 2]',
    "lower": 'auto_pad = "SAME_LOWER", strides = [2, 2]',
    "valid": 'auto_pad = "VALID", strides = [2, 1]',
    "uneven": "pads = [0, 1, 1, 2], strides = [2, 2], dilations = [1, 2], output_padding = [1, 1]",
    "groups": "group = 2, strides = [2, 1], pads = [1, 1, 1, 1]",
    "groups and a size": 'group = 4, auto_pad = "SAME_UPPER", strides = [2, 2]',
}


def transposed(options, groups=1):
    text = (
        "net (float[1, 4, 5, 6] x) => (float[N, M, H, W] y) "
        f"{{ y = ConvTranspose<{options}>(x, w, b) }}"
    )
    return model(17, text, w=random(4, 3, 3, 3), b=random(3 * groups))


def by_hand(x, w, b, groups, strides, dilations, further, cuts, sizes):
    """The definition: each element's window is added to the result, then the borders are cut."""
    count = w.shape[1]
    span = [s * (n - 1) + d * (k - 1) + 1 + f for s, n, d, k, f in
            zip(strides, x.shape[2:], dilations, w.shape[2:], further)]  # fmt: skip
    whole = np.zeros((1, groups * count, *span), np.float64)
    part = x.shape[1] // groups
    for c in range(x.shape[1]):
        first = c // part * count
        for i, j in np.ndindex(*x.shape[2:]):
            rows = i * strides[0] + dilations[0] * np.arange(w.shape[2])
            columns = j * strides[1] + dilations[1] * np.arange(w.shape[3])
            for m in range(count):
                whole[0, first + m][np.ix_(rows, columns)] += x[0, c, i, j] * w[c, m]
    whole += b.reshape(1, -1, 1, 1)
    return whole[
        :, :, cuts[0] : cuts[0] + sizes[0], cuts[1] : cuts[1] + sizes[1]
    ].astype(np.float32)  # fmt: skip


# Strides, dilations, further elements, what is cut off before, sizes; onnxruntime gives the same.
EXPECTED = {
    "size": ((2, 2), (1, 1), (0, 0), (1, 1), (10, 12)),
    "odd": ((2, 2), (1, 1), (0, 0), (2, 1), (8, 12)),
    "odd upper": ((2, 2), (1, 1), (0, 0), (1, 0), (8, 12)),
    "upper": ((2, 2), (1, 1), (0, 0), (0, 0), (10, 12)),
    "lower": ((2, 2), (1, 1), (0, 0), (1, 1), (10, 12)),
    "valid": ((2, 1), (1, 1), (0, 0), (0, 0), (11, 8)),
    "uneven": ((2, 2), (1, 2), (1, 1), (0, 1), (11, 13)),
    "groups": ((2, 1), (1, 1), (0, 0), (1, 1), (9, 6)),
    "groups and a size": ((2, 2), (1, 1), (0, 0), (0, 0), (10, 12)),
}


@needs_tools
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolutions(case):
    groups = {"groups": 2, "groups and a size": 4}.get(case, 1)
    x, b = random(1, 4, 5, 6), random(3 * groups)
    expected = by_hand(x, random(4, 3, 3, 3), b, groups, *EXPECTED[case])
    compare(transposed(TRANSPOSED[case], groups), expected=[expected], tolerance=1e-4, x=x)


@needs_tools
@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_paddings_of_any_dimension(mode):
    for rank in (1, 3, 5):
        shape, widths = [3, 2, 4, 3, 5][-rank:], [0] * rank + [1] * rank
        widths[0] = 2 if shape[0] > 2 else 1
        sizes = ", ".join(map(str, shape))
        names = ", ".join("ABCDE"[:rank])
        text = f'net (float[{sizes}] x) => (float[{names}] y) {{ y = Pad<mode = "{mode}">(x, w) }}'
        compare(model(17, text, w=widths), x=random(*shape))


@needs_tools
@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint8])
def test_the_largest_of_what_is_scattered(kind):
    name = {np.float32: "float", np.int64: "int64", np.uint8: "uint8"}[kind]
    text = (
        f"net ({name}[3, 4] x, {name}[2, 4] u) => "
        f"({name}[3, 4] a, {name}[3, 4] b, {name}[3, 4] c, {name}[3, 4] d) {{"
        ' a = ScatterElements<reduction = "max", axis = 0>(x, i, u)'
        ' b = ScatterElements<reduction = "min", axis = 1>(x, i, u)'
        ' c = ScatterND<reduction = "max">(x, j, u)'
        ' d = ScatterND<reduction = "min">(x, j, u) }'
    )
    places = {"i": [[0, 1, -1, 0], [0, 2, 2, 1]], "j": [[1], [-1]]}
    draws = np.random.default_rng(0)
    x, u = (draws.integers(0, 250, shape).astype(kind) for shape in ((3, 4), (2, 4)))
    compare(model(18, text, **places), x=x, u=u)


REFUSED = {
    "far": (
        transposed("strides = [2, 2], output_shape = [14, 12]"),
        "a result of 14 elements in dimension 2, where its windows reach 11: Pad after it",
    ),
    "groups": (
        model(
            17,
            "net (float[1, 65, 3] x) => (float[N, M, L] y) { y = ConvTranspose<group = 65>(x, w) }",
            w=random(65, 1, 3),
        ),
        "65 groups, at most 64 are taken: split its channels",
    ),
    "unsigned": (
        model(
            18,
            "net (uint16[3] x, uint16[1] u) => (uint16[3] y) "
            '{ y = ScatterElements<reduction = "max">(x, i, u) }',
            i=[1],
        ),
        "uint16 is not supported, only uint8 and signed types: Cast to int64",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    made, message = REFUSED[case]
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(made)
    assert message in str(caught.value)
