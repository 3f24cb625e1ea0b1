# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resize gives what ONNX's reference gives in each of its modes, or is refused."""

import itertools

import numpy as np
import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

import baechi.onnx  # noqa: E402
import onnx_support  # noqa: E402
from baechi.importer.common.errors import UnsupportedOperations  # noqa: E402
from onnx_support import model, random  # noqa: E402

needs_tools = needs.tool("baechi-run")
COORDINATES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric",
    "tf_crop_and_resize",
)  # fmt: skip
ROI = np.float32([0, 0, 0.2, -0.1, 1, 1, 0.9, 1.2])
CUBIC = 'mode = "cubic", cubic_coeff_a = -0.6'


def compare(made, tolerance=1e-4, **given):
    """The reference computes in double precision."""
    onnx_support.compare(made, tolerance=tolerance, **given)


def resized(nodes, kind="float", shape="1, 2, 5, 7", **constants):
    """Each node resizes x to a result of its own."""
    sizes = ", ".join("NMKLP"[: shape.count(",") + 1])
    results = [f"{kind}[{sizes}] y{i}" for i in range(len(nodes))]
    lines = [f"y{i} = Resize<{options}>({inputs})" for i, (options, inputs) in enumerate(nodes)]
    text = f"net ({kind}[{shape}] x) => ({', '.join(results)}) {{ {' '.join(lines)} }}"
    return model(19, text, **constants)


@needs_tools
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_modes(coordinates):
    """One dimension shrinks and one grows, to sizes that are whole."""
    modes = [f'mode = "nearest", nearest_mode = "{rounding}"' for rounding in
             ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")]  # fmt: skip
    ways = ("", ", antialias = 1", ", exclude_outside = 1")
    modes += [mode + way for mode, way in itertools.product(('mode = "linear"', CUBIC), ways)]
    modes.remove('mode = "linear", exclude_outside = 1')
    rest = f', coordinate_transformation_mode = "{coordinates}", extrapolation_value = 7.5'
    nodes = [(mode + rest, "x, roi, , sizes") for mode in modes]
    compare(resized(nodes, roi=ROI, sizes=[1, 2, 3, 12]), x=random(1, 2, 5, 7))


@needs_tools
def test_factors_that_give_no_whole_sizes():
    ways = ("", ", antialias = 1", ", exclude_outside = 1")
    nodes = [
        (f'{CUBIC}, coordinate_transformation_mode = "{coordinates}"{way}', "x, , factors")
        for coordinates in COORDINATES
        if coordinates not in ("align_corners", "tf_crop_and_resize")
        for way in ways
    ]
    made = resized(nodes, factors=np.float32([1, 1, 0.5, 1.7]))
    compare(made, x=random(1, 2, 5, 7))


@needs_tools
def test_axes_and_policies():
    nodes = [
        (f'mode = "{mode}", axes = [3, 2], keep_aspect_ratio_policy = "{policy}"', "x, , , sizes")
        for mode in ("nearest", "linear", "cubic")
        for policy in ("stretch", "not_larger", "not_smaller")
    ]
    compare(resized(nodes, sizes=[10, 9]), x=random(1, 2, 5, 7))


@needs_tools
@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_tensors_of_any_rank(rank):
    shape = [1, 2, 3, 4, 5][-rank:]
    factors = np.float32([1, 1.5, 2, 1.5, 0.6][-rank:])
    nodes = [(f'mode = "{mode}"', "x, , factors") for mode in ("nearest", "linear", "cubic")]
    made = resized(nodes, shape=", ".join(map(str, shape)), factors=factors)
    compare(made, x=random(*shape))


@needs_tools
def test_halves_and_bytes():
    options = 'mode = "nearest", coordinate_transformation_mode = "align_corners"'
    made = resized([(options, "x, , , sizes")], "uint8", sizes=[1, 2, 9, 3])
    compare(made, x=np.random.default_rng(0).integers(0, 256, (1, 2, 5, 7)).astype(np.uint8))
    made = resized([(f"{CUBIC}, antialias = 1", "x, , , sizes")], "float16", sizes=[1, 2, 9, 3])
    compare(made, x=random(1, 2, 5, 7).astype(np.float16), tolerance=1e-3)


def nearest(x, scales, rounding, shift=0.0):
    """One dimension after another that changes, in single precision, as onnxruntime does."""
    for axis, scale in enumerate(np.float32(scales)):
        if scale == 1:
            continue
        places = np.arange(int(x.shape[axis] * scale), dtype=np.float32)
        found = rounding[axis]((places + np.float32(shift)) / scale)
        x = x.take(np.clip(found, 0, x.shape[axis] - 1).astype(np.int64), axis)
    return x


ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
}


@needs_tools
@pytest.mark.parametrize("scales", [[2, 0.5], [1.5, 0.7], [1.3, 1.7]])
def test_nearest_elements_of_half_pixels(scales):
    """Which opset 11 alone has: without half a pixel less."""
    mode = 'mode = "nearest", coordinate_transformation_mode = "tf_half_pixel_for_nn"'
    lines = [f'y{i} = Resize<{mode}, nearest_mode = "{rounding}"> (x, roi, factors)'
             for i, rounding in enumerate(ROUNDINGS)]  # fmt: skip
    results = ", ".join(f"float[A, B, H, W] y{i}" for i in range(len(lines)))
    text = f"net (float[1, 2, 5, 7] x) => ({results}) {{ {' '.join(lines)} }}"
    factors = np.float32([1, 1, *scales])
    made = model(11, text, roi=np.zeros(0, np.float32), factors=factors)
    x = random(1, 2, 5, 7)
    expected = [nearest(x, factors, [each] * 4, shift=0.5) for each in ROUNDINGS.values()]
    compare(made, expected=expected, x=x)


@needs_tools
def test_lines_of_half_pixels():
    """By the same places, which onnxruntime gives these for."""
    mode = 'coordinate_transformation_mode = "tf_half_pixel_for_nn"'
    text = (
        "net (float[4] x) => (float[N] y, float[M] z) {"
        f' y = Resize<mode = "linear", {mode}> (x, roi, up)'
        f' z = Resize<mode = "cubic", {mode}> (x, roi, down) }}'
    )
    scales = {"up": np.float32([2]), "down": np.float32([0.5])}
    made = model(11, text, roi=np.zeros(0, np.float32), **scales)
    expected = [
        np.float32([0.25, 0.75, 1.5, 2.5, 3.25, 3.75, 4, 4]),
        np.float32([1, 4]),
    ]
    compare(made, expected=expected, x=np.float32([0, 1, 3, 4]))


@needs_tools
def test_the_first_resize():
    """Of opset 10: the element to the left, to the right where the result is smaller (ONNX's
    example of that time gives 1 and 3)."""
    text = "net (float[1, 1, 2, 4] x) => (float[A, B, H, W] y) { y = Resize(x, factors) }"
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    made = model(10, text, factors=np.float32([1, 1, 0.6, 0.6]))
    compare(made, expected=[np.float32([[[[1, 3]]]])], x=x)
    x = random(1, 1, 6, 11)
    text = text.replace("2, 4", "6, 11")
    for scales in ([1.3, 0.7], [0.9, 0.35], [2, 2.5]):
        factors = np.float32([1, 1, *scales])
        rounding = [np.ceil if scale < 1 else np.floor for scale in factors]
        made = model(10, text, factors=factors)
        compare(made, expected=[nearest(x, factors, rounding)], x=x)


OLDER = {
    "smaller": (
        9,
        "Upsample(x, factors)",
        "an Upsample by 0.6, which is below 1: use Resize of opset 10",
    ),
    "mode": (
        11,
        'Resize<coordinate_transformation_mode = "else"> (x, roi, factors)',
        "coordinate_transformation_mode 'else' is not known: take 'half_pixel'",
    ),
}


@pytest.mark.parametrize("case", OLDER)
def test_what_is_refused_of_older_opsets(case):
    opset, node, message = OLDER[case]
    text = f"net (float[1, 1, 2, 4] x) => (float[A, B, H, W] y) {{ y = {node} }}"
    factors = np.float32([1, 1, 1, 0.6])
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(model(opset, text, roi=np.zeros(0, np.float32), factors=factors))
    assert message in str(caught.value)


ALIGNED = 'coordinate_transformation_mode = "align_corners"'
REFUSED = {
    "bytes": (
        ('mode = "linear", antialias = 1', "x, , , sizes"),
        "mode 'linear' of uint8: Cast to float before it",
    ),
    "nothing": (
        ('mode = "nearest", axes = [2, 3], keep_aspect_ratio_policy = "not_larger"', "x, , , thin"),
        "its result is empty, and a tensor without elements is not supported",
    ),
    "corners": (
        (f'mode = "nearest", {ALIGNED}', "x, , factors"),
        "from 5 to 8.5 elements, of which runtimes have different ideas where corners are aligned",
    ),
    "corners of lines": (
        (f'mode = "linear", {ALIGNED}', "x, , factors"),
        "from 5 to 8.5 elements, of which runtimes have different ideas where corners are aligned",
    ),
    "part": (
        ('coordinate_transformation_mode = "tf_crop_and_resize"', "x, x, factors"),
        "its roi is no constant: give it as an initializer",
    ),
    "far": (
        ('mode = "linear", antialias = 1', "x, , , one"),
        "antialias over 1000 elements: AveragePool before it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    node, message = REFUSED[case]
    made = resized(
        [node],
        "uint8" if case == "bytes" else "float",
        "1, 2, 500, 7" if case == "far" else "1, 2, 5, 7",
        sizes=[1, 2, 3, 3],
        thin=[1, 0],
        one=[1, 2, 1, 7],
        factors=np.float32([1, 1, 1.7, 1]),
    )
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(made)
    assert message in str(caught.value)
