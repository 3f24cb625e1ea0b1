// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-replicate=replicas=2 | FileCheck %s
// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-replicate=replicas=2 --baechi-form-kernels --baechi-pin-replicas=machine=host:2 | FileCheck %s --check-prefix=PINS

// A linear layer: y = x w, loss = sum(y), w' = w - x^T 1, b unused by the batch.
// Parts of x and y are the replicas', as arguments and results of their own; the
// two partial gradients are added once, by the owner of w; no kernel has both
// replicas' operations.

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:[^:]*]]: tensor<64x64xf32> {baechi.name = "arg0", baechi.updated_by = 0 : i64}
// CHECK-SAME: %[[M:[^:]*]]: tensor<64x64xf32> {baechi.name = "arg1", baechi.updated_by = 3 : i64}
// CHECK-SAME: %[[X0:[^:, ]*]]: tensor<64x64xf32> {baechi.batched, baechi.name = "arg2.piece0", baechi.piece = #baechi.piece<of = "arg2", whole = tensor<128x64xf32>, dim = 0, start = 0, size = 64>}
// CHECK-SAME: %[[X1:[^:, ]*]]: tensor<64x64xf32> {baechi.batched, baechi.name = "arg2.piece1", baechi.piece = #baechi.piece<of = "arg2", whole = tensor<128x64xf32>, dim = 0, start = 64, size = 64>}
// CHECK-SAME: baechi.replicas = 2 : i64
// CHECK: %[[Y0:.*]] = linalg.matmul ins(%[[X0]], %[[W]]
// CHECK: %[[Y1:.*]] = linalg.matmul ins(%[[X1]], %[[W]]
// CHECK: return %{{.*}}, %[[Y0]], %[[Y1]], %{{.*}}

// PINS-LABEL: func.func @step(
// PINS-SAME: %[[W:[^:]*]]: tensor<64x64xf32> {baechi.name = "arg0", baechi.pin = "host0", baechi.updated_by = 0 : i64}
// PINS-SAME: %[[M:[^:, ]*]]: tensor<64x64xf32> {baechi.name = "arg1", baechi.pin = "host1", baechi.updated_by = 3 : i64}
// PINS-DAG: %[[G0:.*]] = call @{{.*}} {baechi.pin = "host0", baechi.replica = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// PINS-DAG: %[[G1:.*]] = call @{{.*}} {baechi.pin = "host1", baechi.replica = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// PINS: call @{{.*}}(%[[W]], %{{.*}}, %{{.*}}) {baechi.pin = "host0"}
#rows = affine_map<(n, i, o) -> (n, i)>
#weights = affine_map<(n, i, o) -> (i, o)>
#outputs = affine_map<(n, i, o) -> (n, o)>
#id = affine_map<(i, o) -> (i, o)>
func.func @step(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64}, %m: tensor<64x64xf32> {baechi.updated_by = 2 : i64}, %x: tensor<128x64xf32>) -> (tensor<64x64xf32>, tensor<128x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %rate = arith.constant 0.1 : f32
  %e = tensor.empty() : tensor<128x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<128x64xf32>, tensor<64x64xf32>) outs(%z : tensor<128x64xf32>) -> tensor<128x64xf32>
  %eg = tensor.empty() : tensor<64x64xf32>
  %zg = linalg.fill ins(%zero : f32) outs(%eg : tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = linalg.generic {indexing_maps = [#rows, #outputs, #weights], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%x, %y : tensor<128x64xf32>, tensor<128x64xf32>) outs(%zg : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %next = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %g : tensor<64x64xf32>, tensor<64x64xf32>) outs(%eg : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %b, %rate : f32
    %s = arith.subf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %other = math.exp %m : tensor<64x64xf32>
  return %next, %y, %other : tensor<64x64xf32>, tensor<128x64xf32>, tensor<64x64xf32>
}

// -----

// The zeros that both products start from tie the batch to the parameter's
// dimension of the same extent: each gets its own.

// CHECK-LABEL: func.func @shared(
// CHECK-SAME: tensor<32x64xf32> {baechi.batched
// CHECK: linalg.matmul {{.*}} -> tensor<32x64xf32>
// CHECK: linalg.matmul {{.*}} -> tensor<32x64xf32>
// CHECK: linalg.matmul {{.*}} -> tensor<64x64xf32>
// PINS-LABEL: func.func @shared(
func.func @shared(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
  %next = linalg.matmul ins(%w, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %next, %y : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Storage that nothing reads is nobody's.

// CHECK-LABEL: func.func @unread(
// PINS-LABEL: func.func @unread(
func.func @unread(%w: tensor<8xf32> {baechi.updated_by = 0 : i64}, %x: tensor<4x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> (tensor<8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = math.exp %x : tensor<4x8xf32>
  return %w, %0 : tensor<8xf32>, tensor<4x8xf32>
}
