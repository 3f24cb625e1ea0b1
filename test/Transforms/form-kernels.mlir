// Outlining: views and constants are cloned into kernels, equal kernels are
// shared, results that nothing computes are copied.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s

// Two layers share the kernels of their products; the slices of the fused
// weights are views inside of them.

// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32> {baechi.name = "x"}, %[[W:.*]]: tensor<16x32xf32>)
// CHECK-SAME: -> (tensor<8x16xf32> {baechi.name = "y"})
// CHECK-NEXT: %[[A:.*]] = call @matmul_8x16x16(%[[X]], %[[W]])
// CHECK-NEXT: %[[B:.*]] = call @exp_8x16(%[[A]])
// CHECK-NEXT: %[[C:.*]] = call @matmul_8x16x16(%[[B]], %[[W]])
// CHECK-NEXT: %[[D:.*]] = call @exp_8x16(%[[C]])
// CHECK-NEXT: return %[[D]]
func.func @layers(%x: tensor<8x16xf32> {baechi.name = "x"}, %w: tensor<16x32xf32>)
    -> (tensor<8x16xf32> {baechi.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %w0 = tensor.extract_slice %w[0, 16] [16, 16] [1, 1] : tensor<16x32xf32> to tensor<16x16xf32>
  %0 = linalg.matmul ins(%x, %w0 : tensor<8x16xf32>, tensor<16x16xf32>) outs(%fill : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = linalg.exp ins(%0 : tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %w1 = tensor.extract_slice %w[0, 16] [16, 16] [1, 1] : tensor<16x32xf32> to tensor<16x16xf32>
  %2 = linalg.matmul ins(%1, %w1 : tensor<8x16xf32>, tensor<16x16xf32>) outs(%fill : tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = math.exp %2 : tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// CHECK: func.func private @matmul_8x16x16(%[[LHS:.*]]: tensor<8x16xf32>, %[[RHS:.*]]: tensor<16x32xf32>) -> tensor<8x16xf32> attributes {baechi.kernel}
// CHECK-DAG: %[[INIT:.*]] = linalg.fill
// CHECK-DAG: %[[SLICE:.*]] = tensor.extract_slice %[[RHS]][0, 16] [16, 16] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[LHS]], %[[SLICE]] : {{.*}}) outs(%[[INIT]] : {{.*}})
// CHECK: func.func private @exp_8x16(%{{.*}}: tensor<8x16xf32>) -> (tensor<8x16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
// CHECK-NOT: func.func

// -----

// An argument, a constant, a slice and a value that is returned twice are
// copied by kernels; a reshape of a kernel's result stays in the step.

// CHECK-LABEL: func.func @plain_results(
// CHECK-SAME: %[[A:.*]]: tensor<4x6xf32>)
// CHECK: %[[B:.*]]:2 = call @add_copy_4x6(%[[A]])
// CHECK: %[[C:.*]] = call @copy_4x6(%[[A]])
// CHECK: %[[D:.*]] = call @copy_3()
// CHECK: %[[E:.*]] = call @copy_4x2(%[[A]])
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[B]]#0 {{\[}}[0, 1]]
// CHECK: return %[[C]], %[[D]], %[[E]], %[[V]], %[[B]]#1
func.func @plain_results(%a: tensor<4x6xf32>)
    -> (tensor<4x6xf32>, tensor<3xf32>, tensor<4x2xf32>, tensor<24xf32>, tensor<4x6xf32>) {
  %constant = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %slice = tensor.extract_slice %a[0, 2] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
  %sum = arith.addf %a, %a : tensor<4x6xf32>
  %view = tensor.collapse_shape %sum [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  return %a, %constant, %slice, %view, %sum
      : tensor<4x6xf32>, tensor<3xf32>, tensor<4x2xf32>, tensor<24xf32>, tensor<4x6xf32>
}
