// Micro-batches are of the batch, also where more is computed along the features
// of a layer, whose update is no part of the batch.
// RUN: baechi-opt %s --baechi-split="pieces=4 reductions=true stored=true chained=true" --remarks-filter=baechi-split 2>&1 | FileCheck %s
// RUN: baechi-opt %s --baechi-split="pieces=4 reductions=true stored=true" --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=ATONCE

// CHECK: [Passed] split | {{.*}}Pieces=4+4+4+4
// CHECK-NOT: [Passed] split
// ATONCE: [Passed] split | {{.*}}Pieces=256+256+256+256
func.func @step(%x: tensor<16x256xf32>, %w: tensor<256x1024xf32> {baechi.updated_by = 0 : i64}) -> tensor<256x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x1024xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x1024xf32>) -> tensor<16x1024xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x256xf32>, tensor<256x1024xf32>) outs(%z : tensor<16x1024xf32>) -> tensor<16x1024xf32>
  %f = tensor.empty() : tensor<256x16xf32>
  %t = linalg.transpose ins(%x : tensor<16x256xf32>) outs(%f : tensor<256x16xf32>) permutation = [1, 0]
  %h = tensor.empty() : tensor<256x1024xf32>
  %i = linalg.fill ins(%zero : f32) outs(%h : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %g = linalg.matmul ins(%t, %y : tensor<256x16xf32>, tensor<16x1024xf32>) outs(%i : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %r = arith.subf %w, %g : tensor<256x1024xf32>
  return %r : tensor<256x1024xf32>
}
