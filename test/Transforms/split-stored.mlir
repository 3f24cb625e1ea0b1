// RUN: baechi-opt %s --split-input-file --baechi-split=stored | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split=stored --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: baechi-opt %s --split-input-file --baechi-split | FileCheck %s --check-prefix=SLICED

// An optimizer's state and what updates it are in the same pieces, columns
// too; what is not updated is whole, and keeps its name by its position.
// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[W0:.*]]: tensor<4x2xf32> {baechi.init = {kind = "constant", value = 1.000000e+00 : f32}, baechi.name = "w.piece0", baechi.piece = #baechi.piece<of = "w", whole = tensor<4x3xf32>, dim = 1, start = 0, size = 2>, baechi.updated_by = 1 : i64},
// CHECK-SAME: %[[W1:.*]]: tensor<4x1xf32> {{.*}}baechi.name = "w.piece1", baechi.piece = #baechi.piece<of = "w", whole = tensor<4x3xf32>, dim = 1, start = 2, size = 1>, baechi.updated_by = 2 : i64},
// CHECK-SAME: %[[M0:.*]]: tensor<4x2xf32> {baechi.name = "arg1.piece0", {{.*}}, baechi.updated_by = 3 : i64}, %[[M1:.*]]: tensor<4x1xf32> {{.*}}, baechi.updated_by = 4 : i64},
// CHECK-SAME: %[[RATE:.*]]: tensor<f32> {baechi.name = "arg2"})
// CHECK-SAME: -> (tensor<f32>, tensor<4x2xf32> {baechi.piece = #baechi.piece<of = "result1", whole = tensor<4x3xf32>, dim = 1, start = 0, size = 2>}, tensor<4x1xf32> {{[{].*[}]}}, tensor<4x2xf32> {baechi.name = "m.piece0", {{.*}}}, tensor<4x1xf32> {{[{].*[}]}})
// CHECK-NOT: tensor.extract_slice
// CHECK-NOT: tensor.insert_slice
// CHECK: %[[N0:.*]] = arith.addf %[[M0]], %[[W0]]
// CHECK: %[[N1:.*]] = arith.addf %[[M1]], %[[W1]]
// CHECK: %[[S0:.*]] = arith.subf %[[W0]], %[[N0]]
// CHECK: %[[S1:.*]] = arith.subf %[[W1]], %[[N1]]
// CHECK: return %[[RATE]], %[[S0]], %[[S1]], %[[N0]], %[[N1]]
// REMARK: [Passed] stored-in-pieces | Category:baechi-split | Function=update | Arguments=2, Bytes=96, Results=2
// SLICED-LABEL: func.func @update(%{{[^:]*}}: tensor<4x3xf32> {{[{].*[}]}}, %{{[^:]*}}: tensor<4x3xf32> {baechi.updated_by = 2 : i64}, %{{[^:]*}}: tensor<f32>)
func.func @update(%w: tensor<4x3xf32> {baechi.name = "w", baechi.init = {kind = "constant", value = 1.0 : f32}, baechi.split = #baechi.split<dim = 1, sizes = [2, 1]>, baechi.updated_by = 1 : i64},
                  %m: tensor<4x3xf32> {baechi.updated_by = 2 : i64}, %rate: tensor<f32>)
    -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32> {baechi.name = "m"}) {
  %n = arith.addf %m, %w : tensor<4x3xf32>
  %s = arith.subf %w, %n : tensor<4x3xf32>
  return %rate, %s, %n : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// What is read whole, in two ways, or whose next value is made otherwise.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %{{[^:]*}}: tensor<2x4xf32> {{.*}}start = 0{{.*}}, %{{[^:]*}}: tensor<2x4xf32> {{.*}}start = 2{{.*}}, %{{[^:]*}}: tensor<4x4xf32> {baechi.name = "arg1"{{.*}}, %{{[^:]*}}: tensor<4x4xf32> {baechi.name = "arg2"{{.*}}, %{{[^:]*}}: tensor<4x4xf32> {baechi.name = "arg3"}, %{{[^:]*}}: tensor<4x4xf32> {baechi.name = "arg4"})
// CHECK-SAME: -> (tensor<2x4xf32> {{.*}}, tensor<2x4xf32> {{.*}}, tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x4xf32>)
// REMARK-DAG: [Missed] stored-whole | Category:baechi-split | Function=whole | Argument=1, Reason="'tensor.extract_slice' reads all of it"
// REMARK-DAG: Argument=2, Reason="its next value is not made in the same pieces"
// REMARK-DAG: Argument=3, Reason="it is cut in two ways by what reads it"
// REMARK-DAG: Argument=4, Reason="it is the next value of what stays whole"
func.func @whole(%x: tensor<4x4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %part: tensor<4x4xf32> {baechi.updated_by = 1 : i64},
                 %updated: tensor<4x4xf32> {baechi.updated_by = 2 : i64}, %twice: tensor<4x4xf32>, %next: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x4xf32>) {
  %a = arith.addf %x, %part : tensor<4x4xf32>
  %b = arith.addf %a, %updated : tensor<4x4xf32>
  %c = arith.addf %b, %twice : tensor<4x4xf32>
  %d = arith.addf %c, %next : tensor<4x4xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x4xf32>
  %ones = arith.constant dense<1.0> : tensor<4x4xf32>
  %e = linalg.matmul {baechi.split = #baechi.split<dim = 1, sizes = [1, 3]>} ins(%ones, %twice : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = tensor.extract_slice %part[1, 0] [3, 4] [1, 1] : tensor<4x4xf32> to tensor<3x4xf32>
  return %d, %next, %e, %f : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x4xf32>
}

// -----

// A dimension that a reshape has joined: a piece has a range in each of its
// parts. An argument is returned as it is, in its pieces.
// CHECK-LABEL: func.func @joined(
// CHECK-SAME: %[[A:.*]]: tensor<15xf32> {baechi.name = "arg0.piece0", baechi.piece = #baechi.piece<of = "arg0", whole = tensor<30xf32>, dim = 0, start = 0, size = 5, outer = 3>}, %[[B:.*]]: tensor<15xf32> {{.*}}start = 5, size = 5, outer = 3>}
// CHECK: %[[X:.*]] = tensor.expand_shape %[[A]]
// CHECK: return %[[A]], %[[B]], %{{.*}}, %{{.*}} :
func.func @joined(%x: tensor<30xf32>, %s: tensor<3x2x5xf32> {baechi.split = #baechi.split<dim = 1, sizes = [1, 1]>}) -> (tensor<30xf32>, tensor<3x2x5xf32>) {
  %e = tensor.expand_shape %x [[0, 1, 2]] output_shape [3, 2, 5] : tensor<30xf32> into tensor<3x2x5xf32>
  %r = arith.addf %e, %s : tensor<3x2x5xf32>
  return %x, %r : tensor<30xf32>, tensor<3x2x5xf32>
}
