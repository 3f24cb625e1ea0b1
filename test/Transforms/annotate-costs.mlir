// Costs by the roofline: launch + max(operations / peak, bytes / bandwidth).
// RUN: baechi-opt %s --baechi-annotate-costs="roofline=host:50:10:200,fast:1000:100:10" | FileCheck %s

// A peak far above the bandwidth and none of the defaults.
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  // 2 * 64^3 operations of the product, none of the fill: 524288.
  // host: 524288 / 50e9 = 10485.8 ns, above 3 * 16384 bytes / 10e9 = 4915.2 ns.
  // fast: 524288 / 1e12 = 524.3 ns, above 491.5 ns.
  // CHECK: call @matmul
  // CHECK-SAME: baechi.cost = #baechi.cost<time_ns = {fast = 535, host = 10686}, scratch = 4096>
  %0 = call @matmul(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  // No loops in sight: an operation an element, so the bytes decide.
  // CHECK: arith.addf
  // CHECK-SAME: baechi.cost = #baechi.cost<time_ns = {fast = 502, host = 5116}, scratch = 0>
  %1 = arith.addf %0, %w : tensor<64x64xf32>
  // Constants and views are no operators.
  // CHECK-NOT: baechi.cost
  // CHECK: return
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %2 = tensor.collapse_shape %1 [[0, 1]] : tensor<64x64xf32> into tensor<4096xf32>
  %3 = tensor.expand_shape %2 [[0, 1]] output_shape [64, 64] : tensor<4096xf32> into tensor<64x64xf32>
  return %3, %c : tensor<64x64xf32>, tensor<64x64xf32>
}

func.func private @matmul(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {baechi.kernel, baechi.kernel_scratch = 4096 : i64} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
