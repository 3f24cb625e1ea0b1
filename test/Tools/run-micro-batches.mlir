// Where a step does not fit, micro-batches are tried; where nothing is to be cut
// by itself, other modes only tell.
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@160KiB --steps=1 --splits=any 2>&1 | FileCheck %s --check-prefix=MICRO
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@160KiB --steps=1 --fit-memory=whole 2>&1 | FileCheck %s --check-prefix=TELLS
// MICRO: note: the whole step does not fit the memories; it is computed in 2 micro-batches, as splits=micro:2 does
// MICRO: pieces     5 operations cut along 1 class of dimensions, pieces follow each other
// MICRO: predicted {{.*}} ms; the whole step does not fit the memories
// TELLS: error: no placement can fit the memories
// TELLS: in 2 micro-batches it fits: --splits=micro:2 (in Python splits="micro:2")
func.func @step(%x: tensor<256x16xf32>, %w: tensor<16x64xf32>, %v: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<256x16xf32>, tensor<16x64xf32>) outs(%z : tensor<256x64xf32>) -> tensor<256x64xf32>
  %q = linalg.matmul ins(%p, %v : tensor<256x64xf32>, tensor<64x64xf32>) outs(%z : tensor<256x64xf32>) -> tensor<256x64xf32>
  %et = tensor.empty() : tensor<64x256xf32>
  %t = linalg.transpose ins(%p : tensor<256x64xf32>) outs(%et : tensor<64x256xf32>) permutation = [1, 0]
  %eg = tensor.empty() : tensor<64x64xf32>
  %zg = linalg.fill ins(%zero : f32) outs(%eg : tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = linalg.matmul ins(%t, %q : tensor<64x256xf32>, tensor<256x64xf32>) outs(%zg : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %g : tensor<64x64xf32>
}
