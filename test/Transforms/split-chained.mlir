// Pieces that follow each other: each adds to what the one before has made.
// RUN: baechi-opt %s --split-input-file --baechi-split="reductions=true chained=true" --remarks-filter=baechi-split 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: baechi-opt %s --split-input-file --baechi-split="reductions=true chained=true" --baechi-form-kernels | FileCheck %s --check-prefix=FORMED

// A weight's gradient is one tensor, whatever the number of pieces.
// CHECK-LABEL: func.func @gradient(
// CHECK: %[[START:.*]] = linalg.fill
// CHECK: %[[A:.*]] = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x2xf32>, tensor<2x5xf32>) outs(%[[START]] :
// CHECK: %[[B:.*]] = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x2xf32>, tensor<2x5xf32>) outs(%[[A]] :
// CHECK: %[[C:.*]] = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x1xf32>, tensor<1x5xf32>) outs(%[[B]] :
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[C]], %arg2
// CHECK-NEXT: return %[[SUM]]
// No kernel holds two pieces, whose operands would wait for each other.
// FORMED-LABEL: func.func @gradient(
// FORMED-NOT: baechi.chained
// FORMED: %[[F1:.*]] = call @
// FORMED: %[[F2:.*]] = call @{{.*}}%[[F1]]
// FORMED: call @{{.*}}%[[F2]]
func.func @gradient(%x: tensor<3x5xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2, 1]>}, %y: tensor<5x5xf32>, %decay: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %p = linalg.matmul ins(%x, %y : tensor<3x5xf32>, tensor<5x5xf32>) outs(%start : tensor<3x5xf32>) -> tensor<3x5xf32>
  %r = arith.addf %p, %decay : tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// -----

// Sums of sums, as of a recurrence: each piece's first, then those of all
// pieces in their order. The sum comes second: a product starts from it.
// CHECK-LABEL: func.func @recurrence(
// CHECK-COUNT-6: linalg.matmul
// CHECK: %[[A0:.*]] = arith.addf
// CHECK: %[[A1:.*]] = arith.addf
// CHECK: %[[A2:.*]] = arith.addf
// CHECK: %[[S1:.*]] = linalg.generic {{.*}} ins(%[[A1]], %[[A0]] :
// CHECK-NOT: baechi.partials
// CHECK: %[[S2:.*]] = linalg.generic {{.*}} ins(%[[A2]], %[[S1]] :
// CHECK-NOT: baechi.partials
// CHECK: return %[[S2]]
func.func @recurrence(%x: tensor<3x6xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2, 2]>}, %y: tensor<6x2xf32>, %z: tensor<6x2xf32>) -> tensor<3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %p = linalg.matmul ins(%x, %y : tensor<3x6xf32>, tensor<6x2xf32>) outs(%start : tensor<3x2xf32>) -> tensor<3x2xf32>
  %q = linalg.matmul ins(%x, %z : tensor<3x6xf32>, tensor<6x2xf32>) outs(%start : tensor<3x2xf32>) -> tensor<3x2xf32>
  %s = arith.addf %p, %q : tensor<3x2xf32>
  return %s : tensor<3x2xf32>
}

// -----

// The statistics of a normalisation are those of the whole: there pieces meet.
// REMARK: split-chained.mlir:[[@LINE+7]]:{{.*}} [Missed] pieces-meet | {{.*}}Reason="it reduces the dimension over all pieces, and pieces read the result"
// REMARK-NOT: pieces-meet
// CHECK-LABEL: func.func @normalised(
// CHECK: %[[A:.*]] = linalg.reduce {{.*}} ins(%{{.*}} : tensor<2x3xf32>) outs(%arg1 :
// CHECK: %[[B:.*]] = linalg.reduce {{.*}} ins(%{{.*}} : tensor<2x3xf32>) outs(%[[A]] :
// CHECK-COUNT-2: linalg.generic {{.*}} ins(%{{.*}}, %[[B]] : tensor<2x3xf32>, tensor<3xf32>)
func.func @normalised(%x: tensor<4x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %start: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>) {
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<4x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
  %e = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<4x3xf32>, tensor<3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4x3xf32>
  %squares = linalg.reduce { arith.maximumf } ins(%y : tensor<4x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
  return %y, %squares : tensor<4x3xf32>, tensor<3xf32>
}

// -----

// So they do where an operation needs the whole.
// REMARK: [Missed] pieces-meet | {{.*}}Reason="it reads all pieces, and pieces read what it makes"
// CHECK-LABEL: func.func @whole(
func.func @whole(%x: tensor<4x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<4x3xf32> {
  %y = math.exp %x : tensor<4x3xf32>
  %first = tensor.extract_slice %y[0, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
  %last = tensor.extract_slice %y[2, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
  %z = tensor.concat dim(0) %last, %first : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %r = arith.addf %y, %z : tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
