// An argument and the operator that computes its next value are one group.
// RUN: baechi-opt %s --baechi-colocate --split-input-file | FileCheck %s

// The group is called after its first member; others have none.
// CHECK-LABEL: func.func @named_by_argument(
// CHECK-SAME: %{{.*}}: tensor<4xf32> {baechi.group = "weights", baechi.name = "weights", baechi.updated_by = 0 : i64}
// CHECK-SAME: %{{.*}}: tensor<4xf32>)
func.func @named_by_argument(%w: tensor<4xf32> {baechi.name = "weights", baechi.updated_by = 0 : i64}, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} : tensor<4xf32>
  %0 = arith.mulf %x, %x : tensor<4xf32>
  // CHECK-NEXT: arith.subf %{{.*}}, %{{.*}} {baechi.group = "weights"} : tensor<4xf32>
  %1 = arith.subf %w, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A name that the program gives to one member goes to all of them.
// CHECK-LABEL: func.func @named_by_program(
// CHECK-SAME: baechi.group = "layer0"
func.func @named_by_program(%w: tensor<4xf32> {baechi.updated_by = 0 : i64}) -> tensor<4xf32> {
  // CHECK: arith.addf {{.*}} {baechi.group = "layer0"}
  %0 = arith.addf %w, %w {baechi.group = "layer0"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An update joins the two groups that its ends are in, with all their members.
// CHECK-LABEL: func.func @united(
// CHECK-SAME: %{{.*}}: tensor<4xf32> {baechi.group = "a", baechi.updated_by = 0 : i64}
func.func @united(%w: tensor<4xf32> {baechi.group = "a", baechi.updated_by = 0 : i64}) -> tensor<4xf32> {
  // CHECK-NEXT: arith.addf {{.*}} {baechi.group = "a"}
  // CHECK-NEXT: arith.mulf {{.*}} {baechi.group = "a"}
  // CHECK-NEXT: arith.subf {{.*}} {baechi.group = "c"}
  // CHECK-NEXT: arith.divf {{.*}} {baechi.group = "a"}
  %0 = arith.addf %w, %w {baechi.group = "a"} : tensor<4xf32>
  %1 = arith.mulf %0, %0 {baechi.group = "b"} : tensor<4xf32>
  %2 = arith.subf %1, %1 {baechi.group = "c"} : tensor<4xf32>
  %3 = arith.divf %2, %2 {baechi.group = "b"} : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// The next value is seen through views; a value that is passed on is alone.
// CHECK-LABEL: func.func @views(
// CHECK-SAME: %{{.*}}: tensor<2x2xf32> {baechi.group = "arg0", baechi.updated_by = 0 : i64}
// CHECK-SAME: %{{.*}}: tensor<2xf32> {baechi.group = "arg1", baechi.updated_by = 1 : i64}
func.func @views(%w: tensor<2x2xf32> {baechi.updated_by = 0 : i64}, %k: tensor<2xf32> {baechi.updated_by = 1 : i64}) -> (tensor<2x2xf32>, tensor<2xf32>) {
  %0 = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  // CHECK: arith.addf {{.*}} {baechi.group = "arg0"}
  %1 = arith.addf %0, %0 : tensor<4xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  return %2, %k : tensor<2x2xf32>, tensor<2xf32>
}

// -----

// A group that the program calls after an operator is not that operator's.
// CHECK-LABEL: func.func @taken(
// CHECK-SAME: baechi.group = "w#1", baechi.name = "w"
func.func @taken(%w: tensor<4xf32> {baechi.name = "w", baechi.updated_by = 0 : i64}, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: math.exp {{.*}}baechi.group = "w#1"
  // CHECK: math.log {{.*}}baechi.group = "w"
  %0 = math.exp %w : tensor<4xf32>
  %1 = math.log %y {baechi.group = "w"} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
