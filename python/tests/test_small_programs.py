# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small MLIR programs at the edges of what operations allow, by baechi-run, as NumPy has them."""

import subprocess

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import needs
from baechi.compiling import tools

pytestmark = needs.tool("baechi-run")
FUNCTIONS = {"exp": np.exp, "log": np.log, "sin": np.sin, "tanh": np.tanh, "sqrt": np.sqrt}
random = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    return random.uniform(0.5, 2, shape).astype(dtype)


def scalar(body, result, argument="f64"):
    return f"""
func.func @step(%x: tensor<{argument}>) -> tensor<{result}> {{
  %e = tensor.empty() : tensor<{result}>
  %0 = linalg.generic {{indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>],
      iterator_types = []}} ins(%x : tensor<{argument}>) outs(%e : tensor<{result}>) {{
  ^bb0(%a: {argument}, %o: {result}):
    {body}
    linalg.yield %y : {result}
  }} -> tensor<{result}>
  return %0 : tensor<{result}>
}}"""


ZEROS = """
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>"""

ZEROS_AROUND = f"""
func.func @step(%x: tensor<4x8xf32>) -> tensor<8x8xf32> {{{ZEROS}
  %r = tensor.concat dim(0) %z, %x, %z
      : (tensor<2x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}}"""

ZEROS_WITHIN = f"""
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {{{ZEROS}
  %a = tensor.insert_slice %z into %x[0, 0] [2, 8] [1, 1]
      : tensor<2x8xf32> into tensor<8x8xf32>
  %r = tensor.insert_slice %z into %a[6, 0] [2, 8] [1, 1]
      : tensor<2x8xf32> into tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}}"""

PAD_OF_NOTHING = """
func.func @step(%x: tensor<0x9xf32>) -> tensor<2x10xf32> {
  %c = arith.constant 1.0 : f32
  %0 = tensor.pad %x low[2, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<0x9xf32> to tensor<2x10xf32>
  return %0 : tensor<2x10xf32>
}"""

PAD_OF_NOTHING_BY_PLACE = """
func.func @step(%x: tensor<3x0xf32>) -> tensor<3x2xf32> {
  %0 = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %t = arith.index_cast %s : index to i32
    %v = arith.sitofp %t : i32 to f32
    tensor.yield %v : f32
  } : tensor<3x0xf32> to tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}"""

PARTS_OF_NOTHING = """
func.func @step(%x: tensor<4x3xf32>, %n: tensor<0x3xf32>) -> tensor<5x3xf32> {
  %s = tensor.extract_slice %x[1, 0] [1, 3] [1, 1] : tensor<4x3xf32> to tensor<1x3xf32>
  %r = tensor.concat dim(0) %n, %x, %s, %n
      : (tensor<0x3xf32>, tensor<4x3xf32>, tensor<1x3xf32>, tensor<0x3xf32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}"""


def mapped_slice(index, offset, size):
    """A slice of twice the rows `index` (of d0) of an operand, then more elementwise."""
    return f"""
func.func @step(%x: tensor<8x4xf32>) -> tensor<{size}x4xf32> {{
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> ({index}, d1)>,
      affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<4x4xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %q = arith.addf %a, %a : f32
    linalg.yield %q : f32
  }} -> tensor<4x4xf32>
  %1 = tensor.extract_slice %0[{offset}, 0] [{size}, 4] [1, 1]
      : tensor<4x4xf32> to tensor<{size}x4xf32>
  %e2 = tensor.empty() : tensor<{size}x4xf32>
  %2 = linalg.exp ins(%1 : tensor<{size}x4xf32>) outs(%e2 : tensor<{size}x4xf32>)
      -> tensor<{size}x4xf32>
  return %2 : tensor<{size}x4xf32>
}}"""


def convolution(height, width, stride):
    out = (height - 1, (width - 2) // stride + 1)
    result = f"tensor<2x{out[0]}x{out[1]}x1xf32>"
    return f"""
func.func @step(%x: tensor<2x{height}x{width}x2xf32>, %w: tensor<2x2x2x1xf32>) -> {result} {{
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : {result}
  %f = linalg.fill ins(%c : f32) outs(%e : {result}) -> {result}
  %r = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>,
      strides = dense<[1, {stride}]> : tensor<2xi64>}}
      ins(%x, %w : tensor<2x{height}x{width}x2xf32>, tensor<2x2x2x1xf32>)
      outs(%f : {result}) -> {result}
  return %r : {result}
}}"""


def convolved(stride):
    def expected(x, w):
        windows = sliding_window_view(x, (2, 2), axis=(1, 2))[:, :, ::stride]
        return np.einsum("nhwcij,ijcf->nhwf", windows, w)

    return expected


POWER = """
func.func @step(%t: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %0 = linalg.powf ins(%b, %t : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""

TO_BFLOAT = """%b = arith.truncf %a : {0} to bf16
    %y = arith.extf %b : bf16 to f32"""
TO_HALF = """%b = arith.truncf %a : f64 to f16
    %y = arith.extf %b : f16 to f32"""
WIDE = """%b = arith.extsi %a : i64 to i128
    %c = arith.constant 12345678901234567890123 : i128
    %m = arith.muli %b, %c : i128
    %d = arith.constant 1234567890123456789 : i128
    %q = arith.divsi %m, %d : i128
    %y = arith.trunci %q : i128 to i64"""


SIX = floats(4, 3)
PROGRAMS = {
    **{
        f"a kernel named {name}": (
            scalar(f"%y = math.{name} %a : f64", "f64"),
            [floats(dtype=np.float64)],
            function,
        )
        for name, function in FUNCTIONS.items()
    },
    "a kernel named powf": (POWER, [floats(), floats()], lambda t, b: b**t),
    "zeros around": (ZEROS_AROUND, [floats(4, 8)], lambda x: np.pad(x, ((2, 2), (0, 0)))),
    "zeros within": (
        ZEROS_WITHIN,
        [floats(8, 8)],
        lambda x: np.pad(x[2:6], ((2, 2), (0, 0))),
    ),
    "a pad of nothing": (PAD_OF_NOTHING, [floats(0, 9)], lambda x: np.ones((2, 10))),
    "a pad of nothing, by place": (
        PAD_OF_NOTHING_BY_PLACE,
        [floats(3, 0)],
        lambda x: np.add.outer(np.arange(3.0), np.arange(2.0)),
    ),
    "parts of nothing": (
        PARTS_OF_NOTHING,
        [SIX, floats(0, 3)],
        lambda x, n: np.concatenate([x, x[1:2]]),
    ),
    "a reversed slice": (
        mapped_slice("-d0 + 7", 1, 2),
        [floats(8, 4)],
        lambda x: np.exp(2 * x[5:7][::-1]),
    ),
    "a slice of every second row": (
        mapped_slice("d0 * 2", 1, 2),
        [floats(8, 4)],
        lambda x: np.exp(2 * x[2:6:2]),
    ),
    "a slice of later rows": (
        mapped_slice("d0 + 3", 1, 2),
        [floats(8, 4)],
        lambda x: np.exp(2 * x[4:6]),
    ),
    "a slice of rows that come twice": (
        mapped_slice("d0 floordiv 2", 1, 2),
        [floats(8, 4)],
        lambda x: np.exp(2 * x[[0, 1]]),
    ),
    "one window cut off": (
        convolution(2, 3, 2),
        [floats(2, 2, 3, 2), floats(2, 2, 2, 1)],
        convolved(2),
    ),
    "windows cut off": (
        convolution(3, 6, 3),
        [floats(2, 3, 6, 2), floats(2, 2, 2, 1)],
        convolved(3),
    ),
    "a double to bfloat16": (
        scalar(TO_BFLOAT.format("f64"), "f32"),
        [np.float64(1.00390625000001)],
        lambda x: np.float32(1.0078125),
    ),
    "a double to half": (
        scalar(TO_HALF, "f32"),
        [floats(dtype=np.float64)],
        lambda x: x.astype(np.float16).astype(np.float32),
    ),
    "integers of 128 bits": (
        scalar(WIDE, "i64", "i64"),
        [np.int64(-987654321)],
        lambda x: np.int64(-(987654321 * 12345678901234567890123 // 1234567890123456789)),
    ),
}


def run(tmp_path, text, inputs, *options):
    model, given, found = (tmp_path / name for name in ("m.mlir", "in.npz", "out.npz"))
    model.write_text(text)
    np.savez(given, **{f"arg{i}": value for i, value in enumerate(inputs)})
    done = subprocess.run(
        [tools.find("baechi-run"), model, "--costs=roofline", "--budget=0", "--steps=1"]
        + [f"--inputs={given}", f"--outputs={found}", *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with np.load(found) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays.files))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_small_programs(tmp_path, name):
    text, inputs, expected = PROGRAMS[name]
    (result,) = run(tmp_path, text, inputs, "--machine=host:2", "--placer=round-robin")
    np.testing.assert_allclose(result, expected(*inputs), rtol=1e-5, atol=1e-6)
