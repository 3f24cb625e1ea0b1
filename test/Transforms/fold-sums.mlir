// Products that are added up become one sum, in turns of loops, too; not those with a tensor of one
// number, which are computed once, nor what is read elsewhere, computed outside of a loop, or spoken
// of.
//
// RUN: baechi-opt %s --baechi-fold-sums | FileCheck %s
// RUN: baechi-opt %s --baechi-fold-sums=keep=sum,turn* | FileCheck %s --check-prefix=KEPT

// CHECK-LABEL: func.func @transposed
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}}ins(%arg1, %arg2
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}}ins(%arg0, %arg2 {{.*}}outs(%[[FIRST]]
// CHECK-NOT: linalg.transpose
// CHECK: return %[[SECOND]]
// KEPT-LABEL: func.func @transposed
// KEPT-COUNT-3: iterator_types = ["parallel", "parallel"]}
// KEPT: return
func.func @transposed(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %w: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = tensor.empty() : tensor<6x4xf32>
  %0 = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %w : tensor<8x4xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x6xf32>) outs(%t : tensor<6x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<6x4xf32> loc("turned")
  %2 = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%b, %w : tensor<8x4xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<4x6xf32>) outs(%t : tensor<6x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<6x4xf32> loc("turn")
  %4 = linalg.add ins(%1, %3 : tensor<6x4xf32>, tensor<6x4xf32>) outs(%t : tensor<6x4xf32>) -> tensor<6x4xf32> loc("sum")
  return %4 : tensor<6x4xf32>
}

// CHECK-LABEL: func.func @turns
// CHECK: linalg.generic {{.*}}ins(%arg1
// CHECK: %[[OUTSIDE:.*]] = linalg.generic
// CHECK: scf.for {{.*}}iter_args(%[[SUM:.*]] = %{{.*}}, %[[OTHER:.*]] = %
// CHECK: %[[NEXT:.*]] = linalg.generic {{.*}}outs(%[[SUM]]
// CHECK: %[[APART:.*]] = linalg.generic {{.*}}"parallel", "parallel"]} ins(%[[OUTSIDE]], %[[OTHER]]
// CHECK: scf.yield %[[NEXT]], %[[APART]]
func.func @turns(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %start = linalg.matmul ins(%b, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %outside = linalg.matmul ins(%b, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %start, %other = %start) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %1 = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = linalg.add ins(%sum, %1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = linalg.add ins(%outside, %other : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %0#0, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: "parallel", "parallel"]}
func.func @apart(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // Read elsewhere.
  %0 = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%b, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.add ins(%0, %1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // Of one number.
  %3 = linalg.matmul ins(%a, %ones : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = linalg.matmul ins(%ones, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = linalg.add ins(%3, %4 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // What is added is no product.
  %6 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = linalg.add ins(%6, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // Asked for in pieces.
  %8 = linalg.matmul {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>} ins(%b, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %9 = linalg.matmul {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>} ins(%b, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %10 = linalg.add ins(%8, %9 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %2, %5, %7, %10 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @spoken
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<8x4xf32>
// CHECK: baechi.split
// CHECK: iterator_types = ["parallel", "parallel"]}
func.func @spoken(%a: tensor<8x4xf32>, %w: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = tensor.empty() : tensor<6x4xf32>
  %0 = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>] {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}
      ins(%a, %w : tensor<8x4xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x6xf32>) outs(%t : tensor<6x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}
