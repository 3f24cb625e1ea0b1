// Slices in one piece are views in the step: a kernel does not depend on where
// they begin.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s
// RUN: baechi-opt %s --baechi-form-kernels=row-loops=false --split-input-file | FileCheck %s --check-prefix=TILED

// Two steps in time, and the first one's slice again: one kernel, two slices.
// A consumer that tiles for itself gets the slices with the work.

// CHECK-LABEL: func.func @times(
// CHECK-SAME: %[[X:.*]]: tensor<3x4x16xf32>, %[[W:.*]]: tensor<16x8xf32>)
// CHECK-NEXT: %[[S0:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [1, 4, 16] [1, 1, 1] {baechi.view} : tensor<3x4x16xf32> to tensor<4x16xf32>
// CHECK-NEXT: %[[A:.*]] = call @matmul_4x8x16(%[[S0]], %[[W]]) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[S2:.*]] = tensor.extract_slice %[[X]][2, 0, 0] [1, 4, 16] [1, 1, 1] {baechi.view} : tensor<3x4x16xf32> to tensor<4x16xf32>
// CHECK-NEXT: %[[B:.*]] = call @matmul_4x8x16(%[[S2]], %[[W]])
// CHECK-NEXT: %[[C:.*]] = call @matmul_16x16x4(%[[S0]])
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]]

// TILED-LABEL: func.func @times(
// TILED-NEXT: call @matmul_4x8x16({{.*}} : (tensor<16x8xf32>, tensor<3x4x16xf32>)
// TILED-NEXT: call @matmul_4x8x16_0({{.*}} : (tensor<16x8xf32>, tensor<3x4x16xf32>)
func.func @times(%x: tensor<3x4x16xf32>, %w: tensor<16x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s0 = tensor.extract_slice %x[0, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<3x4x16xf32> to tensor<4x16xf32>
  %a = linalg.matmul ins(%s0, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s2 = tensor.extract_slice %x[2, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<3x4x16xf32> to tensor<4x16xf32>
  %b = linalg.matmul ins(%s2, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<16x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %again = tensor.extract_slice %x[0, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<3x4x16xf32> to tensor<4x16xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s0, %again : tensor<4x16xf32>, tensor<4x16xf32>) outs(%f1 : tensor<16x16xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x16xf32>
  return %a, %b, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<16x16xf32>
}

// -----

// Columns, what begins between two multiples of 64 bytes, and a slice of
// columns stay in the kernels; what is returned is copied.

// CHECK-LABEL: func.func @pieces(
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32>, %{{.*}}: tensor<4x10xf32>, %{{.*}}: tensor<4x32xf32>)
// CHECK-NEXT: call @exp_4x8(%{{.*}}) : (tensor<4x16xf32>)
// CHECK-NEXT: call @exp_8(%{{.*}}) : (tensor<4x10xf32>)
// CHECK-NEXT: call @exp_16(%{{.*}}) : (tensor<4x32xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][2, 0] [2, 16] [1, 1]
// CHECK-NEXT: call @copy_2x16(%[[S]])
func.func @pieces(%x: tensor<4x16xf32>, %y: tensor<4x10xf32>, %z: tensor<4x32xf32>)
    -> (tensor<4x8xf32>, tensor<8xf32>, tensor<16xf32>, tensor<2x16xf32>) {
  %columns = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %a = math.exp %columns : tensor<4x8xf32>
  %odd = tensor.extract_slice %y[1, 1] [1, 8] [1, 1] : tensor<4x10xf32> to tensor<8xf32>
  %b = math.exp %odd : tensor<8xf32>
  %half = tensor.extract_slice %z[0, 0] [4, 16] [1, 1] : tensor<4x32xf32> to tensor<4x16xf32>
  %row = tensor.extract_slice %half[1, 0] [1, 16] [1, 1] : tensor<4x16xf32> to tensor<16xf32>
  %c = math.exp %row : tensor<16xf32>
  %rows = tensor.extract_slice %x[2, 0] [2, 16] [1, 1] : tensor<4x16xf32> to tensor<2x16xf32>
  return %a, %b, %c, %rows : tensor<4x8xf32>, tensor<8xf32>, tensor<16xf32>, tensor<2x16xf32>
}
