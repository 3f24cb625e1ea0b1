// What kernels take along: captured tensors, scalars, constants, loops.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s

// A gather captures its table, which becomes an argument.

// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[TABLE:.*]]: tensor<10x4xf32>, %[[IDS:.*]]: tensor<3xi32>)
// CHECK-NEXT: %[[R:.*]] = call @gather_3x4(%[[IDS]], %[[TABLE]])
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @gather_3x4(%{{.*}}: tensor<3xi32>, %[[T:.*]]: tensor<10x4xf32>) -> tensor<3x4xf32>
// CHECK: tensor.extract %[[T]]
func.func @gather(%table: tensor<10x4xf32>, %ids: tensor<3xi32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<3xi32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<10x4xf32>
    linalg.yield %element : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Scalars never cross kernels: the offset of a slice is computed in the kernel
// that reads the slice.

// CHECK-LABEL: func.func @dynamic_slice(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[AT:.*]]: tensor<i32>)
// CHECK-NEXT: %[[R:.*]] = call @exp_2x4(%[[X]], %[[AT]])
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @exp_2x4(%[[KX:.*]]: tensor<8x4xf32>, %[[KAT:.*]]: tensor<i32>)
// CHECK: %[[SCALAR:.*]] = tensor.extract %[[KAT]][]
// CHECK: %[[OFFSET:.*]] = arith.index_cast %[[SCALAR]]
// CHECK: tensor.extract_slice %[[KX]][%[[OFFSET]], 0] [2, 4] [1, 1]
func.func @dynamic_slice(%x: tensor<8x4xf32>, %at: tensor<i32>) -> tensor<2x4xf32> {
  %scalar = tensor.extract %at[] : tensor<i32>
  %offset = arith.index_cast %scalar : i32 to index
  %slice = tensor.extract_slice %x[%offset, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  %r = math.exp %slice : tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// A large constant stays in the step; kernels of the same text share one
// function although they read different constants.

// CHECK-LABEL: func.func @large_constants(
// CHECK-DAG: %[[C0:.*]] = arith.constant sparse<0, 1.000000e+00> : tensor<2000xf32>
// CHECK-DAG: %[[C1:.*]] = arith.constant sparse<1, 2.000000e+00> : tensor<2000xf32>
// CHECK: call @[[ADD:add_2000]](%{{.*}}, %[[C0]])
// CHECK: call @[[ADD]](%{{.*}}, %[[C1]])
func.func @large_constants(%x: tensor<2000xf32>, %y: tensor<2000xf32>)
    -> (tensor<2000xf32>, tensor<2000xf32>) {
  %c0 = arith.constant sparse<[[0]], [1.0]> : tensor<2000xf32>
  %c1 = arith.constant sparse<[[1]], [2.0]> : tensor<2000xf32>
  %0 = arith.addf %x, %c0 : tensor<2000xf32>
  %1 = arith.addf %y, %c1 : tensor<2000xf32>
  return %0, %1 : tensor<2000xf32>, tensor<2000xf32>
}

// -----

// A loop is one kernel with what it captures.

// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[N:.*]]: tensor<i32>, %[[W:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[R:.*]] = call @while_4(%[[N]], %[[X]], %[[W]])
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @while_4(
// CHECK: scf.while
func.func @loop(%x: tensor<4xf32>, %n: tensor<i32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %one = arith.constant dense<1> : tensor<i32>
  %r:2 = scf.while (%i = %n, %v = %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %left = tensor.extract %i[] : tensor<i32>
    %zero = arith.constant 0 : i32
    %go = arith.cmpi sgt, %left, %zero : i32
    scf.condition(%go) %i, %v : tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    %next = arith.subi %i, %one : tensor<i32>
    %scaled = arith.mulf %v, %w : tensor<4xf32>
    scf.yield %next, %scaled : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
