// Micro-batches that keep the order of sums: products go on from what the piece
// before has made, sums of what lies together stay whole, and so do sums of
// several sums. What the program asks for is beside the batch.
// RUN: baechi-opt %s --split-input-file --baechi-split="pieces=2 reductions=true chained=true ordered=true" --remarks-filter=baechi-split 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: baechi-opt %s --split-input-file --baechi-split="reductions=true chained=true ordered=true" | FileCheck %s --check-prefix=ASKED
// RUN: not baechi-opt %s --split-input-file --baechi-split="pieces=200 reductions=true chained=true ordered=true" 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: func.func @step(
// CHECK: math.exp %{{.*}} : tensor<5x3xf32>
// CHECK: math.exp %{{.*}} : tensor<5x3xf32>
// CHECK-COUNT-2: linalg.matmul {{.*}} -> tensor<64x6xf32>
// CHECK: %[[FIRST:.*]] = linalg.matmul ins({{.*}} : tensor<4x64xf32>, tensor<64x6xf32>) outs
// CHECK: %[[G:.*]] = linalg.matmul ins({{.*}} : tensor<4x64xf32>, tensor<64x6xf32>) outs(%[[FIRST]]
// CHECK: %[[SECOND:.*]] = linalg.matmul ins({{.*}} : tensor<4x64xf32>, tensor<64x6xf32>) outs
// CHECK: %[[H:.*]] = linalg.matmul ins({{.*}} : tensor<4x64xf32>, tensor<64x6xf32>) outs(%[[SECOND]]
// CHECK: arith.addf %[[G]], %[[H]]
// CHECK: linalg.reduce {{.*}} ins(%{{.*}} : tensor<128x6xf32>)
// REMARK: [Missed] not-split {{.*}}Reason="it sums up what lies together, in an order of its own"
// ASKED-COUNT-2: math.exp %{{.*}} : tensor<5x3xf32>
// NONE: error: nothing is as heavy as a batch that could be cut in 200 micro-batches
func.func @step(%x: tensor<128x4xf32>, %w: tensor<4x6xf32>, %v: tensor<10x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [5, 5]>}) -> (tensor<10x3xf32>, tensor<4x6xf32>, tensor<f32>) {
  %a = math.exp %v : tensor<10x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x6xf32>) -> tensor<128x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<128x4xf32>, tensor<4x6xf32>) outs(%z : tensor<128x6xf32>) -> tensor<128x6xf32>
  %et = tensor.empty() : tensor<4x128xf32>
  %t = linalg.transpose ins(%x : tensor<128x4xf32>) outs(%et : tensor<4x128xf32>) permutation = [1, 0]
  %q = math.exp %p : tensor<128x6xf32>
  %eg = tensor.empty() : tensor<4x6xf32>
  %zg = linalg.fill ins(%zero : f32) outs(%eg : tensor<4x6xf32>) -> tensor<4x6xf32>
  %g = linalg.matmul ins(%t, %p : tensor<4x128xf32>, tensor<128x6xf32>) outs(%zg : tensor<4x6xf32>) -> tensor<4x6xf32>
  %h = linalg.matmul ins(%t, %q : tensor<4x128xf32>, tensor<128x6xf32>) outs(%zg : tensor<4x6xf32>) -> tensor<4x6xf32>
  %b = arith.addf %g, %h : tensor<4x6xf32>
  %es = tensor.empty() : tensor<f32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%q : tensor<128x6xf32>) outs(%zs : tensor<f32>) dimensions = [0, 1]
  return %a, %b, %s : tensor<10x3xf32>, tensor<4x6xf32>, tensor<f32>
}

// -----

// Pieces of one row: a product with a vector has another order than that with a
// matrix.
// REMARK: [Missed] not-split {{.*}}Reason="its pieces would be products with a vector, whose sums have an order of their own"
// CHECK-LABEL: func.func @rows(
// CHECK-COUNT-2: math.exp %{{.*}} : tensor<1x128x128xf32>
// CHECK: linalg.matmul {{.*}} -> tensor<2x8xf32>
func.func @rows(%x: tensor<2x128x128xf32>, %w: tensor<1x8xf32>) -> tensor<2x8xf32> {
  %a = math.exp %x : tensor<2x128x128xf32>
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<2xf32>) -> tensor<2xf32>
  %s = linalg.reduce { arith.addf } ins(%a : tensor<2x128x128xf32>) outs(%zs : tensor<2xf32>) dimensions = [1, 2]
  %v = tensor.expand_shape %s [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %e = tensor.empty() : tensor<2x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %p = linalg.matmul ins(%v, %w : tensor<2x1xf32>, tensor<1x8xf32>) outs(%z : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %p : tensor<2x8xf32>
}
