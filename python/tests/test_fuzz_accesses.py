# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A slice of scripts/check-accesses, and that it finds what launches do not declare."""

import lzma
import pathlib
import re
import sys

import pytest

import needs

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "fuzz"))
from accesses import watch  # noqa: E402
from accesses.__main__ import formed  # noqa: E402
from lowerings.generate import program  # noqa: E402

pytestmark = [
    needs.tool("baechi-opt"),
    pytest.mark.skipif(bool(watch.available()), reason=watch.available()),
]

# Slices, what is put together, sums that many blocks share, products whose batch runs backwards.
KERNELS = """
func.func private @part(%a: tensor<9x8x7xf32>) -> tensor<3x2x7xf32> attributes {baechi.kernel} {
  %r = tensor.extract_slice %a[1, 2, 0] [3, 2, 7] [2, 3, 1] : tensor<9x8x7xf32> to tensor<3x2x7xf32>
  return %r : tensor<3x2x7xf32>
}
func.func private @columns(%a: tensor<6x4xf32>, %b: tensor<6x3xf32>, %c: tensor<6x5xf32>)
    -> tensor<6x12xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<6x12xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [6, 4] [1, 1] : tensor<6x4xf32> into tensor<6x12xf32>
  %1 = tensor.insert_slice %b into %0[0, 4] [6, 3] [1, 1] : tensor<6x3xf32> into tensor<6x12xf32>
  %2 = tensor.insert_slice %c into %1[0, 7] [6, 5] [1, 1] : tensor<6x5xf32> into tensor<6x12xf32>
  return %2 : tensor<6x12xf32>
}
func.func private @sum(%a: tensor<60000x3xf32>) -> tensor<3xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %r = linalg.reduce ins(%a : tensor<60000x3xf32>) outs(%f : tensor<3xf32>) dimensions = [0]
    (%x: f32, %s: f32) {
      %y = arith.addf %x, %s : f32
      linalg.yield %y : f32
    }
  return %r : tensor<3xf32>
}
func.func private @backwards(%a: tensor<3x4x8xf32>, %b: tensor<3x8x5xf32>) -> tensor<3x4x5xf32>
    attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (2 - b, m, k)>,
                       affine_map<(b, m, n, k) -> (b, k, n)>,
                       affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3x4x8xf32>, tensor<3x8x5xf32>) outs(%f : tensor<3x4x5xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
  } -> tensor<3x4x5xf32>
  return %r : tensor<3x4x5xf32>
}
"""


def counted(said):
    return tuple(map(int, re.findall(r"\d+", said.strip().split("\n")[-1])))


def test_kernels_touch_what_they_declare(tmp_path):
    said = watch.watch(KERNELS, tmp_path)
    launches, unknown, wrong = counted(said)
    # What is put together is one launch.
    assert (launches, unknown, wrong) == (1 + 1 + 2 + 1, 0, 0), said


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(tmp_path, seed):
    said = watch.watch(formed(program(seed).text(plain=False)), tmp_path)
    launches, _, wrong = counted(said)
    assert launches > 0 and wrong == 0, said


@pytest.mark.parametrize("word", range(2))
def test_a_wrong_declaration_is_found(tmp_path, monkeypatch, word):
    """The offset, or the bytes, of the first access of each launch."""
    host_code = watch._host_code

    def wrong(kernels, folder):
        file, pointers = host_code(kernels, folder)
        words = re.compile(r"(@baechi_cuda_accesses_\w+ = .*?\[\d+ x i64\] \[)([^\]]*)(\])")

        def change(found):
            numbers = [int(each.split()[1]) for each in found[2].split(",")]
            numbers[word] = 8 if word == 0 else numbers[word] - 4
            return found[1] + ", ".join(f"i64 {number}" for number in numbers) + found[3]

        text, count = words.subn(change, file.read_text())
        assert count > 0
        file.write_text(text)
        return file, pointers

    monkeypatch.setattr(watch, "_host_code", wrong)
    said = watch.watch(KERNELS, tmp_path)
    assert counted(said)[2] >= 3, said
    assert re.search(r"BAD sum__cuda, sum_0: reads \d+ and writes 0 bytes that it does not", said)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "model", ["mlp_tiny", "lstm_tiny", "gnmt_tiny", "moe_tiny", "convnet_tiny"]
)
def test_models(tmp_path, model):
    file = ROOT / f"test/fixtures/{model}.mlir"
    packed = file.with_suffix(".mlir.xz")
    text = lzma.open(packed, "rt").read() if packed.exists() else file.read_text()
    launches, _, wrong = counted(watch.watch(formed(text), tmp_path))
    assert launches > 0 and wrong == 0
