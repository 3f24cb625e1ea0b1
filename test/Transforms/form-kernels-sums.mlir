// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s

// Gradients of one weight over three time steps of 100 examples are added up:
// two of them are one kernel, which reads and writes the sum once and may do so
// in place. A third would make it wait for too many operands.
// CHECK-LABEL: func.func @gradients(
// CHECK: %[[TWO:.*]] = call @matmul_sum2_16x64x100(
// CHECK: %[[SUM:.*]] = call @matmul_add_16x64x100({{.*}}%[[TWO]])
// CHECK: return %[[SUM]]
// CHECK: func.func private @matmul_sum2_16x64x100(
// CHECK: %[[FIRST:.*]] = linalg.generic
// CHECK: linalg.generic {{.*}}outs(%[[FIRST]] :
// CHECK: func.func private @matmul_add_16x64x100({{.*}} {baechi.may_alias = array<i64: 2>})
func.func @gradients(%h0: tensor<100x16xf32>, %g0: tensor<100x64xf32>, %h1: tensor<100x16xf32>, %g1: tensor<100x64xf32>, %h2: tensor<100x16xf32>, %g2: tensor<100x64xf32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h0, %g0 : tensor<100x16xf32>, tensor<100x64xf32>) outs(%f : tensor<16x64xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<16x64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h1, %g1 : tensor<100x16xf32>, tensor<100x64xf32>) outs(%0 : tensor<16x64xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<16x64xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h2, %g2 : tensor<100x16xf32>, tensor<100x64xf32>) outs(%1 : tensor<16x64xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<16x64xf32>
  return %2 : tensor<16x64xf32>
}
