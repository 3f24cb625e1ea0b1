// RUN: baechi-opt %s --baechi-split --remarks-filter=baechi-split -o %t.mlir 2>%t.said
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: FileCheck %s --input-file=%t.said --check-prefix=REMARK

// Columns that a reshape makes heads of: each piece has whole ones, so that the
// cut goes on through it, and back.
// CHECK-LABEL: func.func @heads(
// CHECK-DAG: tensor.extract_slice %{{.*}}[0, 0] [6, 8] [1, 1]
// CHECK-DAG: tensor.extract_slice %{{.*}}[0, 8] [6, 4] [1, 1]
// CHECK-DAG: tensor.expand_shape {{.*}} output_shape [5, 2, 4] : tensor<5x8xf32> into tensor<5x2x4xf32>
// CHECK-DAG: tensor.expand_shape {{.*}} output_shape [5, 1, 4] : tensor<5x4xf32> into tensor<5x1x4xf32>
// CHECK-DAG: math.tanh %{{.*}} : tensor<5x2x4xf32>
// CHECK-DAG: math.tanh %{{.*}} : tensor<5x1x4xf32>
// CHECK: %[[A:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [5, 8] [1, 1]
// CHECK: %[[B:.*]] = tensor.insert_slice %{{.*}} into %[[A]][0, 8] [5, 4] [1, 1]
// CHECK: return %[[B]]
// REMARK: Function=heads | CopiedUs={{[0-9]+}}, Operations=6, PartialResults=0, Pieces=8+4
// REMARK-NOT: parts that are no pieces
func.func @heads(%x: tensor<5x6xf32>, %w: tensor<6x12xf32> {baechi.split = #baechi.split<dim = 1, sizes = [8, 4]>}) -> tensor<5x12xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x12xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x12xf32>) -> tensor<5x12xf32>
  %p = linalg.matmul ins(%x, %w : tensor<5x6xf32>, tensor<6x12xf32>) outs(%z : tensor<5x12xf32>) -> tensor<5x12xf32>
  %h = tensor.expand_shape %p [[0], [1, 2]] output_shape [5, 3, 4] : tensor<5x12xf32> into tensor<5x3x4xf32>
  %r = math.tanh %h : tensor<5x3x4xf32>
  %c = tensor.collapse_shape %r [[0], [1, 2]] : tensor<5x3x4xf32> into tensor<5x12xf32>
  return %c : tensor<5x12xf32>
}
