// Reductions walk along the rows of what they read, where the order of terms
// is a matter of rounding alone.
// RUN: baechi-opt %s --split-input-file --baechi-form-kernels | FileCheck %s

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func private @sum_
// CHECK: linalg.generic {indexing_maps = [#[[ROWS]],
func.func @step(%x: tensor<4x6x8xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x6x8xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %s = arith.addf %a, %sum : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// The last term counts most: they stay in the loops' order.
// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-LABEL: func.func private
// CHECK: linalg.generic {indexing_maps = [#[[COLUMNS]],
func.func @step(%x: tensor<4x6x8xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %half = arith.constant 0.5 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x6x8xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %h = arith.mulf %sum, %half : f32
    %s = arith.addf %a, %h : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
