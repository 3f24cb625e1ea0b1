// RUN: baechi-opt %s --split-input-file --baechi-replicate=replicas=4 --baechi-form-kernels=row-loops=false | FileCheck %s

// Four replicas in two rows and two columns: rows have parts of x, columns of w,
// and each replica the product of both. Both arguments are stored in two pieces,
// and the sum over columns is nobody's.

#same = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func @step(
// CHECK-SAME: tensor<4x8xf32> {baechi.batched = [array<i64: 3, 12>, array<i64>], baechi.name = "arg0.piece0"
// CHECK-SAME: tensor<4x8xf32> {baechi.batched = [array<i64: 3, 12>, array<i64>], baechi.name = "arg0.piece1"
// CHECK-SAME: tensor<8x4xf32> {baechi.batched = [array<i64>, array<i64: 5, 10>], baechi.name = "arg1.piece0"
// CHECK-SAME: tensor<8x4xf32> {baechi.batched = [array<i64>, array<i64: 5, 10>], baechi.name = "arg1.piece1"
// CHECK: %[[A:.*]] = call @{{.*}}(%arg0, %arg2) {{{.*}}baechi.replica = 0 : i64}
// CHECK: %[[B:.*]] = call @{{.*}}(%arg0, %arg3) {{{.*}}baechi.replica = 1 : i64}
// CHECK: %[[C:.*]] = call @{{.*}}(%arg1, %arg3) {{{.*}}baechi.replica = 3 : i64}
// CHECK: call @{{.*}}(%[[A]], %[[B]]) :
func.func @step(%x: tensor<8x8xf32> {baechi.batched = [array<i64: 3, 12>, array<i64>]},
                %w: tensor<8x8xf32> {baechi.batched = [array<i64>, array<i64: 5, 10>]})
    -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {baechi.replicas = 4 : i64} {
  %x0 = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
  %x1 = tensor.extract_slice %x[4, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
  %w0 = tensor.extract_slice %w[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %w1 = tensor.extract_slice %w[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = linalg.matmul ins(%x0, %w0 : tensor<4x8xf32>, tensor<8x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.matmul ins(%x0, %w1 : tensor<4x8xf32>, tensor<8x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%x1, %w1 : tensor<4x8xf32>, tensor<8x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<4x4xf32>
  return %s, %c : tensor<4x4xf32>, tensor<4x4xf32>
}
