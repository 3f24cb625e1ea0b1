// RUN: baechi-opt %s -split-input-file --baechi-form-kernels | FileCheck %s

// The first state of an LSTM is zero: its product with the weight is the same
// row for every example, so the sum over the weight's rows is computed once. It
// is computed: a weight that is not a number must show.
// CHECK-LABEL: func.func @first_state(
// CHECK-SAME: %[[W:.*]]: tensor<16x64xf32>
// CHECK: %[[SUM:.*]] = call @[[ONCE:mul_sum.*]](%[[W]]) : (tensor<16x64xf32>) -> tensor<64xf32>
// CHECK: %[[ALL:.*]] = call @[[ALL_KERNEL:.*]](%[[SUM]]) : (tensor<64xf32>) -> tensor<8x64xf32>
// CHECK: return %[[ALL]]
// CHECK: func.func private @[[ONCE]](%{{.*}}: tensor<16x64xf32>) -> tensor<64xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]
func.func @first_state(%w: tensor<16x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %state = arith.constant dense<0.0> : tensor<8x16xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.matmul ins(%state, %w : tensor<8x16xf32>, tensor<16x64xf32>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// A convolution of an image with a filter of ones keeps its loops: those of the
// window are known from the filter only.
// CHECK-LABEL: func.func @window(
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = [{{.*}}"parallel", {{.*}}"reduction", "reduction", "reduction"]
func.func @window(%image: tensor<1x6x6x4xf32>) -> tensor<1x4x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<3x3x4x8xf32>
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%image, %ones : tensor<1x6x6x4xf32>, tensor<3x3x4x8xf32>) outs(%f : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %r : tensor<1x4x4x8xf32>
}

// -----

// An exact step's, too, with what it says of how the sum rounds.
// CHECK-LABEL: func.func @exact_state(
// CHECK: func.func private @mul_sum{{.*}}(%{{.*}}: tensor<16x64xf32>) -> tensor<64xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]
// CHECK: arith.mulf %{{.*}} fastmath<contract> : f32
// CHECK: arith.addf %{{.*}} fastmath<contract> : f32
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @exact_state(%w: tensor<16x64xf32>) -> tensor<8x64xf32> attributes {baechi.implementation = "exact"} {
  %zero = arith.constant 0.0 : f32
  %state = arith.constant dense<0.0> : tensor<8x16xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%state, %w : tensor<8x16xf32>, tensor<16x64xf32>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b fastmath<contract> : f32
    %next = arith.addf %sum, %product fastmath<contract> : f32
    linalg.yield %next : f32
  } -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}
